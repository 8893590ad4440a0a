//! One transfer: from a URL to its result.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::connect::{bare, happily, resolved};
use super::options::Operation;
use super::version::Build;
use crate::program::http::{Answer, Asked};
use crate::program::net::{Net, Peer, Speaks};
use crate::topology::Os;

/// What a transfer gave; the variables of `-w` come from here.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfer {
    pub(super) url: String,
    /// The URL of the last request, with its scheme.
    pub(super) effective: String,
    /// Its place in the run, from 0.
    pub(super) number: usize,
    pub(super) code: u32,
    pub(super) error: String,
    pub(super) method: String,
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) redirect: String,
    pub(super) redirects: u32,
    /// What is written, headers included where they are asked for.
    pub(super) output: String,
    pub(super) downloaded: usize,
    pub(super) uploaded: usize,
    pub(super) total: Duration,
    pub(super) connects: u32,
    pub(super) remote: Option<(IpAddr, u16)>,
    pub(super) local: Option<IpAddr>,
    pub(super) scheme: &'static str,
}

/// The most redirects that curl follows (`--max-redirs`).
const MOST_REDIRECTS: u32 = 50;

/// The connections that stand from transfers before, by host and port. curl uses them again, so
/// that several requests of one run reach one backend of a Service.
#[derive(Debug, Default)]
pub(super) struct Kept(BTreeMap<(String, u16), (IpAddr, Peer)>);

/// Performs a transfer and the redirects that it is to follow.
pub(super) fn perform(
    net: &dyn Net,
    build: &Build,
    operation: &Operation,
    url: &str,
    number: usize,
    kept: &mut Kept,
) -> Transfer {
    let mut transfer = Transfer {
        url: url.to_owned(),
        effective: url.to_owned(),
        number,
        method: method(operation),
        uploaded: operation.data.as_deref().unwrap_or_default().len(),
        ..Transfer::default()
    };
    loop {
        once(net, build, operation, kept, &mut transfer);
        let follows = operation.follow && transfer.code == 0 && !transfer.redirect.is_empty();
        if !follows {
            return transfer;
        }
        if transfer.redirects == MOST_REDIRECTS {
            let error = format!("Maximum ({MOST_REDIRECTS}) redirects followed");
            transfer.fails(47, &error, Duration::ZERO);
            return transfer;
        }
        transfer.redirects += 1;
        transfer.effective = std::mem::take(&mut transfer.redirect);
        // lib/http.c, `Curl_http_follow`: 301 to 303 turn a POST into a GET
        if transfer.method == "POST" && matches!(transfer.status, 301..=303) {
            "GET".clone_into(&mut transfer.method);
        }
    }
}

fn method(operation: &Operation) -> String {
    match &operation.method {
        Some(method) => method.clone(),
        None if operation.head => "HEAD".to_owned(),
        None if operation.data.is_some() => "POST".to_owned(),
        None => "GET".to_owned(),
    }
}

fn closes(operation: &Operation) -> bool {
    let mut headers = operation.headers.iter();
    headers.any(|(name, value)| {
        name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close")
    })
}

