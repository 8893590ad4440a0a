//! One transfer: from a URL to its result.

use std::net::IpAddr;
use std::time::Duration;

use super::options::Operation;
use super::{Build, Context};
use crate::network::{Backend, Outcome};
use crate::program::Reached;
use crate::program::serve::{self, Answer, Exchange};
use crate::topology::Os;

/// What a transfer gave; the variables of `-w` come from here.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfer {
    pub(super) url: String,
    /// Its place in the run, from 0.
    pub(super) number: usize,
    pub(super) code: u32,
    pub(super) error: String,
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) total: Duration,
    pub(super) connects: u32,
    pub(super) remote: Option<(IpAddr, u16)>,
    pub(super) local: Option<IpAddr>,
}

/// After this the system itself gives up, unless curl does earlier: Windows sends three SYNs in 21
/// s, Linux seven in 127.
fn system_limit(os: Os) -> Duration {
    Duration::from_secs(match os {
        Os::Windows => 21,
        Os::Linux => 127,
    })
}

/// Performs a GET.
pub(super) fn perform(
    context: &Context<'_>,
    operation: &Operation,
    url: &str,
    number: usize,
) -> Transfer {
    let transfer = Transfer {
        url: url.to_owned(),
        number,
        ..Transfer::default()
    };
    if let Some((scheme, _)) = url.split_once("://")
        && !matches!(scheme, "http" | "https")
    {
        // curl would speak more; nothing simulated answers it
        let error = format!("Protocol \"{scheme}\" not supported");
        return transfer.fails(1, &error, Duration::ZERO);
    }
    let Some(target) = Target::parse(url) else {
        return transfer.fails(
            3,
            "URL rejected: Malformed input to a URL function",
            Duration::ZERO,
        );
    };
    let Ok(reached) = context
        .view
        .reach(&context.place.origin, target.host, target.port)
    else {
        let error = format!("Could not resolve host: {}", target.host);
        return transfer.fails(6, &error, Duration::from_millis(12));
    };
    let limits = operation.connect_timeout.into_iter();
    match limits.chain(operation.max_time).min() {
        Some(limit) if limit < reached.looked_up => {
            // lib/multi.c: which phase it was that took too long
            let took = limit + Duration::from_millis(1);
            let error = format!(
                "Resolving timed out after {} milliseconds",
                took.as_millis()
            );
            transfer.fails(28, &error, took)
        }
        _ => finish(context, operation, &target, reached, transfer),
    }
}

