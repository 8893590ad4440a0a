//! The addresses and node ports that an API server gives to Services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::families::IPV6;

/// Where the next search starts, so that a freed address or port is used again last.
#[derive(Debug, Default)]
pub(crate) struct Given {
    addresses: u32,
    addresses6: u32,
    node_ports: u32,
}

/// The part of kubeadm's 10.96.0.0/12 (its `--service-cidr`) after the first 256 addresses, which
/// people assign by hand.
const ADDRESSES: (Ipv4Addr, Ipv4Addr) = (
    Ipv4Addr::new(10, 96, 1, 1),
    Ipv4Addr::new(10, 111, 255, 254),
);

/// The part of kind's `fd00:10:96::/112` (pkg/apis/config/v1alpha4/default.go), by the last two bytes.
const ADDRESSES6: (Ipv6Addr, (u32, u32)) = (
    Ipv6Addr::new(0xfd00, 0x10, 0x96, 0, 0, 0, 0, 0),
    (0x100, 0xfffe),
);

/// kube-apiserver, `--service-node-port-range`: its default.
const NODE_PORTS: (u32, u32) = (30_000, 32_767);

/// Whether an address is in a range of Services.
pub(crate) fn is_in_range(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => u32::from(address) >> 20 == u32::from(ADDRESSES.0) >> 20,
        IpAddr::V6(address) => address.segments()[..7] == ADDRESSES6.0.segments()[..7],
    }
}

impl Given {
    /// Returns a free address; `None` if all are taken.
    pub(crate) fn address(&mut self, family: &str, taken: impl Fn(&str) -> bool) -> Option<String> {
        let (net, last) = ADDRESSES6;
        let four = (u32::from(ADDRESSES.0), u32::from(ADDRESSES.1));
        let six = |at: u32| Ipv6Addr::from(u128::from(net) | u128::from(at)).to_string();
        if family == IPV6 {
            return next(&mut self.addresses6, last, |at| taken(&six(at))).map(six);
        }
        let at = |at: u32| Ipv4Addr::from(at).to_string();
        next(&mut self.addresses, four, |it| taken(&at(it))).map(at)
    }

    /// Returns a free node port; `None` if all are taken.
    pub(crate) fn node_port(&mut self, taken: impl Fn(u16) -> bool) -> Option<u16> {
        let taken = |at: u32| u16::try_from(at).is_ok_and(&taken);
        u16::try_from(next(&mut self.node_ports, NODE_PORTS, taken)?).ok()
    }
}

/// Returns the first free number at or after `from`, continuing from the beginning.
fn next(from: &mut u32, (first, last): (u32, u32), taken: impl Fn(u32) -> bool) -> Option<u32> {
    let count = last - first + 1;
    let step = (0..count)
        .map(|step| (*from + step) % count)
        .find(|step| !taken(first + step))?;
    *from = (step + 1) % count;
    Some(first + step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_left_out_and_an_end_is_no_overflow() {
        let mut from = 0;
        let three = (u32::MAX - 2, u32::MAX);
        let last = |at: u32| at == u32::MAX;
        assert_eq!(next(&mut from, three, last), Some(u32::MAX - 2));
        assert_eq!(next(&mut from, three, last), Some(u32::MAX - 1));
        assert_eq!(next(&mut from, three, last), Some(u32::MAX - 2), "again");
        assert_eq!(next(&mut from, three, |_| true), None);
    }
}
