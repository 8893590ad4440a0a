//! The files of a container that programs need: those of its volumes, and those written since. They are in
//! memory and have names and bytes, but no modes and no owners.
//!
//! A volume is shared by all containers that mount it, and a clone of [`Files`] sees the same files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::base::lock::locked;
use crate::topology::Os;

/// How many bytes a volume holds: enough for what probes and samples write.
const MOST: usize = 16 * 1024 * 1024;

/// Files by their path below a volume's root: parts joined by `/`, without a leading `/`; and how many bytes it
/// holds, if it has a size of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Volume(Arc<Mutex<BTreeMap<String, Vec<u8>>>>, Option<usize>);

impl Volume {
    /// An empty volume that holds so many bytes.
    pub(crate) fn of_size(most: Option<usize>) -> Self {
        Self(Arc::default(), most)
    }

    /// Replaces all of its files, as the kubelet does when a `ConfigMap` changes.
    pub(crate) fn fill(&self, files: BTreeMap<String, Vec<u8>>) {
        *locked(&self.0) = files;
    }

    /// Replaces its files with those of another volume, which becomes empty.
    pub(crate) fn replace_with(&self, other: &Self) {
        let files = std::mem::take(&mut *locked(&other.0));
        self.fill(files);
    }

    /// Another volume with the same files.
    pub(crate) fn copy(&self) -> Self {
        let files = locked(&self.0).clone();
        Self(Arc::new(Mutex::new(files)), self.1)
    }
}

/// The file of a folder that lists its links, which `mklink` alone creates here.
pub(crate) const LINKS: &str = ".links";

/// Volumes that outlive pods, or that their node sees, by name.
#[derive(Debug, Default)]
pub(crate) struct Disks(Mutex<BTreeMap<String, Volume>>);

impl Disks {
    /// The volume of a name, which all callers share.
    pub(crate) fn volume(&self, name: &str) -> Volume {
        locked(&self.0).entry(name.to_owned()).or_default().clone()
    }

    /// The same of a volume that begins with the files of another one.
    pub(crate) fn made_of(&self, source: &str, name: &str) -> Volume {
        let mut disks = locked(&self.0);
        let copy = disks.get(source).map(Volume::copy).unwrap_or_default();
        disks.entry(name.to_owned()).or_insert(copy).clone()
    }

    /// Keeps a volume under a name.
    pub(crate) fn keep(&self, name: String, volume: &Volume) {
        locked(&self.0).insert(name, volume.clone());
    }

    /// Forgets the volumes whose names have a word.
    pub(crate) fn forget(&self, word: &str) {
        locked(&self.0).retain(|name, _| !name.contains(word));
    }

    /// The volumes of which the name has such a beginning and such an end, as a host mounts them: each at its name.
    pub(crate) fn mounted(&self, begins: &str, ends: &str) -> Vec<Mount> {
        let disks = locked(&self.0);
        let found = disks
            .iter()
            .filter(|(name, _)| name.starts_with(begins) && name.ends_with(ends));
        let mount = |(name, volume): (&String, &Volume)| Mount {
            path: name.clone(),
            volume: volume.clone(),
            sub_path: String::new(),
            read_only: false,
            filled: false,
        };
        found.map(mount).collect()
    }
}

/// A volume mounted in a container.
#[derive(Clone, Debug)]
pub(crate) struct Mount {
    pub(crate) path: String,
    pub(crate) volume: Volume,
    /// The directory or file of the volume that is mounted; empty for the whole volume.
    pub(crate) sub_path: String,
    pub(crate) read_only: bool,
    /// Whether the kubelet fills it.
    pub(crate) filled: bool,
}

/// Who follows links in a container's volumes that another has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Links {
    #[default]
    Neither,
    /// The node follows the container's.
    Node,
    /// The container follows the node's.
    Container,
}

/// A container's file system.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    os: Os,
    pub(crate) root: Volume,
    mounts: Vec<Mount>,
    /// Whether files have the permissions that their volume asks for, rather than those of their folder.
    pub(crate) honours_modes: bool,
    /// Whether programs cannot write outside volumes.
    pub(crate) read_only_root: bool,
    /// Whether the user of the container may not read the files of volumes.
    pub(crate) denies_volumes: bool,
    /// Who follows links in its volumes.
    pub(crate) links: Links,
    /// The volumes of its node, if it sees the files there.
    pub(crate) of_node: Option<Arc<Disks>>,
}

