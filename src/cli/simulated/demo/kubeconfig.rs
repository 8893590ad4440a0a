//! The kubeconfig of a served cluster, which is removed with it.
//!
//! The serving process holds a lock on the file, which ends with the process however that ends. So an
//! unlocked file is that of a killed process, and the next process removes it. Until then it gives no access:
//! the keys of its cluster were in the killed process alone.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::cli::error::CliError;

/// The beginning of the folders' names among temporary files; 16 hexadecimal digits follow.
const FOLDERS: &str = "winconform-demo-";
/// The only file in each folder.
const NAME: &str = "kubeconfig";
/// Only their user has access to the folders.
const FOLDER_MODE: u32 = 0o700;

/// How often another process may remove a new folder because it takes it for a leftover.
const TRIES: usize = 5;

/// The kubeconfig of the served cluster; dropping it removes the file.
pub(crate) struct Kubeconfig {
    path: PathBuf,
    /// The file beside `path` that is filled first, so that a program that waits for `path` finds all of it.
    draft: Option<PathBuf>,
    /// The folder that was created for it.
    folder: Option<PathBuf>,
    file: File,
}

impl Kubeconfig {
    /// Creates the file, for this user alone. Refuses a path that exists.
    pub(crate) fn reserve(path: Option<PathBuf>) -> Result<Self, CliError> {
        let Some(path) = path else {
            return Self::in_own_folder(&std::env::temp_dir());
        };
        let mut draft = path.clone().into_os_string();
        draft.push(format!(".{}", std::process::id()));
        let draft = PathBuf::from(draft);
        let created = match fs::symlink_metadata(&path) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => new_file(&draft),
        };
        let file = created.map_err(|error| not_new(&path, &error))?;
        Ok(Self {
            path,
            draft: Some(draft),
            folder: None,
            file,
        })
    }

    fn in_own_folder(among: &Path) -> Result<Self, CliError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let folder = among.join(format!("{FOLDERS}{:016x}", rand::random::<u64>()));
            let mut builder = DirBuilder::new();
            if let Err(source) = builder.mode(FOLDER_MODE).create(&folder) {
                return Err(CliError::Write {
                    path: folder,
                    source,
                });
            }
            let path = folder.join(NAME);
            match new_file(&path).and_then(held) {
                Ok(Some(file)) => {
                    let folder = Some(folder);
                    let draft = None;
                    return Ok(Self {
                        path,
                        draft,
                        folder,
                        file,
                    });
                }
                // Another process removes leftovers, and has locked the file or removed its folder
                Ok(None) if tries < TRIES => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {}
                other => {
                    let taken = || io::Error::other("others take it away");
                    let source = other.err().unwrap_or_else(taken);
                    return Err(CliError::Write { path, source });
                }
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the leftovers of killed processes and returns their folders. Leaves what it cannot remove.
    pub(crate) fn remove_leftovers(&self) -> Vec<PathBuf> {
        let Ok(metadata) = self.file.metadata() else {
            return Vec::new();
        };
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
        let folders = entries.flatten().map(|entry| entry.path());
        folders
            .filter(|folder| remove_if_left(folder, metadata.uid()))
            .collect()
    }

    /// Writes the file, which appears as a whole.
    pub(crate) fn fill(&mut self, text: &str) -> Result<(), CliError> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| CliError::Write {
            path: self.path.clone(),
            source,
        })?;
        let Some(draft) = &self.draft else {
            return Ok(());
        };
        // Unlike a rename, a link takes the place of no file that has come since; not all file systems have links
        let linked = fs::hard_link(draft, &self.path).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            _ => fs::rename(draft, &self.path),
        });
        linked.map_err(|error| not_new(&self.path, &error))?;
        let _ = fs::remove_file(draft);
        self.draft = None;
        Ok(())
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.draft.as_ref().unwrap_or(&self.path));
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The error for a path at which no new file can be.
fn not_new(path: &Path, error: &io::Error) -> CliError {
    let shown = path.display();
    CliError::Usage(match error.kind() {
        io::ErrorKind::AlreadyExists => format!(
            "`{shown}` is there already, and it would be removed at the end\n\
             (give `--kubeconfig` another name, or remove it)"
        ),
        _ => format!("cannot write `--kubeconfig {shown}`: {error}"),
    })
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Locks a file for the life of this process; `None` if another process has locked or removed it. Without
/// support for locks no other process can lock it either.
fn held(file: File) -> io::Result<Option<File>> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        Ok(()) | Err(TryLockError::Error(_)) => {
            let is_there = file.metadata()?.nlink() > 0;
            Ok(is_there.then_some(file))
        }
    }
}

/// Removes a folder that was left behind, and returns whether it did. Opens only a folder that is this user's
/// and closed to all others, so that no one else can have put a file into it.
fn remove_if_left(folder: &Path, user: u32) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix(FOLDERS));
    let is_named =
        number.is_some_and(|it| it.len() == 16 && it.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let is_closed = fs::symlink_metadata(folder)
        .is_ok_and(|it| it.is_dir() && it.mode() & 0o777 == FOLDER_MODE && it.uid() == user);
    if !is_named || !is_closed {
        return false;
    }
    let path = folder.join(NAME);
    if let Ok(file) = fs::symlink_metadata(&path) {
        // Keep the lock until the file is removed
        let held = file.is_file().then(|| File::open(&path).ok()).flatten();
        let is_free = held.as_ref().is_some_and(|file| file.try_lock().is_ok());
        if !is_free || fs::remove_file(&path).is_err() {
            return false;
        }
    }
    fs::remove_dir(folder).is_ok()
}
