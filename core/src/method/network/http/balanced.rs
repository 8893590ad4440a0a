//! The request to a load balancer.

use super::aims::Aims;
use super::binding::Binding;
use crate::fixture::FixtureName;
use crate::method::error::Result;
use crate::method::exchange::Host;
use crate::text::printable;

impl<'a> Binding<'_, 'a> {
    /// The request to the load balancer of a fixture. From inside the cluster, one that traffic does not
    /// bypass says nothing of the cluster: the load balancer decides whether it admits its own backends (AWS,
    /// "Network Load Balancer troubleshooting": none without loopback).
    pub(super) fn balancer(&self) -> Result<Aims<'a>> {
        let (_, port) = self.address()?;
        let balancer = &self.at.fixture(FixtureName::LOAD_BALANCER)?.balancer;
        let lacks = || self.lacks("load balancer's address");
        let balancer = balancer.as_ref().ok_or_else(lacks)?;
        let within = self.at.from.is_none_or(|from| from.prober().is_some());
        if within && !balancer.short_cut {
            let at = printable(&balancer.at);
            let absent = format!("from within, {at} is the load balancer's own matter");
            return Ok(Aims::none(absent));
        }
        let host = Host::parse(&balancer.at);
        let host = host.ok_or_else(|| self.lacks("load balancer's address that is one"))?;
        let shown = format!("load balancer {host}");
        Ok(Aims::from_each([self.to(shown, host, port)]))
    }
}