fn finish(
    context: &Context<'_>,
    operation: &Operation,
    target: &Target<'_>,
    reached: Reached,
    transfer: Transfer,
) -> Transfer {
    let os = context.build.os();
    let failed = |code, took: Duration, plain: &str| {
        // `--connect-timeout` counts for the connection, `--max-time` for everything
        let limit = operation
            .connect_timeout
            .into_iter()
            .chain(operation.max_time)
            .min();
        match limit {
            Some(limit) if limit < took => {
                // lib/multi.c, `multi_handle_timeout`: the timer fires a millisecond late
                let took = limit + Duration::from_millis(1);
                let error = format!(
                    "Connection timed out after {} milliseconds",
                    took.as_millis()
                );
                transfer.clone().fails(28, &error, took)
            }
            _ => {
                transfer
                    .clone()
                    .fails(code, &unreachable(context.build, target, took, plain), took)
            }
        }
    };
    let (backend, source) = match reached.outcome {
        // A refusal takes Windows about 2 s: it repeats the SYN (curl issue 14144)
        Outcome::Refused => {
            let took = if os == Os::Windows { 2045 } else { 0 };
            return failed(7, Duration::from_millis(took), "Connection refused");
        }
        Outcome::NoRoute => {
            let took = if os == Os::Windows { 1 } else { 3071 };
            let plain = if os == Os::Windows {
                "Network unreachable"
            } else {
                "No route to host"
            };
            return failed(7, Duration::from_millis(took), plain);
        }
        // Since 7.88 curl turns the system's time-out into 28; before, it was a failed connection
        // like others
        Outcome::TimedOut => {
            let code = if context.build.version() >= (7, 88) {
                28
            } else {
                7
            };
            return failed(
                code,
                system_limit(os) + Duration::from_millis(42),
                "Timed out",
            );
        }
        Outcome::Reset => (None, None),
        // Nothing ends it but the caller's own limit, or the system's patience with a silent peer
        Outcome::Stalled => return transfer.stalls(operation.max_time.unwrap_or(system_limit(os))),
        Outcome::WrongAnswer => (Some(serve::captive()), None),
        Outcome::Answered { backend, source } => (
            Some(answer(context, &backend, target, reached.address, source)),
            Some(source),
        ),
    };
    let connected = Transfer {
        connects: 1,
        remote: Some((reached.address, target.port)),
        local: source,
        total: Duration::from_millis(4),
        ..transfer
    };
    let Some(Answer { status, body }) = backend else {
        // lib/cf-socket.c and the winsock texts of lib/strerror.c
        let error = match os {
            Os::Windows => "Recv failure: Connection was reset",
            Os::Linux => "Recv failure: Connection reset by peer",
        };
        return connected.fails(56, error, Duration::from_millis(6));
    };
    if target.tls {
        let error = match os {
            Os::Windows => {
                "schannel: next InitializeSecurityContext failed: SEC_E_INVALID_TOKEN (0x80090308) - \
                            The token supplied to the function is invalid"
            }
            Os::Linux => "TLS connect error: error:0A00010B:SSL routines::wrong version number",
        };
        return connected.fails(35, error, Duration::from_millis(6));
    }
    if operation.fail && status >= 400 {
        let error = format!("The requested URL returned error: {status}");
        return Transfer {
            status,
            ..connected
        }
        .fails(22, &error, Duration::from_millis(5));
    }
    let body = if operation.head { String::new() } else { body };
    Transfer {
        status,
        body,
        ..connected
    }
}

impl Transfer {
    fn stalls(self, took: Duration) -> Self {
        let took_ms = took.as_millis();
        let error =
            format!("Operation timed out after {took_ms} milliseconds with 0 bytes received");
        self.fails(28, &error, took)
    }

    fn fails(self, code: u32, error: &str, total: Duration) -> Self {
        Self {
            code,
            error: error.to_owned(),
            total,
            ..self
        }
    }
}

/// lib/connect.c: since 7.80 with the time, since 8.9 with curl's own words; before, with the
/// system's.
fn unreachable(build: Build, target: &Target<'_>, took: Duration, plain: &str) -> String {
    let Target { host, port, .. } = target;
    if build.version() >= (8, 9) {
        format!(
            "Failed to connect to {host} port {port} after {} ms: Could not connect to server",
            took.as_millis()
        )
    } else {
        format!("Failed to connect to {host} port {port}: {plain}")
    }
}

fn answer(
    context: &Context<'_>,
    backend: &Backend,
    target: &Target<'_>,
    address: IpAddr,
    source: IpAddr,
) -> Answer {
    match backend {
        Backend::Kubelet { .. } | Backend::ApiServer | Backend::Dns | Backend::Echo => {
            serve::tls_expected()
        }
        Backend::Outside { name } => serve::outside(name),
        Backend::Pod { pod, page } => {
            let address = context
                .view
                .world
                .pods
                .get(pod)
                .map_or(address, |pod| pod.address.into());
            serve::respond(
                *page,
                target.path,
                Exchange {
                    hostname: &pod.name,
                    address,
                    source,
                },
            )
        }
    }
}

/// The parts of a URL.
struct Target<'a> {
    tls: bool,
    host: &'a str,
    port: u16,
    path: &'a str,
}

impl<'a> Target<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let tls = match scheme {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let colon = authority
            .rfind(':')
            .filter(|at| !authority[*at..].contains(']'));
        let (host, port) = match colon {
            Some(at) => (&authority[..at], authority[at + 1..].parse().ok()?),
            None => (authority, if tls { 443 } else { 80 }),
        };
        let valid = !host.is_empty() && !host.contains([' ', '\t', '@']);
        valid.then_some(Self {
            tls,
            host,
            port,
            path: if path.is_empty() { "/" } else { path },
        })
    }
}
