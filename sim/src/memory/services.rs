//! Services as the API server would take them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service, ServiceSpec};

use super::{Memory, MemoryError};
use crate::cluster::network;
use crate::families;
use crate::fault::FaultKind;
use crate::join::balancer;
use crate::network::Protocol;
use crate::world::Key;

impl Memory {
    /// Gives a Service the families and the addresses that it does not name itself.
    fn address_service(&mut self, key: &Key, spec: &mut ServiceSpec) -> Result<(), MemoryError> {
        if spec.cluster_ips.is_none() {
            spec.cluster_ips = spec.cluster_ip.clone().map(|address| vec![address]);
        }
        families::complete(spec, self.families).map_err(|refused| MemoryError::Service {
            service: key.to_string(),
            why: refused.to_string(),
        })?;
        let addresses = spec.cluster_ips.get_or_insert_default();
        if addresses.first().is_some_and(|first| first == "None") {
            return Ok(());
        }
        for family in spec.ip_families.iter().flatten().skip(addresses.len()) {
            let taken = |address: IpAddr| self.world.services.at(address).is_some();
            let given = match family.as_str() {
                families::IPV6 => self.given.address6(|at| taken(at.into())).map(IpAddr::from),
                _ => self.given.address(|at| taken(at.into())).map(IpAddr::from),
            };
            let address = given.ok_or_else(|| MemoryError::Exhausted {
                service: key.to_string(),
                what: "address",
            })?;
            addresses.push(address.to_string());
        }
        Ok(())
    }

    pub(super) fn add_service(
        &mut self,
        key: Key,
        mut service: Service,
    ) -> Result<(), MemoryError> {
        let spec = service.spec.get_or_insert_default();
        let kind = spec.type_.clone().unwrap_or_default();
        if kind != "ExternalName" {
            self.address_service(&key, spec)?;
        }
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
            let ports = spec.ports.iter().flatten();
            let named: BTreeSet<i32> = ports.filter_map(|port| port.node_port).collect();
            for port in spec.ports.iter_mut().flatten() {
                if port.node_port.is_none() {
                    let services = &self.world.services;
                    let taken = |port: u16| {
                        let has = |protocol| services.on_node_port(protocol, port).is_some();
                        has(Protocol::Tcp) || has(Protocol::Udp) || named.contains(&port.into())
                    };
                    let given = self.given.node_port(taken);
                    port.node_port =
                        Some(i32::from(given.ok_or_else(|| MemoryError::Exhausted {
                            service: key.to_string(),
                            what: "node port",
                        })?));
                }
            }
        }
        let external = network::service(&service).external;
        if kind == "LoadBalancer"
            && external.is_empty()
            && !self.world.faults.any(FaultKind::LoadBalancerExhausted)
        {
            let taken = |address: Ipv4Addr| self.world.services.at(address.into()).is_some();
            let address = balancer::free(taken).ok_or_else(|| MemoryError::Exhausted {
                service: key.to_string(),
                what: "address of a load balancer",
            })?;
            let status = service.status.get_or_insert_default();
            let balancer = status.load_balancer.get_or_insert_default();
            balancer.ingress = Some(vec![LoadBalancerIngress {
                ip: Some(address.to_string()),
                ..LoadBalancerIngress::default()
            }]);
        }
        let spec = service.spec.get_or_insert_default();
        if spec.selector.is_some() {
            self.selecting.insert(key.clone(), service.clone());
        } else {
            self.selecting.remove(&key);
        }
        self.world.services.insert(key, network::service(&service));
        Ok(())
    }
}
