//! What `agnhost netexec` answers, over HTTP and UDP.
//!
//! Kubernetes, test/images/agnhost/netexec/netexec.go at 1.37.0, read in source; compared with the
//! real program by tests.

use serde_json::json;

use super::go;
use super::http::{Answer, Asked, phrase};
use super::net::{Datagram, Link, Lookup, Net, Peer, Speaks};
use super::serve::Exchange;
use crate::clock;

/// Answers a request; whatever has no handler falls to that of `/`.
pub(super) fn answer(asked: &Asked, exchange: Exchange<'_>, port: u16, net: &dyn Net) -> Answer {
    if asked.headers.iter().any(|(name, _)| !is_token(name)) {
        // net/http, server.go: what cannot be read has this answer, whatever the reason
        return Answer::text(400, "400 Bad Request");
    }
    match asked.plain_path() {
        "/hostname" | "/hostName" => Answer::text(200, exchange.hostname),
        "/clientip" => Answer::text(200, format!("{}:49152", go::host(exchange.source))),
        "/serverport" => Answer::text(200, port.to_string()),
        "/healthz" => Answer::text(200, ""),
        "/readyz" => Answer::text(200, "ok"),
        "/echo" => echo(asked),
        "/header" => header(asked),
        "/envvar" => env(asked),
        "/redirect" => redirect(asked),
        "/dial" => dial(asked, net),
        "/shell" => Answer::error(501, "hybrid-sim does not simulate this script"),
        "/upload" => Answer::text(200, json!({"error": "Unable to upload file."}).to_string()),
        // They end the program, and nobody hears of it
        "/exit" | "/shutdown" => ending(asked),
        _ => Answer::text(200, format!("NOW: {}", clock::now())),
    }
}

/// Answers a datagram; nothing to what is no command.
pub(super) fn datagram(payload: &str, exchange: Exchange<'_>, port: u16) -> Option<String> {
    let raw = payload.trim();
    let text = raw.to_lowercase();
    match text.split_once(' ') {
        Some(("echo", rest)) => Some(rest.to_owned()),
        Some(("envvar", _)) => Some(String::new()),
        None if text == "hostname" => Some(exchange.hostname.to_owned()),
        None if text == "clientip" => Some(format!("{}:49152", go::host(exchange.source))),
        None if text == "serverport" => Some(port.to_string()),
        _ => None,
    }
}

fn echo(asked: &Asked) -> Answer {
    let code = asked.form("code");
    if code.is_empty() {
        return Answer::text(200, asked.form("msg"));
    }
    match code.parse::<u16>() {
        Ok(code) => Answer::text(code, asked.form("msg")),
        Err(_) => Answer::text(
            200,
            format!("argument 'code' must be an integer or empty, got {code:?}\n"),
        ),
    }
}

fn header(asked: &Asked) -> Answer {
    let key = asked.form("key");
    if !key.is_empty() {
        return Answer::text(200, asked.header(&key).unwrap_or_default());
    }
    // net/http takes `Host` out of the headers
    let all: std::collections::BTreeMap<String, Vec<&String>> = asked
        .headers
        .iter()
        .filter(|(key, _)| !key.eq_ignore_ascii_case("host"))
        .map(|(key, value)| (canonical(key), vec![value]))
        .collect();
    Answer::text(200, go::json(&json!(all)))
}

/// net/textproto, reader.go, `validHeaderFieldByte`: what a header's name is made of.
fn is_token(name: &str) -> bool {
    let allowed =
        |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
    !name.is_empty() && name.chars().all(allowed)
}

/// net/textproto's way to write a header's name: `user-agent` as `User-Agent`.
fn canonical(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let rest = letters.map(|letter| letter.to_ascii_lowercase());
        first.into_iter().chain(rest).collect::<String>()
    };
    name.split('-').map(part).collect::<Vec<_>>().join("-")
}

