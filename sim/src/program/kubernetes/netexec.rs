//! The answers of `agnhost netexec` to a prober's requests, over HTTP and UDP.
//!
//! Source: Kubernetes, test/images/agnhost/netexec/netexec.go at 1.37.0; tests compare them with the real
//! program.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::program::go;
use crate::program::web::http::{Answer, plain, query};
use crate::program::web::net::{Datagram, Net};
use crate::program::web::serve::Exchange;

/// Answers a request; a path without a handler gets the answer of `/`.
pub(crate) fn answer(path: &str, exchange: Exchange<'_>, net: &dyn Net) -> Answer {
    match plain(path) {
        "/hostname" | "/hostName" => Answer::new(200, exchange.hostname),
        "/clientip" => Answer::new(200, format!("{}:49152", go::host(exchange.source))),
        "/healthz" => Answer::new(200, ""),
        "/echo" if query(path, "code").is_empty() => Answer::new(200, query(path, "msg")),
        "/dial" => dial(path, net),
        other @ ("/echo" | "/serverport" | "/readyz" | "/header" | "/envvar" | "/redirect"
        | "/shell" | "/upload" | "/exit" | "/shutdown") => {
            let text = format!("hybrid-sim does not simulate `{other}` of netexec");
            Answer::error(501, &text)
        }
        _ => Answer::new(200, format!("NOW: {}", net.now())),
    }
}

/// The answer to a datagram; `None` to anything that is no command.
pub(crate) fn datagram(payload: &str, hostname: &str) -> Option<String> {
    let text = payload.trim().to_lowercase();
    (text == "hostname").then(|| hostname.to_owned())
}

/// `/dial` with one datagram to an address. Its help promises 417 for a failed try; its source returns 200.
fn dial(path: &str, net: &dyn Net) -> Answer {
    let [host, port, request, protocol, tries] =
        ["host", "port", "request", "protocol", "tries"].map(|key| query(path, key));
    let target = host.parse().ok().zip(port.parse().ok());
    let (Some(target), "udp", "1") = (target, &*protocol, &*tries) else {
        let text = "hybrid-sim dials with one datagram to an address alone";
        return Answer::error(501, text);
    };
    let reply = match dial_udp(net, target, &request) {
        // An empty response leaves the list out
        Ok(response) if response.is_empty() => json!({}),
        Ok(response) => json!({"responses": [response]}),
        Err(error) => json!({"errors": [error]}),
    };
    Answer::new(200, marshalled(&reply))
}

fn dial_udp(
    net: &dyn Net,
    (address, port): (IpAddr, u16),
    request: &str,
) -> Result<String, String> {
    let why = match net.datagram(address, port, request) {
        Datagram::Answered(text) => return Ok(text),
        Datagram::Refused => go::datagram_refused(net.os()),
        Datagram::Lost => "i/o timeout",
    };
    let local = format!("{}:49152", go::host(net.source(address)));
    let at = format!("{}:{port}", go::host(address));
    Err(format!(
        "reading from udp connection failed. err:'read udp {local}->{at}: {why}'"
    ))
}

/// `json.Marshal`, which escapes what HTML would interpret.
fn marshalled(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}
