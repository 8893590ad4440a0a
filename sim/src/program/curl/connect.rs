//! From a URL's host to a connection: the host's addresses, and the first that accepts.

use std::net::IpAddr;
use std::time::Duration;

use super::options::Options;
use super::transfer::Transfer;
use super::version::Build;
use crate::names::{Query, Resolver};
use crate::program::system_limit;
use crate::program::web::net::{Link, Net, Peer};
use crate::topology::Os;

/// lib/connect.c: curl also tries the next address when the first has taken this long, or has failed
/// (`--happy-eyeballs-timeout-ms`).
const HAPPY_EYEBALLS: Duration = Duration::from_millis(200);

/// The first connection that an address accepts, and when curl tried it; or the code, time and words of the
/// first failure.
pub(super) fn happily(
    net: &dyn Net,
    build: &Build,
    addresses: &[IpAddr],
    port: u16,
) -> Result<(Peer, Duration), (u32, Duration, &'static str)> {
    let mut begun = Duration::ZERO;
    let mut first = None;
    let mut last = Duration::ZERO;
    for address in addresses {
        let (code, took, system) = match net.open(*address, port) {
            Link::Open(peer) => return Ok((peer, begun)),
            link => failure(build, &link),
        };
        last = last.max(begun + took);
        begun += took.min(HAPPY_EYEBALLS);
        first = first.or(Some((code, system)));
    }
    let (code, system) = first.unwrap_or((7, "Network unreachable"));
    Err((code, last, system))
}

/// The code, the time and the system's words for a failed connection.
fn failure(build: &Build, link: &Link) -> (u32, Duration, &'static str) {
    let os = build.os;
    match link {
        // Windows takes about 2 s to report a refusal, since it repeats the SYN (curl issue 14144)
        Link::Refused | Link::Open(_) => {
            let took = if os == Os::Windows { 2045 } else { 0 };
            (7, Duration::from_millis(took), "Connection refused")
        }
        // Linux sends three ARP requests before it reports this
        Link::NoRoute if os == Os::Linux => (7, Duration::from_millis(3071), "No route to host"),
        Link::Unreachable if os == Os::Linux => (7, Duration::ZERO, "Network is unreachable"),
        Link::Forbidden => (7, Duration::from_millis(1), "Bad access"),
        Link::NoRoute | Link::Unreachable => (7, Duration::from_millis(1), "Network unreachable"),
        Link::TimedOut => {
            let system = match os {
                Os::Windows => "Timed out",
                Os::Linux => "Connection timed out",
            };
            let took = system_limit(os) + Duration::from_millis(42);
            (build.system_time_out(), took, system)
        }
    }
}

/// The addresses of a URL's host; `None` if it has none, after noting the failure in `transfer`.
pub(super) fn resolved(
    net: &dyn Net,
    build: &Build,
    options: &Options,
    name: &str,
    transfer: &mut Transfer,
) -> Option<Vec<IpAddr>> {
    let (answer, took) = net.find(&Query {
        by: match build.cares {
            true => Resolver::Cares,
            false => Resolver::System,
        },
        ..Query::address(name)
    });
    let limits = options.connect_timeout.into_iter().chain(options.max_time);
    if let Some(limit) = limits.min().filter(|limit| *limit < took) {
        // lib/multi.c: the text names the phase that took too long
        let took = limit + Duration::from_millis(1);
        let millis = took.as_millis();
        let error = format!("Resolving timed out after {millis} milliseconds");
        transfer.fails(28, &error, took);
        return None;
    }
    transfer.total += took;
    if let Ok(addresses) = answer {
        return Some(addresses);
    }
    let error = format!("Could not resolve host: {name}");
    transfer.fails(6, &error, Duration::from_millis(10));
    None
}
