//! What the runtime does not start, and what it says of it.

use super::container::Slot;
use super::sandbox::is_known;
use crate::fault::FaultKind;
use crate::image::Image;
use crate::program::{Place, Refusal};
use crate::topology::Os;

/// What containerd says when it does not start the container for what it is.
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
    // A HostProcess container uses nothing of its image's system
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

/// What containerd says when the program is not there.
pub(super) fn text(refusal: &Refusal, os: Os, id: &str) -> String {
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
}
