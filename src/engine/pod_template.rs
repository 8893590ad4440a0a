//! Pods whose placing is observed: what their manifests leave open, filled in for a pool.
//!
//! They are not placed as others are. Whatever begins with `winconform` in `manifests/sched/` stands
//! for something of the pool: names of nodes, its build, taints that are tolerated, images, its
//! `RuntimeClass`, and all of what a node has to give.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use winconform_core::config::{Image, Images};
use winconform_core::facts::{NodeFact, Pool, PoolName, WindowsBuild};
use winconform_core::method::{AIMED_AT, FixtureKey, SchedFixture};

use super::manifest::{ManifestError, handler, name, named, pod_spec, tolerations as tolerating};

/// What pods are aimed by.
pub(super) struct Ground<'g> {
    /// The cluster's pools.
    pub(super) pools: &'g BTreeMap<PoolName, Pool>,
    /// The cluster's nodes.
    pub(super) nodes: &'g [NodeFact],
    pub(super) images: &'g Images,
}

/// A fixture's manifest.
pub(super) fn as_written(fixture: SchedFixture) -> &'static str {
    match fixture {
        SchedFixture::Selected => include_str!("../../manifests/sched/selected.yaml"),
        SchedFixture::Tolerant => include_str!("../../manifests/sched/tolerant.yaml"),
        SchedFixture::Intolerant => include_str!("../../manifests/sched/intolerant.yaml"),
        SchedFixture::RuntimeClass => include_str!("../../manifests/sched/runtime-class.yaml"),
        SchedFixture::OsAlone => include_str!("../../manifests/sched/os-alone.yaml"),
        SchedFixture::Unselected => include_str!("../../manifests/sched/unselected.yaml"),
        SchedFixture::Builds => include_str!("../../manifests/sched/builds.yaml"),
        SchedFixture::Mixed => include_str!("../../manifests/sched/mixed.yaml"),
        SchedFixture::Requests => include_str!("../../manifests/sched/requests.yaml"),
        SchedFixture::Preemption => include_str!("../../manifests/sched/preemption.yaml"),
    }
}

/// Fills in what the objects of a fixture leave open.
pub(super) fn set_pod_templates(
    objects: &mut [Json],
    key: &FixtureKey,
    run: &str,
    ground: &Ground<'_>,
) -> Result<(), ManifestError> {
    let aim = Aim { key, ground };
    for object in objects {
        let noted = |key: &str| {
            let annotations = &object["metadata"]["annotations"];
            annotations[key].as_str().map(str::to_owned)
        };
        let (asks_for, priority) = (noted("winconform/asks-for"), noted("winconform/priority"));
        if object["kind"] == "RuntimeClass" {
            object["handler"] = json!(handler(key, aim.pool()?)?);
            aim.tolerate(&mut object["scheduling"])?;
        }
        let Some(spec) = pod_spec(object) else {
            continue;
        };
        aim.tolerate(spec)?;
        aim.select(spec)?;
        aim.images(spec)?;
        if let Some(resource) = asks_for {
            let all = aim.all_of(&resource)?;
            spec["containers"][0]["resources"]["requests"][&resource] = json!(all);
        }
        if let Some(class) = priority {
            spec["priorityClassName"] = json!(format!("{}-{run}", name(&class, key)));
        }
    }
    Ok(())
}

struct Aim<'a> {
    key: &'a FixtureKey,
    ground: &'a Ground<'a>,
}

