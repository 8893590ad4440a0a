//! The kubeconfig of a served cluster, which is removed with it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempDir};

use crate::cli::error::CliError;

/// The place of the kubeconfig, until the cluster is there.
pub(crate) struct Kubeconfig {
    path: PathBuf,
    /// The file beside `path` that is filled first, so that a program that waits for `path` finds all of it.
    draft: NamedTempFile,
    /// The folder that was created for it.
    folder: Option<TempDir>,
}

/// The kubeconfig of the served cluster; dropping it removes the file, unless somebody has written another one.
pub(crate) struct Filled {
    pub(crate) path: PathBuf,
    text: String,
    _folder: Option<TempDir>,
}

impl Kubeconfig {
    /// Creates a file for this user alone, in a folder of its own where no path is given. Refuses a path that exists.
    pub(crate) fn reserve(path: Option<PathBuf>) -> Result<Self, CliError> {
        let (path, folder) = match path {
            Some(path) => (path, None),
            None => {
                let folder = own_folder()?;
                (folder.path().join("kubeconfig"), Some(folder))
            }
        };
        let created = match fs::symlink_metadata(&path) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => Builder::new()
                .prefix(".winconform-")
                .make_in(path.parent().unwrap_or(&path), new_file),
        };
        let draft = created.map_err(|error| not_new(&path, &error))?;
        Ok(Self {
            path,
            draft,
            folder,
        })
    }

    /// Writes the file, which appears as a whole.
    pub(crate) fn fill(mut self, text: &str) -> Result<Filled, CliError> {
        let written = self.draft.write_all(text.as_bytes());
        written.map_err(|source| CliError::Write {
            path: self.path.clone(),
            source,
        })?;
        // A file that has come since keeps its place
        let there = match self.draft.persist_noclobber(&self.path) {
            // Not all file systems have links
            Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => {
                failed.file.persist(&self.path)
            }
            there => there,
        };
        there.map_err(|failed| not_new(&self.path, &failed.error))?;
        Ok(Filled {
            path: self.path,
            text: text.to_owned(),
            _folder: self.folder,
        })
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        if fs::read(&self.path).is_ok_and(|text| text == self.text.as_bytes()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A folder among temporary files to which only this user has access.
fn own_folder() -> Result<TempDir, CliError> {
    let mut builder = Builder::new();
    builder.prefix("winconform-demo-").rand_bytes(16);
    builder.permissions(Permissions::from_mode(0o700));
    builder.tempdir().map_err(|source| CliError::Write {
        path: std::env::temp_dir(),
        source,
    })
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