/// Why a file cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileError {
    Missing,
    IsDirectory,
    ReadOnly,
    Denied,
    Full,
}

impl FileError {
    /// The system's message: errno texts of glibc and musl, or Windows' system messages
    /// (`ERROR_FILE_NOT_FOUND`, `ERROR_ACCESS_DENIED`, `ERROR_DISK_FULL`).
    pub(crate) fn text(self, os: Os) -> &'static str {
        match (self, os) {
            (Self::Missing, Os::Linux) => "No such file or directory",
            (Self::Missing, Os::Windows) => "The system cannot find the file specified.",
            (Self::IsDirectory, Os::Linux) => "Is a directory",
            (Self::ReadOnly, Os::Linux) => "Read-only file system",
            (Self::Denied, Os::Linux) => "Permission denied",
            // kubernetes, test/e2e/windows/volumes.go: the message of a write to a read-only volume
            (Self::IsDirectory | Self::ReadOnly | Self::Denied, Os::Windows) => "Access is denied.",
            (Self::Full, Os::Linux) => "No space left on device",
            (Self::Full, Os::Windows) => "There is not enough space on the disk.",
        }
    }
}

impl Files {
    /// The files of a container with its volumes; where two mounts hold a path, the deeper one counts.
    pub(crate) fn new(os: Os, mounts: Vec<Mount>) -> Self {
        let root = Volume::default();
        Self {
            os,
            root,
            mounts,
            honours_modes: false,
            read_only_root: false,
            denies_volumes: false,
            links: Links::default(),
            of_node: None,
        }
    }

