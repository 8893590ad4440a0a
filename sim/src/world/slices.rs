//! The `EndpointSlices`, by name and by Service, and the backends that left lately.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::{Endpoint, Key, Slice};

/// How many backends that left are remembered for each Service.
const REMEMBERED: usize = 8;

/// The `EndpointSlices`, by name and by Service, and the backends that left lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slices {
    maps: Arc<SliceMaps>,
}

#[derive(Clone, Debug, Default)]
struct SliceMaps {
    by_key: BTreeMap<Key, Slice>,
    by_service: HashMap<Key, BTreeSet<Key>>,
    gone: HashMap<Key, Vec<Endpoint>>,
    /// The Services that once had backends and then none.
    emptied: HashSet<Key>,
    /// The backends of Services that were deleted.
    shared: HashSet<IpAddr>,
}

impl Slices {
    pub(crate) fn insert(&mut self, key: Key, slice: Slice) {
        let service = Key::new(&key.namespace, &slice.service);
        let left = self.take_out(&key);
        let maps = Arc::make_mut(&mut self.maps);
        let of_service = maps.by_service.entry(service.clone()).or_default();
        of_service.insert(key.clone());
        maps.by_key.insert(key, slice);
        if !left.is_empty()
            && self
                .for_service(&service)
                .all(|one| one.endpoints.is_empty())
        {
            Arc::make_mut(&mut self.maps)
                .emptied
                .insert(service.clone());
        }
        self.remember(&service, left);
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        let service = self.maps.by_key.get(key).map(|slice| slice.service.clone());
        let left = self.take_out(key);
        if let Some(service) = service {
            self.remember(&Key::new(&key.namespace, &service), left);
        }
    }

    /// The slices of a Service.
    pub(crate) fn for_service(&self, service: &Key) -> impl Iterator<Item = &Slice> {
        let keys = self.maps.by_service.get(service).into_iter().flatten();
        keys.filter_map(|key| self.maps.by_key.get(key))
    }

    /// The backends that were ready and have left a Service or are no longer ready, oldest first.
    pub(crate) fn gone(&self, service: &Key) -> &[Endpoint] {
        self.maps.gone.get(service).map_or(&[], Vec::as_slice)
    }

    fn take_out(&mut self, key: &Key) -> Vec<Endpoint> {
        let maps = Arc::make_mut(&mut self.maps);
        let Some(slice) = maps.by_key.remove(key) else {
            return Vec::new();
        };
        let service = Key::new(&key.namespace, &slice.service);
        if let Some(known) = maps.by_service.get_mut(&service) {
            known.remove(key);
            if known.is_empty() {
                maps.by_service.remove(&service);
            }
        }
        slice.endpoints
    }

    fn remember(&mut self, service: &Key, left: Vec<Endpoint>) {
        let here = self.for_service(service).flat_map(|slice| &slice.endpoints);
        let here = here.filter(|endpoint| endpoint.ready);
        let mut seen: HashSet<IpAddr> = here.map(|endpoint| endpoint.address).collect();
        let maps = Arc::make_mut(&mut self.maps);
        let gone = maps.gone.entry(service.clone()).or_default();
        gone.extend(left.into_iter().filter(|endpoint| endpoint.ready));
        gone.retain(|endpoint| seen.insert(endpoint.address));
        let surplus = gone.len().saturating_sub(REMEMBERED);
        gone.drain(..surplus);
        if gone.is_empty() {
            maps.gone.remove(service);
        }
    }

    /// Whether a Service once had backends and then none.
    pub(crate) fn was_emptied(&self, service: &Key) -> bool {
        self.maps.emptied.contains(service)
    }

    /// Whether a Service that was deleted led to a backend.
    pub(crate) fn was_shared(&self, backend: IpAddr) -> bool {
        self.maps.shared.contains(&backend)
    }

    /// Takes note that a Service is deleted, and forgets the backends that left it.
    pub(crate) fn forget(&mut self, service: &Key) {
        let here = self.for_service(service).flat_map(|slice| &slice.endpoints);
        // Its slices may be deleted before it
        let here = here.chain(self.gone(service));
        let backends: Vec<_> = here.map(|endpoint| endpoint.address).collect();
        let maps = Arc::make_mut(&mut self.maps);
        maps.gone.remove(service);
        maps.emptied.remove(service);
        maps.shared.extend(backends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Endpoint {
        /// A ready backend on no known node.
        pub(crate) fn ready(address: impl Into<IpAddr>) -> Self {
            Self {
                address: address.into(),
                node: None,
                hostname: None,
                ready: true,
                serving_last: false,
            }
        }
    }

    #[test]
    fn who_is_in_another_slice_has_not_gone() {
        let service = Key::new("test", "web");
        let key = |name| Key::new("test", name);
        let slice = |last: &[u8]| Slice {
            service: "web".to_owned(),
            ports: BTreeMap::new(),
            endpoints: last
                .iter()
                .map(|last| Endpoint::ready([10, 244, 1, *last]))
                .collect(),
        };
        let gone = |slices: &Slices| -> Vec<u8> {
            let gone = slices.gone(&service).iter().map(|each| each.address);
            gone.map(|address| match address {
                IpAddr::V4(address) => address.octets()[3],
                IpAddr::V6(_) => 0,
            })
            .collect()
        };
        let mut slices = Slices::default();
        slices.insert(key("one"), slice(&[1, 2, 3]));
        slices.insert(key("two"), slice(&[3, 4]));
        slices.insert(key("one"), slice(&[1]));
        assert_eq!(gone(&slices), [2], "3 is in the other");
        slices.remove(&key("two"));
        assert_eq!(gone(&slices), [2, 3, 4]);
        slices.insert(key("one"), slice(&[1, 3]));
        assert_eq!(gone(&slices), [2, 4], "3 is back");
        let mut unready = slice(&[1, 3]);
        unready.endpoints[0].ready = false;
        slices.insert(key("one"), unready);
        assert_eq!(gone(&slices), [2, 4, 1], "1 is no longer ready");
        slices.insert(key("one"), slice(&[1, 3]));
        assert_eq!(gone(&slices), [2, 4], "1 is ready again");
        slices.remove(&key("one"));
        assert_eq!(gone(&slices), [2, 4, 1, 3]);
        assert!(slices.maps.by_service.is_empty());
    }
}
