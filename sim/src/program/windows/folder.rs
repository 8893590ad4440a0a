//! The kubelet's folder of a Windows node as programs there see it: the volumes of pods, and what is linked in them.

use crate::nodes::files::Files;
use crate::program::Ran;
use crate::program::forms::Call;
use crate::program::windows::system;
use crate::topology::Os;

/// The folder of the kubelet's pods.
const PODS: &str = r"C:\var\lib\kubelet\pods\";

/// The kubelet's folder of a pod's `emptyDir`s.
const EMPTY: &str = r"\volumes\kubernetes.io~empty-dir\";

/// The script that prints a file of a volume: what it has before the volume and the file, and after them.
pub(crate) const READ: [&str; 2] = [
    r"$found = Get-Item 'C:\var\lib\kubelet\pods\*\volumes\kubernetes.io~empty-dir\",
    "'; if (!$found) { exit 2 }; $found | Get-Content",
];

/// Where the node of a pod has one of the pod's `emptyDir`s.
pub(crate) fn path(uid: &str, volume: &str) -> String {
    format!("{PODS}{uid}{EMPTY}{volume}")
}

/// Prints a file of a volume of any pod on the program's node.
pub(crate) fn read(call: &Call<'_>, path: &str) -> Option<Ran> {
    let (volume, file) = path.split_once('\\')?;
    let of_node = call.place().files.of_node.as_ref();
    let mounts = of_node.map(|disks| disks.mounted(PODS, &format!("{EMPTY}{volume}")));
    let mounts = mounts.unwrap_or_default();
    let paths: Vec<_> = mounts.iter().map(|mount| mount.path.clone()).collect();
    let files = Files::new(Os::Windows, mounts);
    let mut found = paths.iter().filter_map(|folder| {
        let at = format!(r"{folder}\{file}");
        let direct = files.read(&at).ok();
        direct.or_else(|| files.read(&behind_link(call, &at)?).ok())
    });
    Some(match found.next() {
        Some(bytes) => Ran::prints(bytes),
        None => Ran::code(2),
    })
}

/// Where a path leads through the link that a program on the node makes in the volumes of pods: the folder of the link
/// is that of its target.
pub(crate) fn behind_link(call: &Call<'_>, path: &str) -> Option<String> {
    let script = system::line_on_node(call, "New-Item -ItemType Junction")?;
    let name = |before: &str| Some(script.split_once(before)?.1.split_once('\'')?.0);
    let (link, target) = (name(r"FullName + '\")?, name(EMPTY)?.rsplit_once('\\')?.1);
    let (folder, file) = path.split_once(&format!(r"\{link}\"))?;
    Some(format!(r"{folder}\{target}\{file}"))
}
