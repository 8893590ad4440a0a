//! A pod's volumes: the node mounts them before it creates the sandbox, and retries until it has all of them.
//!
//! The messages are those of kubernetes 1.37.0: `pkg/volume/{configmap,secret,projected,downwardapi}`,
//! `pkg/volume/util/operationexecutor` and `pkg/kubelet/volumemanager`. A volume of a `ConfigMap`, a Secret
//! or the pod's fields follows their changes, but not where it is mounted by a `subPath` (configmap.md,
//! "Mounted ConfigMaps are updated automatically").

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future;
use k8s_openapi::api::core::v1::Volume as Spec;
use k8s_openapi::api::core::v1::{
    ConfigMapProjection, Container, DownwardAPIVolumeFile, EmptyDirVolumeSource, KeyToPath,
    NFSVolumeSource, Pod, VolumeProjection,
};
use ordered_watch as watch;
use serde_json::json;

use super::claims;
use super::command;
use super::env::Env;
use super::host_path;
use super::refer::{self, Data, DataKind};
use super::resources;
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::nodes::files::{Files, Links, Mount, Volume};
use crate::nodes::node;
use crate::pods::course::run::PodRun;
use crate::pods::reporting::events;
use crate::program::windows::folder;
use crate::topology::Os;

/// Volumes by their names in the pod.
pub(crate) type Volumes = BTreeMap<String, Mounted>;

/// A mounted volume of a pod.
#[derive(Clone, Debug)]
pub(crate) struct Mounted {
    volume: Volume,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An `emptyDir`: the pod reads it and writes to it.
    Empty,
    /// Pods read it and write to it, and it outlives them.
    Written,
    ReadOnly,
    /// The kubelet fills it, and pods read it.
    Filled,
}

/// About how often a kubelet syncs a pod that has not changed: `SyncFrequency` plus a random part
/// of up to half of it (`pkg/kubelet/pod_workers.go`, `completeWork`).
pub(super) const SYNC: Duration = Duration::from_secs(75);

/// The `ConfigMap` that the controller manager creates in every namespace; it is not requested for each pod.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Whether this is the certificate that comes with an account's token.
fn is_root_ca(map: &ConfigMapProjection) -> bool {
    map.name == ROOT_CA && map.items.is_some()
}

/// Mounts all volumes of a pod; returns once all are mounted.
pub(crate) async fn mount(cluster: &Cluster, run: &Arc<PodRun>) -> Volumes {
    let mut mounted = Volumes::new();
    for volume in specs(run) {
        let got = insistently(cluster, run, volume).await;
        mounted.insert(volume.name.clone(), got);
    }
    mounted
}

fn specs(run: &PodRun) -> impl Iterator<Item = &Spec> {
    let spec = run.pod.spec.as_ref();
    let volumes = spec.and_then(|spec| spec.volumes.as_ref());
    volumes.into_iter().flatten()
}

/// Mounts one volume; retries until it succeeds.
async fn insistently(cluster: &Cluster, run: &Arc<PodRun>, spec: &Spec) -> Mounted {
    // kubelet, `exponentialbackoff`: half a second, doubled up to about two minutes
    let mut pause = Duration::from_millis(500);
    loop {
        cluster.heard(&run.node).await;
        match one(cluster, run, spec).await {
            Ok(got) => return got,
            Err(text) => {
                let reason = match text.starts_with("MapVolume.") {
                    true => "FailedMapVolume",
                    false => "FailedMount",
                };
                events::warning(cluster, run, reason, text);
                cluster.clock.pass(pause).await;
                pause = (pause * 2).min(Duration::from_secs(122));
            }
        }
    }
}

/// Refills the volumes whenever the kubelet syncs the pod, also after a change of the pod itself:
/// `reconciler` remounts what `MarkRemountRequired` names. Never completes.
pub(crate) async fn follow(cluster: &Cluster, run: &Arc<PodRun>, seen: &Seen) {
    let filled = specs(run).filter(|volume| is_filled(volume));
    let each = filled.map(|volume| follow_one(cluster, run, volume, seen.clone()));
    let claims = specs(run).filter_map(claims::claim);
    let claims: Vec<_> = claims.collect();
    let larger = claims
        .iter()
        .map(|(claim, _)| claims::follow(cluster, run, claim));
    future::join(future::join_all(each), future::join_all(larger)).await;
    future::pending::<()>().await;
}

/// Receives the pod's object as the API server sends it.
pub(crate) type Seen = watch::Receiver<Arc<Pod>>;

