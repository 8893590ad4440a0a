//! Containers that the runtime or the kubelet does not start, with their errors; and termination messages.

use super::sandbox::is_known;
use crate::fault::FaultKind;
use crate::nodes::image::{Family, Image};
use crate::nodes::node::runtime;
use crate::pods::container::Slot;
use crate::program::{ADMINISTRATOR, Place, Refusal};
use crate::topology::Os;

/// The kubelet's limits: `MaxContainerTerminationMessageLength`, and the limits of messages from logs.
const MESSAGE: usize = 4096;
const LOG_LINES: usize = 80;
const LOG_BYTES: usize = 2048;

/// Returns why the kubelet does not create the container: `verifyRunAsNonRoot`
/// (`pkg/kubelet/kuberuntime/security_context_{windows,others}.go`).
pub(crate) fn forbidden(slot: Slot<'_>, image: &Image) -> Option<String> {
    let Slot { run, spec, .. } = slot;
    let context = spec.security_context.as_ref();
    let pods = run.pod.spec.as_ref();
    let pods = pods.and_then(|spec| spec.security_context.as_ref());
    let wanted = context.and_then(|context| context.run_as_non_root);
    let wanted = wanted.or_else(|| pods?.run_as_non_root);
    if wanted != Some(true) {
        return None;
    }
    let of = format!("(pod: \"{}\", container: {})", run.written(), spec.name);
    if run.node.pool.os() == Os::Windows {
        let checks = run.suffers(FaultKind::ImageUsersChecked, slot.cluster);
        // That of Nano Server alone names its user
        let unnamed = checks && image.family != Family::Nanoserver;
        let own = unnamed.then(|| ADMINISTRATOR.to_owned());
        let user = run.user(spec).or(own)?;
        return user.eq_ignore_ascii_case(ADMINISTRATOR).then(|| {
            format!(
                "container's runAsUserName ({user}) which will be regarded as root identity and \
                 will break non-root policy {of}"
            )
        });
    }
    let user = context.and_then(|context| context.run_as_user);
    match user.or_else(|| pods?.run_as_user) {
        Some(0) => Some(format!("container's runAsUser breaks non-root policy {of}")),
        Some(_) => None,
        // Simulated images run as root
        None => Some(format!(
            "container has runAsNonRoot and image will run as root {of}"
        )),
    }
}

/// Returns containerd's error for a seccomp profile that its node does not have, as no simulated one has any
/// (`internal/cri/server/container_create_linux.go`). A kubelet on Windows hands no profile on: only that of Linux
/// sends a Linux security context (`pkg/kubelet/kuberuntime/kuberuntime_container_linux.go`).
pub(crate) fn unprofiled(slot: Slot<'_>) -> Option<String> {
    let Slot { run, spec, .. } = slot;
    let own = spec.security_context.as_ref();
    let own = own.and_then(|context| context.seccomp_profile.as_ref());
    let pods = run.pod.spec.as_ref()?.security_context.as_ref();
    let profile = own.or_else(|| pods?.seccomp_profile.as_ref())?;
    let file = profile.localhost_profile.as_ref()?;
    let sees = slot.os() == Os::Linux || run.suffers(FaultKind::LinuxFieldsHonoured, slot.cluster);
    sees.then(|| {
        let path = format!("/var/lib/kubelet/seccomp/{file}");
        format!(
            "failed to generate seccomp spec opts: cannot load seccomp profile \"{path}\": open {path}: no such file \
             or directory"
        )
    })
}

