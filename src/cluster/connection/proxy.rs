//! Chooses the proxy of the requests to an API server: the kubeconfig's `proxy-url`, else the one that the
//! environment names, as kubectl reads it (Go's `httpproxy`).
//!
//! kube's own code matches `NO_PROXY` against the proxy instead of the server, and refuses a list that ends
//! in a comma.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use tower::BoxError;

#[derive(Clone)]
pub(crate) struct Proxy {
    /// Its address, without user and password.
    pub(crate) url: Uri,
    /// The same with user and password.
    pub(crate) intercept: Intercept,
    /// The setting that names it, such as `$HTTPS_PROXY`.
    origin: &'static str,
}

/// An error on the way to or through a proxy.
#[derive(Debug, thiserror::Error)]
#[error("the proxy {proxy}")]
pub(crate) struct ProxyError {
    /// Its address, without user and password, and the setting that names it.
    proxy: String,
    source: BoxError,
}

impl Proxy {
    /// The proxy for a server if there is one, or why the one that is set cannot be used.
    pub(crate) fn choose(written: Option<&str>, server: &Uri) -> Result<Option<Self>, String> {
        match written.filter(|written| !written.is_empty()) {
            Some(written) => Self::parse("the kubeconfig's `proxy-url`", written).map(Some),
            None => Self::from_environment(server, |name| std::env::var(name).ok()),
        }
    }

