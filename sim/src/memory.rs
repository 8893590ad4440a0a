//! The same network and programs without any API server, any waiting and any socket.
//!
//! Objects are put in as JSON, as a client of the API would see them; pods run at once, on the node
//! that they name. What controllers and the API server would add is added in its least: addresses
//! of Services, their load balancers' too, node ports, and an `EndpointSlice` for each Service that selects pods and has none
//! of its own. The same objects, faults and requests in the same order give the same replies.

mod derive;
mod error;
mod outside;
mod ready;
mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cluster::NodeState;
use crate::cluster::network;
use crate::families;
use crate::fault::{FaultKind, FaultSet};
use crate::given::Given;
use crate::image::{self, Image};
use crate::node;
use crate::pods::{command, run::PodRun};
use crate::program::{self, Input, Place, Started, Turns, View};
use crate::topology::{IpFamilies, Topology};
use crate::world::policy::Policy;
use crate::world::{self, Key, Told, World};
pub use error::MemoryError;

/// A cluster in memory.
pub struct Memory {
    world: World,
    nodes: BTreeMap<String, Arc<NodeState>>,
    /// Where exec finds itself, by pod and container.
    places: BTreeMap<(Key, String), Place>,
    /// The Services that select pods, for the slices that nobody else makes.
    selecting: BTreeMap<Key, Service>,
    /// The pods that are not ready.
    unready: BTreeSet<Key>,
    turns: Turns,
    given: Given,
    families: IpFamilies,
}

/// An exec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container; the first if none is named.
    pub container: Option<String>,
    /// The command and its arguments.
    pub argv: Vec<String>,
    /// The whole of its input.
    pub stdin: Vec<u8>,
}

/// What came of an exec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The program has ended.
    Ended {
        /// What it printed.
        stdout: Vec<u8>,
        /// What it complained of.
        stderr: Vec<u8>,
        /// Its exit code: 32 bits without sign, as the runtime tells it.
        code: u32,
        /// How long it would have taken.
        took: Duration,
    },
    /// It would run until it is ended, or was still at work after an hour, 10,000 turns of its loops
    /// or 10 MiB of output: whoever waits for it ends it himself.
    Endless {
        /// What it printed by then.
        stdout: Vec<u8>,
        /// What it complained of by then.
        stderr: Vec<u8>,
    },
    /// The runtime cannot start it, in its words.
    Refused(String),
}

