//! The protocols of packets.

/// A protocol; a ping has no port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Protocol {
    #[default]
    Tcp,
    Udp,
    Icmp,
}

impl Protocol {
    /// The protocol of a port in the API, where an empty one means TCP; `None` for SCTP.
    pub(crate) fn named(name: Option<&str>) -> Option<Self> {
        match name.unwrap_or("TCP") {
            "TCP" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            _ => None,
        }
    }
}