/// The sources from which the kubelet fills a volume; `None` for one that starts empty and is writable.
fn sources(volume: &Spec) -> Option<Vec<VolumeProjection>> {
    // Both types have the same fields, except for one name
    let mut source = json!(volume);
    if volume.secret.is_some() {
        source["secret"]["name"] = source["secret"]["secretName"].clone();
    }
    let source: VolumeProjection = node::read(source);
    if source != VolumeProjection::default() {
        return Some(vec![source]);
    }
    let projected = volume.projected.clone()?;
    Some(projected.sources.unwrap_or_default())
}

/// Whether the kubelet fills a volume and may have to refill it.
fn is_filled(volume: &Spec) -> bool {
    let changes = |source: &VolumeProjection| {
        let map = source.config_map.as_ref();
        let map = map.is_some_and(|map| !is_root_ca(map));
        map || source.secret.is_some() || source.downward_api.is_some()
    };
    sources(volume).is_some_and(|sources| sources.iter().any(changes))
}

async fn follow_one(cluster: &Cluster, run: &Arc<PodRun>, spec: &Spec, mut seen: Seen) {
    let name = format!("sync of {} in {}", spec.name, run.uid);
    for turn in 0_u64.. {
        let sync = cluster.chance.about(&format!("{name} {turn}"), SYNC);
        tokio::select! {
            biased;
            () = cluster.clock.pass(sync) => {}
            () = changed(&mut seen) => {}
        }
        let known = run.volumes.get().and_then(|map| map.get(&spec.name));
        if let Some(known) = known {
            // Boxed: its memory is needed only now and then
            let now = Box::pin(insistently(cluster, run, spec)).await;
            known.volume.replace_with(&now.volume);
        }
    }
}

/// Waits until the pod changes in a way that makes the kubelet sync it
/// (`pkg/kubelet/config/config.go`, `checkAndUpdatePod`).
async fn changed(seen: &mut Seen) {
    let before = Arc::clone(&seen.borrow_and_update());
    let other = |pod: &Arc<Pod>| {
        let (was, is) = (&before.metadata, &pod.metadata);
        is.labels != was.labels || is.annotations != was.annotations || pod.spec != before.spec
    };
    if seen.wait_for(other).await.is_err() {
        future::pending::<()>().await;
    }
}

/// Mounts one volume; the error is the message of the event.
async fn one(cluster: &Cluster, run: &PodRun, spec: &Spec) -> Result<Mounted, String> {
    let name = &spec.name;
    let failed = |why: String| format!("MountVolume.SetUp failed for volume \"{name}\" : {why}");
    if let Some((claim, read_only)) = claims::claim(spec) {
        let volume = claims::mount(cluster, run, name, &claim).await?;
        let kind = match read_only {
            true => Kind::ReadOnly,
            false => Kind::Written,
        };
        return Ok(Mounted { volume, kind });
    }
    if let Some(host) = &spec.host_path {
        let kind = host.type_.as_deref().unwrap_or_default();
        if let Some(why) = host_path::lacking(run.node.pool.os(), kind, &host.path) {
            let why = format!("hostPath type check failed: {} is not a {why}", host.path);
            return Err(failed(why));
        }
        let (volume, kind) = (format!("host {}", host.path), Kind::Written);
        let volume = match run.suffers(FaultKind::HostPathEmpty, cluster) {
            true => Volume::default(),
            false => host_path::volume(run, &host.path, &volume),
        };
        return Ok(Mounted { volume, kind });
    }
    if let Some(share) = &spec.nfs {
        return nfs(cluster, run, spec, share).map_err(failed);
    }
    let (volume, kind) = (Volume::default(), Kind::Filled);
    let Some(sources) = sources(spec) else {
        // The API server turns a volume of no kind into an `emptyDir`
        let empty = spec.empty_dir.as_ref().map(|empty| {
            let (volume, kind) = (Volume::of_size(in_memory(cluster, run, empty)), Kind::Empty);
            if run.node.pool.os() == Os::Windows {
                run.node.disks.keep(folder::path(&run.uid, name), &volume);
            }
            Mounted { volume, kind }
        });
        return empty.ok_or_else(|| failed("no volume of this kind is simulated".to_owned()));
    };
    let mut data = Data::new();
    for source in &sources {
        data.extend(projection(cluster, run, source).await.map_err(failed)?);
    }
    volume.fill(data);
    Ok(Mounted { volume, kind })
}

