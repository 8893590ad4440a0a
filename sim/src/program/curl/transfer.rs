//! One transfer: from a URL to its result.

use std::time::Duration;

use super::connect::{happily, resolved};
use super::options::Options;
use super::version::Build;
use crate::program::web::net::{Net, Peer, Speaks};
use crate::topology::Os;

/// The result of a transfer.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfer {
    /// The URL with its scheme and its path.
    pub(super) url: String,
    pub(super) code: u32,
    pub(super) error: String,
    pub(super) status: u16,
    pub(super) output: String,
    pub(super) total: Duration,
}

/// Performs a transfer; returns `None` for a URL that is not simulated.
pub(super) fn perform(
    net: &dyn Net,
    build: &Build,
    options: &Options,
    url: &str,
) -> Option<Transfer> {
    let Target {
        url,
        host,
        port,
        path,
        tls,
    } = Target::parse(url)?;
    if tls != options.blind {
        return None;
    }
    let mut transfer = Transfer {
        url,
        ..Transfer::default()
    };
    let Some(addresses) = resolved(net, build, options, host, &mut transfer) else {
        return Some(transfer);
    };
    let (code, took, system) = match happily(net, build, &addresses, port) {
        Ok((peer, waited)) => {
            transfer.total += waited + Duration::from_millis(4);
            // lib/cf-socket.c and the winsock texts of lib/strerror.c
            let reset = match build.os {
                Os::Windows => "Recv failure: Connection was reset",
                Os::Linux => "Recv failure: Connection reset by peer",
            };
            if tls {
                shake_hands(options, &peer, reset, &mut transfer);
            } else if peer.speaks == Speaks::Resets {
                transfer.fails(56, reset, Duration::from_millis(2));
            } else if let Some(answer) = net.ask(&peer, &path) {
                transfer.status = answer.status;
                if matches!(peer.speaks, Speaks::BreaksOff(_)) {
                    transfer.output = answer.first_half();
                    transfer.fails(56, reset, Duration::from_millis(2));
                } else {
                    transfer.output = answer.body;
                }
            } else {
                silent(options, &mut transfer);
            }
            return Some(transfer);
        }
        Err(failed) => failed,
    };
    let connect = options.connect_timeout.filter(|limit| *limit < took);
    let max_time = options.max_time.filter(|limit| *limit < took);
    if let Some(limit) = connect.into_iter().chain(max_time).min() {
        // lib/multi.c, `multi_handle_timeout`: the timer fires a millisecond late
        let took = limit + Duration::from_millis(1);
        let by_connect_timeout = connect == Some(limit) && max_time != Some(limit);
        let error = build.timed_out(host, port, took.as_millis(), by_connect_timeout);
        transfer.fails(28, &error, took);
    } else {
        let error = build.unreachable(host, port, took.as_millis(), system);
        transfer.fails(code, &error, took);
    }
    Some(transfer)
}

/// The words of Windows for an answer that is not of TLS (lib/vtls/schannel.c, lib/strerror.c).
const NO_TLS: &str = "schannel: next InitializeSecurityContext failed: SEC_E_INVALID_TOKEN (0x80090308) - The \
    token supplied to the function is invalid";

/// TLS on Windows, whose answer is not printed.
fn shake_hands(options: &Options, peer: &Peer, reset: &str, transfer: &mut Transfer) {
    let took = Duration::from_millis(2);
    match &peer.speaks {
        Speaks::Tls => {}
        Speaks::Resets => transfer.fails(35, reset, took),
        Speaks::Silence => silent(options, transfer),
        Speaks::Page(_) | Speaks::BreaksOff(_) | Speaks::Captive | Speaks::Outside(_) => {
            transfer.fails(35, NO_TLS, took);
        }
    }
}

/// How long curl waits without a limit; no caller waits longer than this.
const FOR_EVER: Duration = Duration::from_hours(1);

/// lib/multi.c: the connection is open, and no answer comes.
fn silent(options: &Options, transfer: &mut Transfer) {
    let limit = options.max_time.unwrap_or(FOR_EVER);
    let took = limit + Duration::from_millis(1);
    let error = format!(
        "Operation timed out after {} milliseconds with 0 bytes received",
        took.as_millis()
    );
    transfer.total = Duration::ZERO;
    transfer.fails(28, &error, took);
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
    /// The URL with its scheme and its path.
    url: String,
    /// The host, without the brackets of a literal address.
    host: &'a str,
    port: u16,
    path: String,
    tls: bool,
}

impl<'a> Target<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (tls, standard) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return None,
        };
        if url.contains([' ', '\t', '#', '@']) {
            return None;
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let colon = authority.rfind(':');
        let colon = colon.filter(|at| !authority[*at..].contains(']'));
        let (host, port) = match colon {
            Some(at) => (&authority[..at], authority[at + 1..].parse().ok()?),
            None => (authority, standard),
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let path = format!("{slash}{path}");
        (!host.is_empty()).then(|| Self {
            url: format!("{scheme}://{authority}{path}"),
            host: host.trim_start_matches('[').trim_end_matches(']'),
            port,
            path,
            tls,
        })
    }
}