/// One request.
fn once(
    net: &dyn Net,
    build: &Build,
    operation: &Operation,
    kept: &mut Kept,
    transfer: &mut Transfer,
) {
    let url = transfer.effective.clone();
    let target = match Target::parse(&url) {
        Ok(target) => target,
        Err(BadUrl::Protocol(scheme)) => {
            return transfer.fails(1, &build.bad_protocol(scheme), Duration::ZERO);
        }
        Err(BadUrl::Malformed(why)) => {
            return transfer.fails(3, &build.bad_url(why), Duration::ZERO);
        }
    };
    transfer.effective = target.url();
    let asked = request(operation, &target, &transfer.method);
    let key = (target.host.to_owned(), target.port);
    let scheme = if target.tls { "https" } else { "http" };
    if let Some((address, peer)) = kept.0.get(&key) {
        transfer.scheme = scheme;
        transfer.remote = Some((*address, target.port));
        transfer.local = Some(peer.source);
        transfer.total += Duration::from_millis(2);
        return match net.ask(peer, &asked) {
            Some(answer) => answered(operation, &target, &answer, transfer),
            None => silent(operation, transfer),
        };
    }
    let Some(addresses) = resolved(net, build, operation, target.host, transfer) else {
        return;
    };
    let os = build.os;
    let (code, took, system) = match happily(net, build, &addresses, target.port) {
        Ok((address, peer, waited)) => {
            transfer.connects += 1;
            transfer.scheme = scheme;
            transfer.remote = Some((address, target.port));
            transfer.local = Some(peer.source);
            transfer.total += waited + Duration::from_millis(4);
            match &peer.speaks {
                // lib/cf-socket.c and the winsock texts of lib/strerror.c
                Speaks::Resets => {
                    let error = match os {
                        Os::Windows => "Recv failure: Connection was reset",
                        Os::Linux => "Recv failure: Connection reset by peer",
                    };
                    transfer.fails(56, error, Duration::from_millis(2));
                }
                Speaks::Silence => silent(operation, transfer),
                _ if target.tls => transfer.fails(35, &not_tls(build), Duration::from_millis(2)),
                _ => {
                    let Some(answer) = net.ask(&peer, &asked) else {
                        return silent(operation, transfer);
                    };
                    answered(operation, &target, &answer, transfer);
                    // What failed is not used again (`--fail` ends in the middle of an answer), nor
                    // what the server closes because it was asked to (RFC 9112, 9.6)
                    if transfer.code == 0 && !closes(operation) {
                        kept.0.insert(key, (address, peer));
                    }
                }
            }
            return;
        }
        Err(failed) => failed,
    };
    let connect = operation.connect_timeout.filter(|limit| *limit < took);
    let all = operation.max_time.filter(|limit| *limit < took);
    let limit = connect.into_iter().chain(all).min();
    let Some(limit) = limit else {
        let error = build.unreachable(bare(target.host), target.port, took.as_millis(), system);
        return transfer.fails(code, &error, took);
    };
    // lib/multi.c, `multi_handle_timeout`: the timer fires a millisecond late
    let took = limit + Duration::from_millis(1);
    let by_connect_timeout = connect == Some(limit) && all != Some(limit);
    let error = build.timed_out(
        bare(target.host),
        target.port,
        took.as_millis(),
        by_connect_timeout,
    );
    transfer.fails(28, &error, took);
}

/// Without a limit of its own curl waits until it is ended; nobody waits for longer than this.
const FOR_EVER: Duration = Duration::from_hours(1);

/// lib/multi.c: the connection stands, and no answer comes.
fn silent(operation: &Operation, transfer: &mut Transfer) {
    let limit = operation.max_time.unwrap_or(FOR_EVER);
    let took = limit + Duration::from_millis(1);
    let error = format!(
        "Operation timed out after {} milliseconds with 0 bytes received",
        took.as_millis()
    );
    transfer.total = Duration::ZERO;
    transfer.fails(28, &error, took);
}

/// lib/vtls/schannel.c and lib/vtls/openssl.c on an answer that is not TLS.
fn not_tls(build: &Build) -> String {
    match build.os {
        Os::Windows => {
            "schannel: next InitializeSecurityContext failed: SEC_E_INVALID_TOKEN (0x80090308) - \
                        The token supplied to the function is invalid"
                .to_owned()
        }
        Os::Linux => {
            let before = if build.since(8, 9) {
                "TLS connect error"
            } else {
                let mut words = build.banner.split_whitespace();
                words
                    .find(|word| word.starts_with("OpenSSL/"))
                    .unwrap_or("OpenSSL")
            };
            format!("{before}: error:0A00010B:SSL routines::wrong version number")
        }
    }
}