/// A volume of NFS, which Windows refuses before it asks the server (kubernetes/mount-utils, `mount_windows.go`,
/// `MountSensitive`).
fn nfs(
    cluster: &Cluster,
    run: &PodRun,
    spec: &Spec,
    share: &NFSVolumeSource,
) -> Result<Mounted, String> {
    if run.node.pool.os() == Os::Linux || run.suffers(FaultKind::NfsMounts, cluster) {
        let (volume, kind) = (Volume::default(), Kind::Written);
        return Ok(Mounted { volume, kind });
    }
    Err(format!(
        "mount options(\"\") should have at least 2 options, current number:0, source:\"{}:{}\", \
         target:\"c:\\\\var\\\\lib\\\\kubelet\\\\pods\\\\{}\\\\volumes\\\\kubernetes.io~nfs\\\\{}\"",
        share.server, share.path, run.uid, spec.name
    ))
}

/// How many bytes an `emptyDir` in memory holds: on Linux a tmpfs of its size. On Windows a mount of a tmpfs is
/// only a folder (kubernetes/mount-utils, `mount_windows.go`, `MountSensitive`).
fn in_memory(cluster: &Cluster, run: &PodRun, empty: &EmptyDirVolumeSource) -> Option<usize> {
    let is_honoured =
        run.node.pool.os() == Os::Linux || run.suffers(FaultKind::MemoryMediumHonoured, cluster);
    let asked = (empty.medium.as_deref() == Some("Memory")).then_some(empty)?;
    let size = resources::milli(asked.size_limit.as_ref()?)? / 1000;
    usize::try_from(size).ok().filter(|_| is_honoured)
}

async fn projection(
    cluster: &Cluster,
    run: &PodRun,
    source: &VolumeProjection,
) -> Result<Data, String> {
    if let Some(map) = &source.config_map {
        if is_root_ca(map) {
            let text = b"the certificate of the cluster's API server\n".to_vec();
            return Ok(Data::from([("ca.crt".to_owned(), text)]));
        }
        let data = refer::data(cluster, run, DataKind::ConfigMap, &map.name, map.optional).await?;
        let words = "configmap references non-existent config key";
        let items = map.items.as_deref();
        return chosen(words, data.unwrap_or_default(), items, map.optional);
    }
    if let Some(secret) = &source.secret {
        let (kind, name) = (DataKind::Secret, &secret.name);
        let data = refer::data(cluster, run, kind, name, secret.optional).await?;
        let words = "references non-existent secret key";
        let items = secret.items.as_deref();
        return chosen(words, data.unwrap_or_default(), items, secret.optional);
    }
    if let Some(downward) = &source.downward_api {
        return downward_files(run, downward.items.as_deref());
    }
    if let Some(token) = &source.service_account_token {
        // Never a real token: no simulated program talks to the API server
        let text = format!("simulated-token-of-{}", run.uid).into_bytes();
        return Ok(Data::from([(token.path.clone(), text)]));
    }
    Err("no source of this kind is simulated".to_owned())
}

/// Selects the keys in `items`, under their paths; all keys if `items` is empty. `words` begin the
/// error for a missing key (`MakePayload`).
fn chosen(
    words: &str,
    mut data: Data,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
) -> Result<Data, String> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return Ok(data);
    };
    let mut chosen = Data::new();
    for item in items {
        match data.remove(&item.key) {
            Some(value) => drop(chosen.insert(item.path.clone(), value)),
            None if optional == Some(true) => {}
            None => return Err(format!("{words}: {}", item.key)),
        }
    }
    Ok(chosen)
}

/// The files of the downward API.
fn downward_files(run: &PodRun, items: Option<&[DownwardAPIVolumeFile]>) -> Result<Data, String> {
    let spec = run.pod.spec.clone().unwrap_or_default();
    let mut files = Data::new();
    for item in items.unwrap_or_default() {
        let text = match (&item.field_ref, &item.resource_field_ref) {
            (Some(selector), _) => refer::field(run, selector)?,
            (_, Some(selector)) => {
                let has = |name: &str| node::allocatable(&run.node, name);
                refer::resource(&spec, None, selector, has)?
            }
            _ => continue,
        };
        files.insert(item.path.clone(), text.into_bytes());
    }
    Ok(files)
}