    /// The proxy that the environment names for a server.
    fn from_environment(
        server: &Uri,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let first = |names: [&'static str; 2]| {
            let set = |name| Some((name, variable(name).filter(|value| !value.is_empty())?));
            names.into_iter().find_map(set)
        };
        let (named, port) = match server.scheme_str() {
            Some("http") => (first(["HTTP_PROXY", "http_proxy"]), 80),
            _ => (first(["HTTPS_PROXY", "https_proxy"]), 443),
        };
        let spared = first(["NO_PROXY", "no_proxy"]).map_or(String::new(), |(_, list)| list);
        match named {
            Some((name, written)) if !is_spared(server, port, &spared) => {
                Self::parse(name, &written).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Parses the address of a proxy. It may hold a password, so no error quotes it.
    fn parse(origin: &'static str, written: &str) -> Result<Self, String> {
        // The matcher takes the first `@` for the end of the user, Go the last
        let begin = written.find("://").map_or(0, |at| at + 3);
        let (scheme, rest) = written.split_at(begin);
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let written = match authority.rsplit_once('@') {
            Some((user, host)) => format!("{scheme}{}@{host}{path}", user.replace('@', "%40")),
            None => written.to_owned(),
        };
        let any = Uri::from_static("https://any");
        let intercept = Matcher::builder().all(written).build().intercept(&any);
        let known = "http, https, socks5 or socks5h";
        let why = || format!("{origin} is no URL of a proxy ({known})");
        let intercept = intercept.ok_or_else(why)?;
        let mut parts = intercept.uri().clone().into_parts();
        let scheme = parts.scheme.as_ref().map_or("", |scheme| scheme.as_str());
        let port = match scheme {
            "http" => 80,
            "https" => 443,
            "socks5" | "socks5h" => 1080,
            _ => return Err(why()),
        };
        let authority = parts.authority.ok_or_else(why)?;
        parts.authority = match authority.as_str().strip_prefix(authority.host()) {
            Some("") => format!("{authority}:{port}").parse().ok(),
            Some(_) if authority.port_u16().is_some() => Some(authority),
            _ => return Err(why()),
        };
        let url = Uri::from_parts(parts).map_err(|_| why())?;
        Ok(Self {
            url,
            intercept,
            origin,
        })
    }

    /// Names the proxy in an error, if there is one.
    pub(crate) fn blame(proxy: Option<&Self>) -> impl Fn(BoxError) -> BoxError + Clone + use<> {
        let proxy = proxy.map(|proxy| {
            let url = proxy.url.to_string();
            format!("{} (of {})", url.trim_end_matches('/'), proxy.origin)
        });
        move |source| match proxy.clone() {
            Some(proxy) => ProxyError { proxy, source }.into(),
            None => source,
        }
    }
}

/// Whether `NO_PROXY` exempts a server from the environment's proxy; this machine is always exempt.
fn is_spared(server: &Uri, port: u16, list: &str) -> bool {
    let host = server.host().unwrap_or_default();
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let is_here = address.map_or(host == "localhost", |address| address.is_loopback());
    let port = server.port_u16().unwrap_or(port).to_string();
    // hyper-util follows curl's rules: no ports, no `*` for addresses, and `.a` matches `a`, too
    let entries = list.split(',').map(str::trim).filter_map(|entry| {
        let with_port = entry
            .rsplit_once(':')
            .filter(|(_, its_port)| its_port.parse::<u16>().is_ok());
        let name = match with_port.filter(|_| entry.parse::<IpAddr>().is_err()) {
            Some((_, its_port)) if its_port != port => return None,
            Some((name, _)) => name.trim_matches(['[', ']']),
            None => entry,
        };
        let name = name.strip_prefix('*').unwrap_or(name);
        let domain = name.strip_prefix('.');
        (!domain.is_some_and(|domain| domain.eq_ignore_ascii_case(host))).then_some(name)
    });
    let entries: Vec<_> = entries.collect();
    let every = list.split(',').any(|entry| entry.trim() == "*");
    let others = Matcher::builder()
        .all("http://proxy")
        .no(entries.join(","))
        .build();
    is_here || every || others.intercept(server).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_as_kubectl_reads_it() {
        let chosen = |server: &str, spared: &str| {
            let server = server.parse().expect("a URI");
            let variable = |name: &str| match name {
                "https_proxy" => Some("secure.test:3128"),
                "HTTP_PROXY" => Some("socks5://a%40b:c@plain.test"),
                "NO_PROXY" => Some(spared),
                _ => None,
            };
            let proxy = Proxy::from_environment(&server, |name| variable(name).map(str::to_owned));
            proxy
                .expect("they are proxies")
                .map(|proxy| proxy.url.to_string())
        };
        let plain = chosen("http://k8s.test", "").expect("a proxy");
        assert_eq!(plain, "socks5://plain.test:1080/");
        // The last `@` ends the user, as in Go
        for (written, url, basic) in [
            (
                "http://u@c.test:hunter2@127.0.0.1:1",
                "http://127.0.0.1:1/",
                "dUBjLnRlc3Q6aHVudGVyMg==",
            ),
            (
                "http://u:a@b@proxy.test/@",
                "http://proxy.test:80/",
                "dTphQGI=",
            ),
        ] {
            let proxy = Proxy::parse("", written).expect(written);
            let sent = proxy.intercept.basic_auth().expect("a user");
            assert_eq!(proxy.url.to_string(), url);
            assert_eq!(sent, &format!("Basic {basic}"), "{written}");
        }
        // An address whose user does not end is no URL
        for written in ["http://u:hunter2/x@proxy.test", "http://u:p?x@proxy.test:1"] {
            assert!(Proxy::parse("", written).is_err(), "{written}");
        }
        for (server, spared) in [
            ("https://localhost:6443", ""),
            ("https://127.3.2.1:6443", ""),
            ("https://[::1]:6443", ""),
            ("https://10.1.2.3:6443", "*"),
            ("https://k8s.test:6443", "a.test, K8S.test,"),
            ("https://api.k8s.test:6443", "k8s.test"),
            ("https://api.k8s.test:6443", "*.k8s.test"),
            ("https://k8s.test:6443", "k8s.test:6443"),
            ("https://k8s.test", "k8s.test:443"),
            ("https://10.1.2.3:6443", "10.0.0.0/8"),
            ("https://[fd00::1]:6443", "[fd00::1]:6443"),
        ] {
            assert_eq!(chosen(server, spared), None, "{server} {spared}");
        }
        for (server, spared) in [
            ("https://k8s.test:6443", "8s.test,,:6443"),
            ("https://k8s.test:6443", ".k8s.test"),
            ("https://k8s.test:6443", "k8s.test:443"),
            ("https://10.1.2.3:6443", "10.1.2.4,11.0.0.0/8,fd00::/8"),
        ] {
            let chosen = chosen(server, spared).expect(spared);
            assert_eq!(chosen, "http://secure.test:3128/");
        }
    }
}