impl Aim<'_> {
    fn unknown(&self, what: impl Into<String>) -> ManifestError {
        ManifestError::NotAimed {
            what: what.into(),
            fixture: self.key.clone(),
        }
    }

    fn pool(&self) -> Result<&Pool, ManifestError> {
        let name = self.key.pool.as_ref();
        let pool = name.and_then(|name| self.ground.pools.get(name));
        pool.ok_or_else(|| self.unknown("the pool"))
    }

    fn build(&self) -> Result<WindowsBuild, ManifestError> {
        let build = self.pool()?.build;
        build.ok_or_else(|| self.unknown("the build"))
    }

    /// The nodes of no pool are none.
    fn linux(&self) -> Option<&Pool> {
        self.ground.pools.get(&PoolName::linux())
    }

    /// Tolerations in the place of those that stand for all of a pool's.
    fn tolerate(&self, of: &mut Json) -> Result<(), ManifestError> {
        let Some(written) = of["tolerations"].as_array() else {
            return Ok(());
        };
        let mut tolerations = Vec::new();
        for toleration in written {
            let pool = match toleration["key"].as_str() {
                Some("winconform/taints-of-pool") => Some(self.pool()?),
                Some("winconform/taints-of-linux") => self.linux(),
                _ => {
                    tolerations.push(toleration.clone());
                    continue;
                }
            };
            for toleration in pool.into_iter().flat_map(tolerating) {
                if !tolerations.contains(&toleration) {
                    tolerations.push(toleration);
                }
            }
        }
        of["tolerations"] = json!(tolerations);
        Ok(())
    }

    /// The pool's build, and the names of nodes: as terms, of which one is enough.
    fn select(&self, spec: &mut Json) -> Result<(), ManifestError> {
        // Where there is none no null is written, either: applied a second time it would take away
        // what a RuntimeClass brings
        let selector = spec.get_mut("nodeSelector").and_then(Json::as_object_mut);
        for (_, value) in selector.into_iter().flatten() {
            if value == "winconform-build-of-pool" {
                *value = json!(self.build()?.to_string());
            }
        }
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let terms = spec
            .get_mut("affinity")
            .and_then(|affinity| affinity.get_mut("nodeAffinity")?.get_mut(required))
            .map(|required| &mut required["nodeSelectorTerms"]);
        let Some(terms) = terms else { return Ok(()) };
        let mut names = Vec::new();
        for term in terms.as_array().into_iter().flatten() {
            let of_pool = match term["matchFields"][0]["values"][0].as_str() {
                Some("winconform-pool") => &self.pool()?.nodes[..],
                Some("winconform-node") => self.pool()?.nodes.get(..1).unwrap_or_default(),
                Some("winconform-linux") => self.linux().map_or(&[][..], |pool| &pool.nodes),
                _ => return Err(self.unknown("whom an affinity means")),
            };
            names.extend(of_pool.iter().take(AIMED_AT));
        }
        // No term at all would let it go anywhere
        if names.is_empty() {
            return Err(self.unknown("any node"));
        }
        let names = names.into_iter().map(|name| named(name));
        *terms = json!(names.collect::<Vec<_>>());
        Ok(())
    }

    fn images(&self, spec: &mut Json) -> Result<(), ManifestError> {
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            let (role, build) = match container["image"].as_str() {
                // A manifest list with every system
                Some("winconform/agnhost") => (Image::AgnhostWindows, self.build()?),
                Some("winconform/servercore") => (Image::ServerCore, self.build()?),
                Some("winconform/servercore-fit") => (Image::ServerCore, self.build()?.fitting()),
                Some("winconform/servercore-unfit") => (Image::ServerCore, unfit(self.build()?)),
                _ => return Err(self.unknown("an image")),
            };
            let image = self.ground.images.of(role, Some(build));
            container["image"] =
                json!(image.ok_or_else(|| ManifestError::NoImage(self.key.clone()))?);
        }
        Ok(())
    }

    /// All that the pool's first node has to give of a resource.
    fn all_of(&self, resource: &str) -> Result<&String, ManifestError> {
        let first = self.pool()?.nodes.first();
        let node = self
            .ground
            .nodes
            .iter()
            .find(|node| Some(&node.name) == first);
        let all = node.and_then(|node| node.details.allocatable.get(resource));
        all.ok_or_else(|| self.unknown(format!("allocatable {resource}")))
    }
}