impl Memory {
    /// The nodes of a topology, and the Service of the cluster's DNS on the first Linux node.
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let mut world = World::default();
        if !topology.outside {
            Arc::make_mut(&mut world.network).outside.clear();
        }
        let mut nodes = BTreeMap::new();
        for (spec, number) in topology.nodes.iter().zip(1_u16..) {
            let [high, low] = number.to_be_bytes();
            let address = Ipv4Addr::new(127, 77, high, low);
            let view = world::Node::new(spec.pool, address, 10250, [10, 128 + high, low])
                .connected(spec.network)
                .of_families(topology.ip_families);
            world.nodes.insert(spec.name.clone(), view.clone());
            let labels = node::labels(&spec.name, spec);
            let state = NodeState::new(spec.name.clone(), view, labels).with(spec.clone());
            nodes.insert(spec.name.clone(), Arc::new(state));
        }
        let mut memory = Self {
            world,
            nodes,
            places: BTreeMap::new(),
            selecting: BTreeMap::new(),
            unready: BTreeSet::new(),
            turns: Turns::new(seed),
            given: Given::default(),
            families: topology.ip_families,
        };
        memory.add_dns(topology);
        memory
    }

    /// Adds an object, or replaces the one of its name: a Pod, Service, `EndpointSlice`,
    /// `NetworkPolicy` or Namespace.
    pub fn apply(&mut self, object: &Value) -> Result<(), MemoryError> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let key = key(object);
        match kind {
            "Pod" => self.add_pod(&key, read(kind, object)?)?,
            "Service" => self.add_service(key, read(kind, object)?)?,
            "EndpointSlice" => {
                let slice: EndpointSlice = read(kind, object)?;
                self.world.slices.insert(key, network::slice(&slice));
            }
            "NetworkPolicy" => {
                let policy: NetworkPolicy = read(kind, object)?;
                Arc::make_mut(&mut self.world.policies).insert(key, Policy::by(&policy));
            }
            "Namespace" => {
                let namespace: Namespace = read(kind, object)?;
                let labels = network::labels(&namespace);
                Arc::make_mut(&mut self.world.namespaces).insert(key.name, labels);
            }
            other => return Err(MemoryError::Kind(other.to_owned())),
        }
        self.derive_slices();
        Ok(())
    }

    /// Removes an object, if there is one: a Pod, Service, `EndpointSlice`, `NetworkPolicy` or
    /// Namespace.
    pub fn delete(&mut self, kind: &str, namespace: &str, name: &str) -> Result<(), MemoryError> {
        let key = Key::new(namespace, name);
        match kind {
            "Pod" => self.drop_pod(&key),
            "Service" => {
                self.world.services.remove(&key);
                for family in FAMILIES {
                    self.world.slices.remove(&derived(&key, family));
                }
                self.world.slices.forget(&key);
                self.selecting.remove(&key);
            }
            "EndpointSlice" => self.world.slices.remove(&key),
            "NetworkPolicy" => drop(Arc::make_mut(&mut self.world.policies).remove(&key)),
            "Namespace" => drop(Arc::make_mut(&mut self.world.namespaces).remove(name)),
            other => return Err(MemoryError::Kind(other.to_owned())),
        }
        self.derive_slices();
        Ok(())
    }

    /// What is broken from now on, and nothing else.
    pub fn break_with(&mut self, faults: FaultSet) {
        self.world.faults = faults;
    }

    /// The address of a pod, a Service (its own) or a node.
    pub fn address(&self, kind: &str, namespace: &str, name: &str) -> Option<IpAddr> {
        self.addresses(kind, namespace, name).first().copied()
    }

    /// The addresses of a pod, a Service (its own) or a node, in the order of its families.
    pub fn addresses(&self, kind: &str, namespace: &str, name: &str) -> Vec<IpAddr> {
        let key = Key::new(namespace, name);
        let of = match kind {
            "Pod" => self
                .world
                .pods
                .get(&key)
                .map(|pod| pod.addresses().collect()),
            "Service" => self
                .world
                .services
                .get(&key)
                .map(|own| own.addresses.clone()),
            "Node" => self
                .world
                .nodes
                .get(name)
                .map(|node| node.addresses().collect()),
            _ => None,
        };
        of.unwrap_or_default()
    }

    /// The address at which a load balancer answers for a Service.
    pub fn balancer(&self, namespace: &str, name: &str) -> Option<IpAddr> {
        let service = self.world.services.get(&Key::new(namespace, name))?;
        service.external.first().copied()
    }

    /// The node port of a Service's first port that has one.
    pub fn node_port(&self, namespace: &str, name: &str) -> Option<u16> {
        let service = self.world.services.get(&Key::new(namespace, name))?;
        service.ports.iter().find_map(|port| port.node_port)
    }

    /// Runs a program in a container.
    pub fn exec(&self, request: &Request) -> Result<Reply, MemoryError> {
        let key = Key::new(&request.namespace, &request.pod);
        let mut own = self.places.range((key.clone(), String::new())..);
        let wanted = request.container.as_deref();
        let place = own.by_ref().take_while(|((pod, _), _)| *pod == key);
        let place = place
            .filter(|((_, name), _)| wanted.is_none_or(|wanted| wanted == name))
            .map(|(_, place)| place)
            .next()
            .ok_or_else(|| MemoryError::Container {
                pod: key.to_string(),
                container: wanted.unwrap_or_default().to_owned(),
            })?;
        let started = program::start(
            place,
            &request.argv,
            &request.stdin.as_slice().into(),
            &self.view(),
        );
        Ok(match started {
            Started::Ended(ran) => Reply::Ended {
                took: ran.lasted(),
                stdout: ran.stdout,
                stderr: ran.stderr,
                code: ran.code,
            },
            Started::Serves { prints, .. } | Started::Stays { prints } => Reply::Endless {
                stdout: prints.into_bytes(),
                stderr: Vec::new(),
            },
            Started::Refused(refusal) => Reply::Refused(refusal.text(place.os, &key.name)),
        })
    }

    fn view(&self) -> View<'_> {
        View {
            world: &self.world,
            turns: &self.turns,
        }
    }

    fn add_pod(&mut self, key: &Key, pod: Pod) -> Result<(), MemoryError> {
        let named = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let named = named.unwrap_or_default();
        let Some(node) = self.nodes.get(&named).cloned() else {
            let pod = key.to_string();
            return Err(MemoryError::Node { pod, node: named });
        };
        if node.view.families == IpFamilies::IPv6 && node.pool.build().is_some() {
            let pod = key.to_string();
            return Err(MemoryError::NoIpv4 { pod, node: named });
        }
        // What there is stays, unless the new one can be
        let images = self.images(key, &pod, &node)?;
        let uid = pod.metadata.uid.clone().unwrap_or_else(|| key.to_string());
        let run = PodRun::new(key.clone(), uid.clone(), Arc::clone(&node), Arc::new(pod));
        let host_network = run.host_network();
        let leased = if host_network {
            Some(node.view.address)
        } else {
            node.lease_address().or_else(|| {
                let old = self.world.pods.get(key);
                let gives = old.is_some_and(|old| old.node == node.name && !old.host_network);
                gives.then(|| self.drop_pod(key));
                node.lease_address()
            })
        };
        let address = leased.ok_or_else(|| MemoryError::Address(key.to_string()))?;
        self.drop_pod(key);
        let seen = world::Pod {
            uid,
            host_network,
            ..world::Pod::new(&node.name, address, Told::by(&run.pod)).on(&node.view)
        };
        self.world.pods.insert(key.clone(), seen);
        let containers = run.pod.spec.iter().flat_map(|spec| &spec.containers);
        let mut all_run = true;
        for (container, image) in containers.clone().zip(images) {
            let place = run.place(container, &image);
            let argv = command::of(
                container,
                image.family,
                place.os,
                &command::literal(container),
            );
            let started = program::start(&place, &argv, &Input::default(), &self.view());
            match started {
                Started::Serves {
                    listening,
                    listening_udp,
                    ..
                } => {
                    if let Some(seen) = self.world.pods.get_mut(key) {
                        seen.listening.extend(listening);
                        seen.listening_udp.extend(listening_udp);
                    }
                }
                Started::Stays { .. } => {}
                Started::Ended(_) | Started::Refused(_) => all_run = false,
            }
            let at = (key.clone(), container.name.clone());
            self.places.insert(at, place);
        }
        if !all_run || !containers.into_iter().all(|each| self.is_ready(key, each)) {
            self.unready.insert(key.clone());
        }
        Ok(())
    }

    /// The image of each container.
    fn images(&self, key: &Key, pod: &Pod, node: &NodeState) -> Result<Vec<Image>, MemoryError> {
        let missing = self.world.suffers(FaultKind::ImageMissing, &node.name);
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let images = containers.map(|container| {
            let reference = container.image.as_deref().unwrap_or_default();
            image::pullable(reference, node.pool, missing, image::Demand::Fits).map_err(|failure| {
                MemoryError::Image {
                    pod: key.to_string(),
                    why: failure.0,
                }
            })
        });
        images.collect()
    }

    fn drop_pod(&mut self, key: &Key) {
        if let Some(pod) = self.world.pods.get(key)
            && !pod.host_network
            && let Some(node) = self.nodes.get(&pod.node)
        {
            node.release_address(pod.address);
        }
        self.world.pods.remove(key);
        self.unready.remove(key);
        self.places.retain(|(pod, _), _| pod != key);
    }
}

const FAMILIES: [&str; 2] = [families::IPV4, families::IPV6];

/// The slice that is made for a Service and a family.
fn derived(service: &Key, family: &str) -> Key {
    let name = format!("{}-derived-{}", service.name, family.to_lowercase());
    Key::new(&service.namespace, &name)
}

fn key(object: &Value) -> Key {
    let meta = &object["metadata"];
    let namespace = meta["namespace"]
        .as_str()
        .unwrap_or(match object["kind"].as_str() {
            Some("Namespace") => "",
            _ => "default",
        });
    Key::new(namespace, meta["name"].as_str().unwrap_or_default())
}

fn read<K: DeserializeOwned>(kind: &str, object: &Value) -> Result<K, MemoryError> {
    K::deserialize(object).map_err(|source| MemoryError::Object {
        kind: kind.to_owned(),
        name: key(object).to_string(),
        source,
    })
}

#[cfg(test)]
mod facets;
#[cfg(test)]
mod tests;
