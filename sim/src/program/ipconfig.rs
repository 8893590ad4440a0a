//! `ipconfig`: the adapter of a pod or a node, as `ipconfig /all` tells of it.
//!
//! Layout: docker/for-win issue 6617 and Kubernetes, test/e2e/windows/dns.go, which looks for the name
//! servers in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::forms::Call;
use super::net::Net;
use super::{Place, Ran, Started};
use crate::network::Origin;

/// Runs `ipconfig` and `ipconfig /all`.
pub(super) fn run(call: &Call<'_>) -> Option<Started> {
    let all = match call.args {
        [] => false,
        [flag] if flag == "/all" => true,
        _ => return None,
    };
    Some(Started::Ended(tell(call.place(), all, call.seat)))
}

/// What is told of an adapter.
pub(super) fn tell(place: &Place, all: bool, net: &dyn Net) -> Ran {
    let settings = net.settings();
    let address = net.source(Ipv4Addr::UNSPECIFIED.into()).to_string();
    let pod = matches!(place.origin, Origin::Pod(_));
    let prefix = address.rsplit_once('.').map_or("", |(prefix, _)| prefix);
    let (mask, gateway) = if pod {
        ("255.255.255.0", format!("{prefix}.1"))
    } else {
        ("255.255.0.0", format!("{prefix}.254"))
    };
    let mut out = "\nWindows IP Configuration\n\n".to_owned();
    let mut line = |name: &str, value: &str| out.push_str(&dotted(name, value));
    let suffix = settings
        .searches
        .first()
        .map(String::as_str)
        .unwrap_or_default();
    if all {
        line("Host Name", &place.hostname);
        line("Primary Dns Suffix", "");
        line("Node Type", "Hybrid");
        line("IP Routing Enabled", "No");
        line("WINS Proxy Enabled", "No");
        if !settings.searches.is_empty() {
            line(
                "DNS Suffix Search List",
                &settings.searches.join(&format!("\n{}", " ".repeat(39))),
            );
        }
    }
    out.push_str(if pod {
        "\nEthernet adapter vEthernet (eth0):\n\n"
    } else {
        "\nEthernet adapter vEthernet (Ethernet):\n\n"
    });
    let mut line = |name: &str, value: &str| out.push_str(&dotted(name, value));
    line("Connection-specific DNS Suffix", suffix);
    if all {
        line("Description", "Hyper-V Virtual Ethernet Container Adapter");
        line("Physical Address", "00-15-5D-00-00-01");
        line("DHCP Enabled", "No");
        line("Autoconfiguration Enabled", "Yes");
    }
    let preferred = if all { "(Preferred)" } else { "" };
    if let second @ IpAddr::V6(_) = net.source(Ipv6Addr::UNSPECIFIED.into()) {
        line("IPv6 Address", &format!("{second}{preferred}"));
    }
    line("IPv4 Address", &format!("{address}{preferred}"));
    line("Subnet Mask", mask);
    line("Default Gateway", &gateway);
    if all {
        let servers: Vec<String> = settings.servers.iter().map(ToString::to_string).collect();
        line(
            "DNS Servers",
            &servers.join(&format!("\n{}", " ".repeat(39))),
        );
        line("NetBIOS over Tcpip", "Disabled");
    }
    Ran::prints(out.replace('\n', "\r\n"))
}

/// A name, dots up to the 37th column, and its value.
fn dotted(name: &str, value: &str) -> String {
    let mut title = format!("   {name}");
    // Its own message table has a blank more there
    if name.ends_with("Suffix") {
        title.push(' ');
    }
    while title.len() < 37 {
        title.push_str(if title.len() % 2 == 0 { " " } else { "." });
    }
    format!("{title}: {value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Family;
    use crate::program::network_table::Table;
    use crate::program::tests::place;
    use crate::topology::Os;

    #[test]
    fn the_name_servers_and_the_suffix_are_in_it() {
        let place = place(Os::Windows, Family::Servercore);
        let ran = tell(&place, true, &Table::new(Os::Windows));
        let text = String::from_utf8(ran.stdout).expect("text");
        for line in [
            "   Host Name . . . . . . . . . . . . : prober\r\n",
            "   DNS Suffix Search List. . . . . . : test.svc.cluster.local\r\n",
            "   Connection-specific DNS Suffix  . : test.svc.cluster.local\r\n",
            "   IPv4 Address. . . . . . . . . . . : 10.244.2.9(Preferred)\r\n",
            "   DNS Servers . . . . . . . . . . . : 10.96.0.10\r\n",
        ] {
            assert!(text.contains(line), "`{line}` is not in {text}");
        }
    }
}