/// An image that a host does not run under process isolation, by the table of
/// [`WindowsBuild::fitting`].
fn unfit(host: WindowsBuild) -> WindowsBuild {
    match host {
        WindowsBuild::SERVER_2019 => WindowsBuild::SERVER_2022,
        _ => WindowsBuild::SERVER_2019,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::manifest;
    use super::*;
    use winconform_core::config::Durations;
    use winconform_core::facts::{NodeDetails, Os};
    use winconform_core::method::{FixtureName, PlacedPod};

    fn pools(build: WindowsBuild) -> BTreeMap<PoolName, Pool> {
        let pool = |os, build, nodes: [&str; 2], taints| Pool {
            os,
            build,
            nodes: nodes.map(str::to_owned).to_vec(),
            unusable: Vec::new(),
            runtimes: ["containerd://1.7.20".to_owned()].into(),
            taints,
        };
        let taint = json!({"key": "os", "value": "windows", "effect": "NoSchedule"});
        let linux = pool(Os::Linux, None, ["lin-a", "lin-b"], Vec::new());
        let windows = pool(Os::Windows, Some(build), ["win-a", "win-b"], vec![taint]);
        [
            (PoolName::linux(), linux),
            (PoolName::windows(build), windows),
        ]
        .into()
    }

    fn nodes(build: WindowsBuild) -> Vec<NodeFact> {
        let allocatable = [("cpu", "3920m"), ("memory", "14Gi")];
        let allocatable = allocatable.map(|(name, all)| (name.to_owned(), all.to_owned()));
        vec![NodeFact {
            name: "win-a".to_owned(),
            os: Os::Windows,
            build: Some(build),
            usable: true,
            taints: Vec::new(),
            details: NodeDetails {
                allocatable: allocatable.into(),
                ..NodeDetails::default()
            },
        }]
    }

    fn aimed(
        fixture: SchedFixture,
        build: WindowsBuild,
        pools: &BTreeMap<PoolName, Pool>,
        nodes: &[NodeFact],
    ) -> Result<Vec<Json>, ManifestError> {
        let key = FixtureName::Sched(fixture).at(Some(&PoolName::windows(build)));
        let (images, durations) = (Images::default(), Durations::default());
        let mut objects = manifest::objects(&key, "r1", None, &images, &durations, None)?;
        let ground = Ground {
            pools,
            nodes,
            images: &images,
        };
        set_pod_templates(&mut objects, &key, "r1", &ground)?;
        Ok(objects)
    }

    /// What is applied for a pool of this build.
    fn objects(fixture: SchedFixture, build: WindowsBuild) -> Vec<Json> {
        aimed(fixture, build, &pools(build), &nodes(build)).expect("aimed")
    }

    fn named<'o>(objects: &'o [Json], name: &str) -> &'o Json {
        let mut all = objects.iter();
        all.find(|object| object["metadata"]["name"] == *name)
            .expect(name)
    }

    fn pod_on(build: WindowsBuild, pod: PlacedPod) -> Json {
        let name = format!("{}-{}", pod.as_str(), PoolName::windows(build));
        named(&objects(pod.fixture(), build), &name).clone()
    }

    fn pod(pod: PlacedPod) -> Json {
        pod_on(WindowsBuild::SERVER_2022, pod)
    }

    /// The nodes that a pod may go to alone.
    pub(in super::super) fn names(pod: &Json) -> Vec<&str> {
        let affinity = &pod["spec"]["affinity"]["nodeAffinity"];
        let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
        let terms = required["nodeSelectorTerms"].as_array();
        let names = terms.into_iter().flatten().map(|term| {
            let name = term["matchFields"][0]["values"][0].as_str();
            name.expect("a node by its name")
        });
        names.collect()
    }

    #[test]
    fn nothing_is_left_open() {
        for &of in PlacedPod::ALL {
            let pod = pod(of);
            let mut spec = pod["spec"].clone();
            spec["priorityClassName"].take();
            if of == PlacedPod::ByRuntimeClass {
                let class = spec["runtimeClassName"].take();
                assert_eq!(class, "winconform-sched-windows-2022-r1");
            }
            // One pod finds another by a label
            let text = spec.to_string().replace("\"winconform/small\"", "");
            assert!(!text.contains("winconform"), "{text}");
        }
    }

    #[test]
    fn pods_are_aimed_at_whom_the_question_is_put_to() {
        assert_eq!(names(&pod(PlacedPod::Plain)), ["win-a", "win-b"]);
        let all = ["win-a", "win-b", "lin-a", "lin-b"];
        assert_eq!(names(&pod(PlacedPod::ByOs)), all);
        assert_eq!(names(&pod(PlacedPod::OsAlone)), ["lin-a", "lin-b"]);
        assert_eq!(names(&pod(PlacedPod::AllCpu)), ["win-a"]);
        let by_build = pod(PlacedPod::ByBuild);
        assert!(names(&by_build).is_empty());
        let selector = json!({"node.kubernetes.io/windows-build": "10.0.20348"});
        assert_eq!(by_build["spec"]["nodeSelector"], selector);
    }

    #[test]
    fn only_who_is_to_tolerate_does() {
        let taint = json!([{"key": "os", "operator": "Equal", "value": "windows",
            "effect": "NoSchedule"}]);
        for tolerant in [PlacedPod::Tolerant, PlacedPod::ByOs, PlacedPod::AllCpu] {
            assert_eq!(pod(tolerant)["spec"]["tolerations"], taint);
        }
        for intolerant in [
            PlacedPod::Plain,
            PlacedPod::Selecting,
            PlacedPod::ByRuntimeClass,
        ] {
            let own = &pod(intolerant)["spec"]["tolerations"];
            assert!(own.is_null() || *own == json!([]), "{own}");
        }
        // Applied again, it takes nothing away that its RuntimeClass brought
        let bare = pod(PlacedPod::ByRuntimeClass);
        for brought in ["nodeSelector", "tolerations"] {
            assert_eq!(bare["spec"].get(brought), None);
        }
        let objects = objects(SchedFixture::RuntimeClass, WindowsBuild::SERVER_2022);
        let name = &objects[0]["metadata"]["name"];
        assert_eq!(name, "winconform-sched-windows-2022-r1");
        assert_eq!(objects[0]["scheduling"]["tolerations"], taint);
    }

    #[test]
    fn all_of_a_node_is_what_it_has_to_give() {
        let requests = |of: PlacedPod| {
            let pod = pod(of);
            pod["spec"]["containers"][0]["resources"]["requests"].clone()
        };
        assert_eq!(requests(PlacedPod::AllCpu)["cpu"], "3920m");
        assert_eq!(requests(PlacedPod::AllMemory)["memory"], "14Gi");
        let build = WindowsBuild::SERVER_2022;
        let unknown = aimed(SchedFixture::Requests, build, &pools(build), &[]);
        let told = unknown.map_err(|error| error.to_string());
        let said = "allocatable cpu of sched-requests in windows-2022 is not known".to_owned();
        assert_eq!(told, Err(said));
    }

    #[test]
    fn nobody_elses_pod_can_be_preempted() {
        let objects = objects(SchedFixture::Preemption, WindowsBuild::SERVER_2022);
        let named = |name: &str| named(&objects, name);
        let [victim, preemptor] = ["victim", "preemptor"]
            .map(|role| named(&format!("winconform-{role}-windows-2022-r1")));
        assert_eq!(victim["value"], -2_000_000_000);
        assert_eq!(preemptor["value"], -1_999_999_999);
        assert_eq!(victim["preemptionPolicy"], "Never");
        for (pod, class) in [("victim", victim), ("preemptor", preemptor)] {
            let spec = &named(&format!("{pod}-windows-2022"))["spec"];
            assert_eq!(spec["priorityClassName"], class["metadata"]["name"]);
        }
        let witness = &named("witness-windows-2022")["spec"];
        assert_eq!(witness["priorityClassName"], "winconform-r1");
    }

    #[test]
    fn images_fit_by_the_published_table() {
        for (host, fit, unfit) in [
            (WindowsBuild::SERVER_2019, "ltsc2019", "ltsc2022"),
            (WindowsBuild::SERVER_2022, "ltsc2022", "ltsc2019"),
            (WindowsBuild::SERVER_2025, "ltsc2022", "ltsc2019"),
        ] {
            for (pod, tag) in [(PlacedPod::Fit, fit), (PlacedPod::Unfit, unfit)] {
                let pod = pod_on(host, pod);
                let image = format!("mcr.microsoft.com/windows/servercore:{tag}");
                assert_eq!(pod["spec"]["containers"][0]["image"], image);
            }
        }
    }

    #[test]
    fn who_could_go_anywhere_is_not_applied() {
        let build = WindowsBuild::SERVER_2022;
        let mut pools = pools(build);
        pools.remove(&PoolName::linux());
        let told = aimed(SchedFixture::OsAlone, build, &pools, &[]);
        let refused = matches!(told, Err(ManifestError::NotAimed { .. }));
        assert!(refused, "{told:?}");
    }
}