fn env(asked: &Asked) -> Answer {
    let name = asked.form("var");
    if name.is_empty() {
        return Answer::error(400, "'var' query parameter is required");
    }
    Answer::error(500, &format!("env var {name:?} is not set"))
}

fn redirect(asked: &Asked) -> Answer {
    let (location, code) = (asked.form("location"), asked.form("code"));
    let status = match code.parse::<u16>() {
        Ok(status) => status,
        Err(_) if code.is_empty() => 302,
        Err(_) => {
            let text = format!("argument 'code' must be an integer or empty, got {code:?}\n");
            return Answer::text(200, text);
        }
    };
    // net/http, `Redirect`: a location without a slash is beside the path that was asked for
    let location = if location.starts_with('/') || location.contains("://") {
        location
    } else {
        format!("/{location}")
    };
    Answer {
        status,
        headers: vec![
            ("Content-Type", "text/html; charset=utf-8".to_owned()),
            ("Location", location.clone()),
        ],
        sniffed: false,
        body: format!("<a href=\"{location}\">{}</a>.\n\n", phrase(status)),
    }
}

fn ending(asked: &Asked) -> Answer {
    if asked.plain_path() == "/exit" {
        for (name, text) in [
            ("timeout", asked.form("timeout")),
            ("wait", asked.form("wait")),
        ] {
            if !text.is_empty() && go::duration(&text).is_none() {
                return Answer::text(
                    200,
                    format!(
                        "argument '{name}' must be a valid golang duration or empty, got {text:?}\n"
                    ),
                );
            }
        }
        let code = asked.form("code");
        if !code.is_empty() && code.parse::<i32>().is_err() {
            return Answer::text(
                200,
                format!("argument 'code' must be an integer [0-127] or empty, got {code:?}\n"),
            );
        }
    }
    Answer::error(
        501,
        "hybrid-sim does not simulate that netexec is told to end",
    )
}

/// They are made at once, and no suite asks for so many.
const TRIES: i64 = 1000;

/// `/dial`. Its help says 417 for a failed last try; its source gives 200, and gives `responses`
/// only where the last try has one.
fn dial(asked: &Asked, net: &dyn Net) -> Answer {
    let invalid = |text: String| Answer::error(400, &text);
    let [host, port, request, protocol, tries] =
        ["host", "port", "request", "protocol", "tries"].map(|key| asked.query(key));
    let tries = match tries.parse::<i64>() {
        Ok(tries) => tries,
        Err(_) if tries.is_empty() => 1,
        Err(_) => {
            return invalid(format!(
                "tries parameter is invalid. strconv.Atoi: parsing {tries:?}: invalid syntax"
            ));
        }
    };
    if request.is_empty() {
        return invalid("request parameter not specified. <nil>".to_owned());
    }
    let kind = match protocol.to_lowercase().as_str() {
        "" | "http" => "tcp",
        "udp" => "udp",
        "sctp" => "sctp",
        _ => return invalid(format!("unsupported protocol. {protocol}")),
    };
    let bad = |error: String| invalid(format!("host and/or port param are invalid. {error}"));
    let port = match go::port(kind, &port) {
        Ok(port) => port,
        Err(error) => return bad(error),
    };
    let address = match go::resolve(net, &host).0 {
        Lookup::Address(address) => address,
        failed => return bad(go::lookup_error(net, &host, &failed)),
    };
    let (mut responses, mut errors, mut last) = (Vec::new(), Vec::new(), String::new());
    if tries > TRIES {
        let refused = format!("hybrid-sim does not simulate more than {TRIES} tries");
        return Answer::error(501, &refused);
    }
    for _ in 0..tries {
        let outcome = match kind {
            "tcp" => dial_http(net, address, port, &request),
            "udp" => dial_udp(net, address, port, &request),
            // Windows has no SCTP, and no simulated program serves it
            _ => Err("sctp dial failed. err:protocol not supported".to_owned()),
        };
        last.clear();
        match outcome {
            Ok(response) => {
                last.clone_from(&response);
                responses.push(response);
            }
            Err(error) => errors.push(error),
        }
    }
    let mut output = serde_json::Map::new();
    if !errors.is_empty() {
        output.insert("errors".to_owned(), json!(errors));
    }
    if !last.is_empty() {
        output.insert("responses".to_owned(), json!(responses));
    }
    Answer::text(200, go::json(&output.into()))
}

