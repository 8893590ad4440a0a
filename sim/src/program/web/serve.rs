//! The answers of programs over HTTP.

use std::net::IpAddr;

use super::http::{Answer, plain};
use super::net::Net;
use crate::program::kubernetes::netexec;
use crate::world::Page;

/// The server's name and address, and the client's address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange<'a> {
    pub(crate) hostname: &'a str,
    pub(crate) address: IpAddr,
    pub(crate) source: IpAddr,
}

/// The answer under the fault `service-answers-wrong`, which tries to break a reader: with a colour, a title,
/// a cleared screen, the end of CDATA, text from right to left, and characters that XML 1.0 cannot hold. Its
/// page is as long as captive pages are, some kB.
pub(crate) fn captive() -> Answer {
    let hostile =
        "<html>welcome</html>\u{1b}[31m\u{1b}]0;owned\u{7}\u{1b}[2J]]>\u{202e}\u{8}\u{fffe}\r";
    Answer::new(200, format!("{hostile}{}", "<p>log in</p>".repeat(630)))
}

/// The answer of a server outside the cluster.
pub(crate) fn outside(name: &str) -> Answer {
    match name {
        // Microsoft, NCSI: the text of "http://www.msftconnecttest.com/connecttest.txt"
        "www.msftconnecttest.com" => Answer::new(200, "Microsoft Connect Test"),
        // Cloudflare redirects plain HTTP with this page
        "one.one.one.one" => Answer::new(
            301,
            "<html>\r\n<head><title>301 Moved Permanently</title></head>\r\n<body>\r\n\
             <center><h1>301 Moved Permanently</h1></center>\r\n<hr><center>cloudflare</center>\r\n\
             </body>\r\n</html>\r\n",
        ),
        _ => Answer::new(200, format!("<html><title>{name}</title></html>")),
    }
}

/// The answer of net/http to plain HTTP on a TLS port, such as the kubelet's.
pub(crate) fn tls_expected() -> Answer {
    Answer::new(400, "Client sent an HTTP request to an HTTPS server.\n")
}

/// The answer of a page to a GET of a path with its query; `net` is the server's network.
pub(crate) fn answer(page: Page, path: &str, exchange: Exchange<'_>, net: &dyn Net) -> Answer {
    match page {
        // Kubernetes website, content/en/docs/concepts/windows/user-guide.md: the script answers all requests
        // alike
        Page::WinWebserver => Answer::new(
            200,
            format!(
                "<html><body><H1>Windows Container Web Server</H1><p>IP {} callerCount 1 </body></html>",
                exchange.address
            ),
        ),
        Page::Iis if matches!(plain(path), "/" | "/iisstart.htm") => Answer::new(200, IIS_START),
        Page::Iis => Answer::new(404, "404 - File or directory not found."),
        Page::Netexec => netexec::answer(path, exchange, net),
    }
}

const IIS_START: &str = "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \
    \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\">\r\n<html xmlns=\"http://www.w3.org/1999/xhtml\">\r\n\
    <head>\r\n<title>IIS Windows Server</title>\r\n</head>\r\n<body>\r\n</body>\r\n</html>\r\n";
