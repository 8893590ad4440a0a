//! busybox' `ping`: networking/ping.c.

use std::time::Duration;

use crate::names::Query;
use crate::program::net::{Echo, Lookup, Net};
use crate::program::{Ran, Started};

/// Bytes of an echo request.
const BYTES: usize = 56;

/// `ping -c COUNT -W SECONDS HOST`.
pub(in crate::program) fn linux(args: &[String], net: &dyn Net) -> Option<Started> {
    let [c, count, w, wait, name] = args else {
        return None;
    };
    if (c.as_str(), w.as_str()) != ("-c", "-W") {
        return None;
    }
    let count = count.parse().ok().filter(|count| *count > 0)?;
    let wait = Duration::from_secs(wait.parse().ok()?);
    Some(Started::Ended(ping(name, count, wait, net)))
}

fn ping(name: &str, count: u32, wait: Duration, net: &dyn Net) -> Ran {
    let (found, resolved) = net.find(&Query::address(name));
    let Lookup::Address(address) = Lookup::from(found) else {
        return Ran {
            took: resolved,
            ..Ran::complains(format!("ping: bad address '{name}'\n"), 1)
        };
    };
    let mut ran = Ran {
        took: resolved,
        ..Ran::default()
    };
    ran.say(format!("PING {name} ({address}): {BYTES} data bytes\n"));
    // `ping4` and `ping6`
    if net.echo(address, BYTES) == Echo::NoWay {
        return ran.then(Ran::complains("ping: sendto: Network unreachable\n", 1));
    }
    let mut received = 0;
    for sequence in 0..count {
        if let Echo::Reply(ttl) = net.echo(address, BYTES) {
            received += 1;
            let whole = BYTES + 8;
            ran.say(format!(
                "{whole} bytes from {address}: seq={sequence} ttl={ttl} time=0.085 ms\n"
            ));
        }
        if sequence + 1 < count {
            ran.took += Duration::from_secs(1);
        }
    }
    // `sendping_tail`: twice the longest round trip so far, a second at the least
    ran.took += match received {
        0 => wait,
        received if received < count => Duration::from_secs(1),
        _ => Duration::ZERO,
    };
    let lost = u64::from(count - received) * 100 / u64::from(count);
    let times = match received {
        0 => "",
        _ => "round-trip min/avg/max = 0.085/0.085/0.085 ms\n",
    };
    ran.say(format!(
        "\n--- {name} ping statistics ---\n{count} packets transmitted, {received} packets received, \
         {lost}% packet loss\n{times}"
    ));
    ran.code = u32::from(received == 0);
    ran
}
