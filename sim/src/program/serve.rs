//! What programs answer over HTTP.

use std::net::IpAddr;

use crate::clock;

/// A web server's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The `HttpListener` script of the Windows user guide.
    WinWebserver,
    /// IIS with its default site.
    Iis,
    /// `agnhost netexec`.
    Netexec,
    /// `agnhost serve-hostname`.
    Hostname,
}

/// An HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// The answerer of the fault `service-answers-wrong`.
pub(crate) fn captive() -> Answer {
    ok("<html>welcome</html>".to_owned())
}

/// Anything outside the cluster.
pub(crate) fn outside(name: &str) -> Answer {
    ok(format!("<html><title>{name}</title></html>"))
}

/// What net/http answers to plain HTTP on a TLS port, the kubelet's for one.
pub(crate) fn tls_expected() -> Answer {
    Answer {
        status: 400,
        body: "Client sent an HTTP request to an HTTPS server.\n".to_owned(),
    }
}

/// Who is asked, and by whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange<'a> {
    pub(crate) hostname: &'a str,
    pub(crate) address: IpAddr,
    pub(crate) source: IpAddr,
}

/// What a page answers to a GET of a path, its query included.
pub(crate) fn respond(page: Page, path: &str, exchange: Exchange<'_>) -> Answer {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    match page {
        Page::WinWebserver => ok(format!(
            "<html><body><H1>Windows Container Web Server</H1><p>IP {} callerCount 1 </body></html>",
            exchange.address
        )),
        Page::Iis if matches!(path, "/" | "/iisstart.htm") => ok(IIS_START.to_owned()),
        Page::Iis => Answer {
            status: 404,
            body: "404 - File or directory not found.".to_owned(),
        },
        Page::Hostname => ok(format!("{}\n", exchange.hostname)),
        Page::Netexec => netexec(path, query, exchange),
    }
}

/// Kubernetes, test/images/agnhost/netexec/netexec.go; whatever it has no handler for falls to that
/// of `/`.
fn netexec(path: &str, query: &str, exchange: Exchange<'_>) -> Answer {
    match path {
        "/hostname" | "/hostName" => ok(exchange.hostname.to_owned()),
        "/clientip" => ok(format!("{}:49152", exchange.source)),
        "/healthz" => ok(String::new()),
        "/echo" => ok(query.strip_prefix("msg=").unwrap_or_default().to_owned()),
        _ => ok(format!("NOW: {}", clock::now())),
    }
}

fn ok(body: String) -> Answer {
    Answer { status: 200, body }
}

const IIS_START: &str = "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \
    \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\">\r\n<html xmlns=\"http://www.w3.org/1999/xhtml\">\r\n\
    <head>\r\n<title>IIS Windows Server</title>\r\n</head>\r\n<body>\r\n</body>\r\n</html>\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn get(page: Page, path: &str) -> Answer {
        let exchange = Exchange {
            hostname: "web-1",
            address: [10, 244, 2, 5].into(),
            source: [10, 244, 1, 9].into(),
        };
        respond(page, path, exchange)
    }

    #[test]
    fn pages_carry_what_tells_them_apart() {
        assert!(
            get(Page::WinWebserver, "/")
                .body
                .contains("<H1>Windows Container Web Server</H1>")
        );
        assert_eq!(get(Page::Netexec, "/hostname").body, "web-1");
        assert_eq!(get(Page::Netexec, "/clientip").body, "10.244.1.9:49152");
        assert_eq!(get(Page::Netexec, "/echo?msg=hi").body, "hi");
        assert!(get(Page::Netexec, "/").body.starts_with("NOW: "));
        assert_eq!(get(Page::Iis, "/nothing").status, 404);
    }
}