/// The client gives up after 5 s, long before the system does, and says nothing of where.
const SILENT: &str = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";

fn dial_http(
    net: &dyn Net,
    address: std::net::IpAddr,
    port: u16,
    request: &str,
) -> Result<String, String> {
    let at = format!("{}:{port}", go::host(address));
    let url = format!("http://{at}/{request}");
    let failed = |why: String| Err(format!("Get {url:?}: {why}"));
    match net.open(address, port) {
        Link::TimedOut
        | Link::Open(Peer {
            speaks: Speaks::Silence,
            ..
        }) => failed(SILENT.to_owned()),
        Link::Open(Peer {
            speaks: Speaks::Resets,
            source,
            ..
        }) => failed(go::reset(net.os(), source, &at)),
        Link::Open(peer) => match net.ask(&peer, &Asked::get(&format!("/{request}"))) {
            Some(answer) => Ok(answer.body),
            None => failed(SILENT.to_owned()),
        },
        Link::Refused => failed(go::refused(net.os(), "tcp", &at)),
        Link::NoRoute => failed(go::no_route(net.os(), "tcp", &at)),
        Link::Unreachable => failed(go::unreachable(net.os(), "tcp", &at)),
    }
}

fn dial_udp(
    net: &dyn Net,
    address: std::net::IpAddr,
    port: u16,
    request: &str,
) -> Result<String, String> {
    match net.datagram(address, port, request) {
        Datagram::Answered(text) => Ok(text),
        refused_or_lost => {
            let local = format!("{}:49152", go::host(net.source(address)));
            let at = format!("{}:{port}", go::host(address));
            let why = match refused_or_lost {
                Datagram::Refused => go::datagram_refused(net.os()),
                _ => "i/o timeout",
            };
            Err(format!(
                "reading from udp connection failed. err:'read udp {local}->{at}: {why}'"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::network_table::{OWN, Table};
    use super::*;
    use crate::topology::Os;

    #[test]
    fn names_of_headers_are_ascii() {
        let header = |name: &str| {
            let mut asked = Asked::get("/header");
            asked.headers.push((name.to_owned(), "1".to_owned()));
            let exchange = Exchange {
                hostname: "web",
                address: OWN,
                source: OWN,
            };
            let answer = answer(&asked, exchange, 8080, &Table::new(Os::Linux));
            (answer.status, answer.body)
        };
        assert_eq!(
            header("x-own--a"),
            (200, "{\"X-Own--A\":[\"1\"]}".to_owned())
        );
        for name in ["é", "x-é", ""] {
            assert_eq!(header(name), (400, "400 Bad Request".to_owned()), "{name}");
        }
    }

    #[test]
    fn so_many_tries_are_made_and_no_more() {
        let dialled = |tries: &str| {
            let exchange = Exchange {
                hostname: "web",
                address: OWN,
                source: OWN,
            };
            let path = format!("/dial?request=hostname&host=10.0.0.1&port=80&tries={tries}");
            answer(&Asked::get(&path), exchange, 8080, &Table::new(Os::Windows))
        };
        let most = dialled("1000");
        assert_eq!(most.status, 200);
        assert_eq!(most.body.matches("Get ").count(), 1000);
        for tries in ["1001", "9223372036854775807"] {
            let refused = dialled(tries);
            assert_eq!(refused.status, 501, "{tries}");
            assert!(refused.body.contains("more than 1000 tries"), "{refused:?}");
        }
    }
}
