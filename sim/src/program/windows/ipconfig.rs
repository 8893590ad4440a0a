//! `ipconfig`: prints the adapter of a pod or a node.
//!
//! Layout: docker/for-win issue 6617.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::fault::FaultKind;
use crate::network::Origin;
use crate::program::Ran;
use crate::program::forms::Call;
use crate::program::web::net::Net;

/// Runs `ipconfig`.
pub(crate) fn run(call: &Call<'_>) -> Option<Ran> {
    let [] = call.words()?;
    let (place, net) = (call.place(), call.seat);
    let heading = "\nWindows IP Configuration\n\n\n".replace('\n', "\r\n");
    let missing = matches!(place.origin, Origin::Pod(_)) && net.suffers(FaultKind::AdapterMissing);
    if missing || place.apart {
        return Some(Ran::prints(heading));
    }
    let address = net.source(Ipv4Addr::UNSPECIFIED.into()).to_string();
    let prefix = address.rsplit_once('.').map_or("", |(prefix, _)| prefix);
    let (adapter, mask, gateway) = match place.origin {
        Origin::Pod(_) => ("eth0", "255.255.255.0", format!("{prefix}.1")),
        _ => ("Ethernet", "255.255.0.0", format!("{prefix}.254")),
    };
    let suffix = net.settings().searches.into_iter().next();
    let mut out = format!(
        "Ethernet adapter vEthernet ({adapter}):\n\n   \
         Connection-specific DNS Suffix  . : {}\n",
        suffix.unwrap_or_default()
    );
    if let second @ IpAddr::V6(_) = net.source(Ipv6Addr::UNSPECIFIED.into()) {
        out.push_str(&format!(
            "   IPv6 Address. . . . . . . . . . . : {second}\n"
        ));
    }
    out.push_str(&format!(
        "   IPv4 Address. . . . . . . . . . . : {address}\n   \
         Subnet Mask . . . . . . . . . . . : {mask}\n   \
         Default Gateway . . . . . . . . . : {gateway}\n"
    ));
    Some(Ran::prints(heading + &out.replace('\n', "\r\n")))
}
