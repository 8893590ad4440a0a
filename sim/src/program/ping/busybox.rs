//! busybox's `ping`: networking/ping.c.

use std::net::IpAddr;
use std::time::Duration;

use crate::program::Ran;
use crate::program::web::net::{Echo, Net};

/// The size of an echo request in bytes.
const BYTES: usize = 56;

/// `ping -c 1 -W SECONDS ADDRESS`.
pub(crate) fn linux(args: &[String], net: &dyn Net) -> Option<Ran> {
    let args: &[String; 5] = args.try_into().ok()?;
    let ["-c", "1", "-W", wait, address] = args.each_ref().map(String::as_str) else {
        return None;
    };
    let wait = Duration::from_secs(wait.parse().ok()?);
    Some(ping(address.parse().ok()?, wait, net))
}

fn ping(address: IpAddr, wait: Duration, net: &dyn Net) -> Ran {
    let mut ran = Ran::default();
    ran.say(format!("PING {address} ({address}): {BYTES} data bytes\n"));
    let (received, lost, times) = match net.echo(address, BYTES) {
        // `ping4` and `ping6` print it
        Echo::NoWay => return ran.then(Ran::complains("ping: sendto: Network unreachable\n", 1)),
        Echo::Reply(ttl) => {
            let whole = BYTES + 8;
            ran.say(format!(
                "{whole} bytes from {address}: seq=0 ttl={ttl} time=0.085 ms\n"
            ));
            (1, 0, "round-trip min/avg/max = 0.085/0.085/0.085 ms\n")
        }
        Echo::Lost | Echo::Unreachable(_) => {
            ran.took += wait;
            (0, 100, "")
        }
    };
    ran.say(format!(
        "\n--- {address} ping statistics ---\n1 packets transmitted, {received} packets received, \
         {lost}% packet loss\n{times}"
    ));
    ran.code = u32::from(received == 0);
    ran
}