/// Returns containerd's error if it refuses the container for its image, path or user.
pub(crate) fn refused(
    slot: Slot<'_>,
    image: &Image,
    place: &Place,
    argv: &[String],
    id: &str,
) -> Option<String> {
    let faults = slot.cluster.faults.current();
    let wrong = slot.run.node.suffers(FaultKind::ImageBuildWrong, &faults) || !image.runs;
    if slot.os() != Os::Windows {
        return None;
    }
    // A HostProcess container uses nothing of its image's operating system
    if wrong && !place.host_process {
        // containerd issue 7856
        return Some(format!(
            "failed to create containerd task: failed to create shim task: \
             hcs::CreateComputeSystem {id}: The container operating system does not match the host \
             operating system.: unknown"
        ));
    }
    let file = argv.first().map(String::as_str).unwrap_or_default();
    if place.host_process && file.starts_with('/') {
        // website issue 29924; hcsshim, internal/jobcontainers/path.go
        return Some(format!(
            "failed to create containerd task: failed to create shim task: failed to get \
             application name from commandline \"{file}\": failed to find executable \"{file}\": \
             unknown"
        ));
    }
    if place.user.as_ref().is_some_and(|user| !is_known(user)) {
        return Some(format!(
            "failed to start containerd task \"{id}\": hcs::System::CreateProcess {id}: \
             The user name or password is incorrect.: unknown"
        ));
    }
    None
}

/// containerd's error for a program that it could not start.
pub(crate) fn text(refusal: &Refusal, os: Os, id: &str) -> String {
    let text = refusal.text(os, id);
    match (refusal, os) {
        (Refusal::Missing(_), Os::Linux) => format!(
            "failed to create containerd task: failed to create shim task: OCI runtime create \
             failed: runc create failed: unable to start container process: error during container \
             init: {text}"
        ),
        _ => format!("failed to start containerd task \"{id}\": {text}"),
    }
}

/// Returns the termination message (`pkg/kubelet/kuberuntime/kuberuntime_container.go`,
/// `convertToKubeContainerStatus`): from its file, which Windows cannot mount; else, if the policy
/// allows it and the container failed, from the end of the log.
pub(crate) fn last_words(slot: Slot<'_>, place: &Place, code: u32) -> Option<String> {
    let path = slot.spec.termination_message_path.as_deref();
    let path = path
        .filter(|path| !path.is_empty())
        .unwrap_or("/dev/termination-log");
    // Docker on Windows mounts no single file, nor does a kubelet of its time ask it to (kubernetes, PR 83057)
    let is_mounted = slot.os() == Os::Linux
        || !runtime(&slot.run.node, &slot.cluster.faults.current()).starts_with("docker://");
    if !is_mounted || slot.run.suffers(FaultKind::LastWordsLost, slot.cluster) {
        return None;
    }
    let written = place.files.read(path).unwrap_or_default();
    if !written.is_empty() {
        return Some(cut(&written, MESSAGE));
    }
    let policy = slot.spec.termination_message_policy.as_deref();
    if policy != Some("FallbackToLogsOnError") || code == 0 {
        return None;
    }
    let log = slot.log();
    // A last line without a line break belongs to the log
    log.end();
    let mut last = log.from_last(LOG_LINES);
    let mut text = Vec::new();
    while let Some(line) = last.next() {
        text.extend_from_slice(&line.bytes);
    }
    let from = text.len().saturating_sub(LOG_BYTES);
    let text = cut(&text[from..], LOG_BYTES);
    (!text.is_empty()).then_some(text)
}

fn cut(bytes: &[u8], most: usize) -> String {
    let bytes = &bytes[..bytes.len().min(most)];
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_told_as_each_runtime_tells_it() {
        let missing = Refusal::Missing("foo".to_owned());
        let linux = text(&missing, Os::Linux, "05f");
        assert!(linux.ends_with("exec: \"foo\": executable file not found in $PATH: unknown"));
        assert_eq!(
            text(&missing, Os::Windows, "05f"),
            "failed to start containerd task \"05f\": hcs::System::CreateProcess 05f: \
             The system cannot find the file specified.: unknown"
        );
    }

    #[test]
    fn messages_are_cut() {
        assert_eq!(cut(b"abc", 2), "ab");
    }
}