fn request(operation: &Operation, target: &Target<'_>, method: &str) -> Asked {
    let agent = operation.agent.clone().unwrap_or_else(|| "curl".to_owned());
    let mut headers = vec![
        ("Host".to_owned(), target.host.to_owned()),
        ("User-Agent".to_owned(), agent),
        ("Accept".to_owned(), "*/*".to_owned()),
    ];
    if operation.data.is_some() {
        let form = "application/x-www-form-urlencoded".to_owned();
        headers.push(("Content-Type".to_owned(), form));
    }
    for (name, value) in &operation.headers {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        headers.push((name.clone(), value.clone()));
    }
    Asked {
        method: method.to_owned(),
        path: target.path.clone(),
        headers,
        body: operation.data.clone().unwrap_or_default(),
    }
}

fn answered(operation: &Operation, target: &Target<'_>, answer: &Answer, transfer: &mut Transfer) {
    transfer.status = answer.status;
    answer.content_type().clone_into(&mut transfer.content_type);
    let location = answer.headers.iter().find(|(name, _)| *name == "Location");
    transfer.redirect = match location {
        Some((_, to)) if (300..400).contains(&answer.status) => target.join(to),
        _ => String::new(),
    };
    if operation.fail && answer.status >= 400 {
        let error = format!("The requested URL returned error: {}", answer.status);
        return transfer.fails(22, &error, Duration::from_millis(1));
    }
    if operation.head || operation.include {
        transfer.output.push_str(&answer.head());
    }
    // What is redirected from is not written
    let redirected = operation.follow && !transfer.redirect.is_empty();
    transfer.downloaded = 0;
    if transfer.method != "HEAD" && !redirected {
        transfer.downloaded = answer.body.len();
        transfer.output.push_str(&answer.body);
    }
}

impl Transfer {
    pub(super) fn fails(&mut self, code: u32, error: &str, after: Duration) {
        self.code = code;
        error.clone_into(&mut self.error);
        self.total += after;
    }
}

/// The parts of a URL.
struct Target<'a> {
    tls: bool,
    host: &'a str,
    port: u16,
    /// As it was written.
    authority: &'a str,
    path: String,
}

/// Why a URL is none (`lib/urlapi.c`; the texts are those of `curl_url_strerror`).
enum BadUrl<'a> {
    Protocol(&'a str),
    Malformed(&'static str),
}

impl<'a> Target<'a> {
    fn parse(url: &'a str) -> Result<Self, BadUrl<'a>> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let tls = match scheme {
            "http" => false,
            "https" => true,
            other => return Err(BadUrl::Protocol(other)),
        };
        if url.contains([' ', '\t']) {
            return Err(BadUrl::Malformed("Malformed input to a URL function"));
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let colon = authority
            .rfind(':')
            .filter(|at| !authority[*at..].contains(']'));
        let (host, port) = match colon {
            Some(at) => {
                let port = authority[at + 1..].parse().map_err(|_| {
                    BadUrl::Malformed("Port number was not a decimal number between 0 and 65535")
                })?;
                (&authority[..at], port)
            }
            None => (authority, if tls { 443 } else { 80 }),
        };
        if host.is_empty() {
            return Err(BadUrl::Malformed("No host part in the URL"));
        }
        if host.contains('@') {
            return Err(BadUrl::Malformed("Bad hostname"));
        }
        let path = path.split('#').next().unwrap_or_default();
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            tls,
            host,
            port,
            authority,
            path: format!("{slash}{path}"),
        })
    }

    fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// Where a redirect leads.
    fn join(&self, to: &str) -> String {
        if to.contains("://") {
            return to.to_owned();
        }
        let scheme = if self.tls { "https" } else { "http" };
        let slash = if to.starts_with('/') { "" } else { "/" };
        format!("{scheme}://{}{slash}{to}", self.authority)
    }
}