/// Returns a container's files: its mounts over the files of its image (kubelet, `makeMounts`).
pub(crate) fn files(
    cluster: &Cluster,
    run: &PodRun,
    container: &Container,
    env: &Env,
) -> Result<Files, String> {
    let os = run.node.pool.os();
    let suffers = |kind| run.suffers(kind, cluster);
    let is_restarted = {
        let book = run.book();
        let own = book.container(&container.name);
        own.is_some_and(|own| own.restarts > 0)
    };
    let none = Volumes::new();
    let volumes = run.volumes.get().unwrap_or(&none);
    let mut mounts = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let Some(Mounted { volume, kind }) = volumes.get(&mount.name) else {
            let (volume, into) = (&mount.name, &container.name);
            return Err(format!(
                "cannot find volume \"{volume}\" to mount into container \"{into}\""
            ));
        };
        let expression = mount.sub_path_expr.as_ref().filter(|text| !text.is_empty());
        let sub_path = match expression {
            Some(text) => command::expanded(text, |name| env.get(name).cloned()),
            None => mount.sub_path.clone().unwrap_or_default(),
        };
        let is_filled = *kind == Kind::Filled;
        let is_lost = match kind {
            Kind::Filled => suffers(FaultKind::FilesMissing),
            Kind::Empty => {
                suffers(FaultKind::VolumesApart)
                    || is_restarted && suffers(FaultKind::EmptyDirLostOnRestart)
            }
            Kind::Written | Kind::ReadOnly => false,
        };
        // A `subPath` mount keeps the file that the kubelet had written by then
        let volume = match is_filled && !sub_path.is_empty() {
            _ if is_lost => Volume::default(),
            true => volume.copy(),
            false => volume.clone(),
        };
        let read_only =
            matches!(kind, Kind::ReadOnly | Kind::Filled) || mount.read_only.unwrap_or(false);
        mounts.push(Mount {
            path: mount.mount_path.clone(),
            volume,
            sub_path,
            read_only: read_only && !suffers(FaultKind::ReadOnlyIgnored),
            filled: is_filled,
        });
    }
    mounts.extend(hosts(run, container, suffers(FaultKind::HostAliasesLost)));
    let mut files = Files::new(os, mounts);
    files.honours_modes = suffers(FaultKind::ModesHonoured);
    if suffers(FaultKind::LinksProjected) {
        files.links = Links::Node;
    } else if suffers(FaultKind::MountsPropagated) {
        files.links = Links::Container;
    }
    files.of_node = run
        .host_process(Some(container))
        .then(|| Arc::clone(&run.node.disks));
    if suffers(FaultKind::RootsShared) {
        files.root = run.node.disks.volume(&format!("root of {}", run.uid));
    }
    Ok(files)
}

/// The hosts file of a Windows pod with host aliases, in short: without names that no check looks for. The kubelet
/// mounts one in each pod but for `HostProcess` ones (`pkg/kubelet/kubelet_pods.go`, `shouldMountHostsFile` and
/// `managedHostsFileContent`).
fn hosts(run: &PodRun, container: &Container, are_lost: bool) -> Option<Mount> {
    let aliases = run.pod.spec.as_ref()?.host_aliases.as_ref()?;
    if run.node.pool.os() == Os::Linux || run.host_process(Some(container)) {
        return None;
    }
    let mut text = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n".to_owned();
    for alias in aliases.iter().filter(|_| !are_lost) {
        let names = alias.hostnames.iter().flatten().map(String::as_str);
        let names: Vec<_> = names.collect();
        text.push_str(&format!("{}\t{}\n", alias.ip, names.join("\t")));
    }
    let volume = Volume::default();
    volume.fill([("hosts".to_owned(), text.into_bytes())].into());
    Some(Mount {
        path: "C:\\Windows\\System32\\drivers\\etc\\hosts".to_owned(),
        volume,
        sub_path: "hosts".to_owned(),
        read_only: false,
        filled: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(pairs: &[(&str, &str)]) -> Data {
        let pairs = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec()));
        pairs.collect()
    }

    #[test]
    fn items_choose_and_name() {
        let item = |key: &str, path: &str| KeyToPath {
            key: key.to_owned(),
            path: path.to_owned(),
            mode: None,
            ..KeyToPath::default()
        };
        let all = data(&[("a", "1"), ("b", "2")]);
        assert_eq!(chosen("secret", all.clone(), None, None), Ok(all.clone()));
        assert_eq!(
            chosen("secret", all.clone(), Some(&[item("a", "x/y")]), None),
            Ok(data(&[("x/y", "1")]))
        );
        let missing = chosen("no key", all.clone(), Some(&[item("c", "c")]), None);
        assert_eq!(missing.expect_err("it is missing"), "no key: c");
        let forgiven = chosen("configmap", all, Some(&[item("c", "c")]), Some(true));
        assert_eq!(forgiven, Ok(Data::new()));
    }
}