    /// A file's content; the path may lead through a link that `mklink` made.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        match self.read_plain(path) {
            Err(FileError::Missing) => {
                let behind = self.linked(path).ok_or(FileError::Missing)?;
                self.read_plain(&behind)
            }
            read => read,
        }
    }

    /// Where a path leads to whose second last part is a link: a file of the folder that the link is in lists these,
    /// as `dir` shows them.
    fn linked(&self, path: &str) -> Option<String> {
        let (folder, file) = path.rsplit_once('\\')?;
        let (parent, link) = folder.rsplit_once('\\')?;
        let list = self.read_plain(&format!("{parent}\\{LINKS}")).ok()?;
        let list = String::from_utf8(list).ok()?;
        let mut links = list
            .lines()
            .filter_map(|line| line.split_once("<JUNCTION>"));
        let target = links.find_map(|(_, shown)| {
            let (name, target) = shown.trim().split_once(" [")?;
            (name == link).then(|| target.trim_end_matches(']').to_owned())
        });
        target.map(|target| format!("{target}\\{file}"))
    }

    fn read_plain(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let (volume, path, _) = self.locate(path);
        if self.denies_volumes && !std::ptr::eq(volume, &raw const self.root) {
            return Err(FileError::Denied);
        }
        let bytes = {
            let files = locked(&volume.0);
            let key = self.key(&files, &path);
            key.and_then(|key| files.get(&key).cloned())
        };
        bytes.ok_or_else(|| self.lacks(volume, &path))
    }

    /// The links in a folder, if it is a volume that the kubelet fills (kubernetes,
    /// `pkg/volume/util/atomic_writer.go`): `..data`, and one for each file.
    pub(crate) fn links(&self, path: &str) -> Option<Vec<String>> {
        let path = self.folded(&self.plain(path));
        let is_it = |mount: &&Mount| self.folded(&self.plain(&mount.path)) == path;
        let mount = self
            .mounts
            .iter()
            .filter(|mount| mount.filled)
            .find(is_it)?;
        let files = locked(&mount.volume.0);
        let names = files.keys().cloned();
        Some(["..data".to_owned()].into_iter().chain(names).collect())
    }

    /// Whether a file has the permissions that its volume asks for, rather than those of its folder.
    pub(crate) fn has_mode(&self, path: &str) -> bool {
        let path = self.plain(path);
        let mut mounts = self.mounts.iter().filter(|mount| mount.filled);
        self.honours_modes
            && mounts.any(|mount| self.below(&path, &self.plain(&mount.path)).is_some())
    }

    /// Replaces a file's content, or creates the file.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        let (volume, path, read_only) = self.locate(path);
        if read_only {
            return Err(FileError::ReadOnly);
        }
        if self.holds_directory(volume, &path) {
            return Err(FileError::IsDirectory);
        }
        let mut files = locked(&volume.0);
        let held: usize = files.values().map(Vec::len).sum();
        if held + bytes.len() > volume.1.unwrap_or(MOST) {
            return Err(FileError::Full);
        }
        let key = self.key(&files, &path).unwrap_or(path);
        files.insert(key, bytes.to_vec());
        Ok(())
    }

    /// Copies the files of a folder on the root to another one.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        let (from, root) = (self.plain(from), locked(&self.root.0).clone());
        for (path, bytes) in root {
            if let Some(name) = self.below(&path, &from) {
                // One that cannot be written is not there
                let _ = self.write(&format!("{to}/{name}"), &bytes);
            }
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &str) -> Result<(), FileError> {
        let (volume, path, read_only) = self.locate(path);
        if read_only {
            return Err(FileError::ReadOnly);
        }
        let removed = {
            let mut files = locked(&volume.0);
            let key = self.key(&files, &path);
            key.and_then(|key| files.remove(&key))
        };
        removed.map(drop).ok_or_else(|| self.lacks(volume, &path))
    }

    /// Why there is no file at a path.
    fn lacks(&self, volume: &Volume, path: &str) -> FileError {
        match self.holds_directory(volume, path) {
            true => FileError::IsDirectory,
            false => FileError::Missing,
        }
    }

    fn holds_directory(&self, volume: &Volume, path: &str) -> bool {
        path.is_empty()
            || locked(&volume.0)
                .keys()
                .any(|file| self.below(file, path).is_some())
    }

    /// A name for comparison: Windows keeps the case of letters, and ignores it when it compares names
    /// (learn.microsoft.com, "Naming Files, Paths, and Namespaces").
    fn folded(&self, name: &str) -> String {
        match self.os {
            Os::Linux => name.to_owned(),
            Os::Windows => name.to_lowercase(),
        }
    }

    /// The path under which a volume holds a file.
    fn key(&self, files: &BTreeMap<String, Vec<u8>>, path: &str) -> Option<String> {
        if files.contains_key(path) {
            return Some(path.to_owned());
        }
        let folded = (self.os == Os::Windows).then(|| self.folded(path))?;
        files.keys().find(|key| self.folded(key) == folded).cloned()
    }

    /// The path from a directory to something in it; `None` if the path is not in the directory.
    fn below<'a>(&self, path: &'a str, directory: &str) -> Option<&'a str> {
        let mut rest = path;
        for part in directory.split('/').filter(|part| !part.is_empty()) {
            let (first, behind) = rest.split_once('/')?;
            if first != part && self.folded(first) != self.folded(part) {
                return None;
            }
            rest = behind;
        }
        Some(rest)
    }

    /// The volume that holds a path, the path within it, and whether it is read-only.
    fn locate(&self, path: &str) -> (&Volume, String, bool) {
        let path = self.plain(path);
        let within = |mount: &Mount| {
            let at = self.plain(&mount.path);
            let rest = match self.folded(&path) == self.folded(&at) {
                true => "",
                false => self.below(&path, &at)?,
            };
            Some((at.len(), rest.to_owned()))
        };
        let deepest = self
            .mounts
            .iter()
            .filter_map(|mount| Some((within(mount)?, mount)))
            .max_by_key(|((depth, _), _)| *depth);
        match deepest {
            Some(((_, rest), mount)) => {
                let inner = match (self.plain(&mount.sub_path).as_str(), rest.as_str()) {
                    ("", rest) => rest.to_owned(),
                    (sub_path, "") => sub_path.to_owned(),
                    (sub_path, rest) => format!("{sub_path}/{rest}"),
                };
                (&mount.volume, inner, mount.read_only)
            }
            None => (&self.root, path, self.read_only_root),
        }
    }

    /// A path without drive, empty parts and dots. Windows accepts both slashes.
    fn plain(&self, path: &str) -> String {
        let path = match self.os {
            Os::Linux => path.to_owned(),
            Os::Windows => {
                let path = path.replace('\\', "/");
                let drive = path.strip_prefix("c:").or_else(|| path.strip_prefix("C:"));
                drive.map(str::to_owned).unwrap_or(path)
            }
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        parts.join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(os: Os, path: &str, sub_path: &str, read_only: bool) -> (Files, Volume) {
        let volume = Volume::default();
        let mount = Mount {
            path: path.to_owned(),
            volume: volume.clone(),
            sub_path: sub_path.to_owned(),
            read_only,
            filled: false,
        };
        (Files::new(os, vec![mount]), volume)
    }

    #[test]
    fn what_is_written_can_be_read_through_every_clone() {
        let files = Files::new(Os::Linux, Vec::new());
        let other = files.clone();
        assert_eq!(files.read("/tmp/a"), Err(FileError::Missing));
        files.write("/tmp/a", b"1").expect("written");
        other.write("/tmp//./a", b"2").expect("written");
        assert_eq!(files.read("/var/../tmp/a"), Ok(b"2".to_vec()));
        assert_eq!(files.read("/tmp"), Err(FileError::IsDirectory));
        files.remove("/tmp/a").expect("removed");
        assert_eq!(files.remove("/tmp/a"), Err(FileError::Missing));
    }

    #[test]
    fn windows_takes_both_slashes_and_any_case() {
        let files = Files::new(Os::Windows, Vec::new());
        files.write("C:\\Data\\A.txt", b"x").expect("written");
        assert_eq!(files.read("/data/a.TXT"), Ok(b"x".to_vec()));
    }

    #[test]
    fn windows_keeps_capitals_and_does_not_compare_them() {
        let (files, volume) = mounted(Os::Windows, "C:\\Etc\\n", "", false);
        let data = [("KEY", "1"), ("Sub/Mixed.Txt", "2"), ("low", "3")];
        volume.fill(data.map(|(k, v)| (k.to_owned(), v.into())).into());
        assert_eq!(files.read("C:\\etc\\N\\key"), Ok(b"1".to_vec()));
        assert_eq!(files.read("/etc/n/SUB/mixed.txt"), Ok(b"2".to_vec()));
        assert_eq!(files.read("/etc/n/sub"), Err(FileError::IsDirectory));
        files.write("C:\\Etc\\n\\INIT.TXT", b"a").expect("written");
        files.write("C:\\etc\\n\\init.txt", b"ab").expect("written");
        assert_eq!(locked(&volume.0)["INIT.TXT"], b"ab");
        files.remove("c:/etc/n/Init.Txt").expect("removed");
        assert!(!locked(&volume.0).contains_key("INIT.TXT"));
        let (files, volume) = mounted(Os::Windows, "C:\\K.txt", "KEY", true);
        volume.fill([("KEY".to_owned(), b"one".to_vec())].into());
        assert_eq!(files.read("c:\\k.TXT"), Ok(b"one".to_vec()));
        let (files, volume) = mounted(Os::Linux, "/n", "", false);
        volume.fill([("KEY".to_owned(), b"1".to_vec())].into());
        assert_eq!(files.read("/n/key"), Err(FileError::Missing));
        assert_eq!(files.read("/N/KEY"), Err(FileError::Missing));
    }

    #[test]
    fn read_only_mounts_refuse_in_the_systems_words() {
        let (files, volume) = mounted(Os::Windows, "C:\\etc\\config", "", true);
        volume.fill([("key".to_owned(), b"value".to_vec())].into());
        assert_eq!(files.read("c:/etc/config/key"), Ok(b"value".to_vec()));
        let refused = files.write("C:\\etc\\config\\new", b"");
        let refused = refused.expect_err("it is read-only");
        assert_eq!(refused.text(Os::Windows), "Access is denied.");
        assert_eq!(refused.text(Os::Linux), "Read-only file system");
        assert_eq!(files.write("C:\\etc\\configs", b""), Ok(()));
    }

    #[test]
    fn a_sub_path_is_a_part_of_the_volume() {
        let (files, volume) = mounted(Os::Linux, "/data", "a/b", false);
        files.write("/data/c", b"1").expect("written");
        assert_eq!(locked(&volume.0)["a/b/c"], b"1");
        let (files, volume) = mounted(Os::Linux, "/etc/file", "key", false);
        volume.fill([("key".to_owned(), b"one".to_vec())].into());
        assert_eq!(files.read("/etc/file"), Ok(b"one".to_vec()));
    }

    #[test]
    fn a_volume_does_not_grow_without_end() {
        let files = Files::new(Os::Linux, Vec::new());
        let much = vec![0; MOST];
        files.write("/a", &much).expect("it is just enough");
        assert_eq!(files.write("/b", b"1"), Err(FileError::Full));
    }
}
