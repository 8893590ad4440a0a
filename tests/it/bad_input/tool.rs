//! Runs the tool as a person does, in its own folder and environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder in which the tool runs, without this process's environment.
pub(crate) struct Tool {
    folder: TempDir,
}

impl Tool {
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().expect("a temporary folder"),
        }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and creates its folders.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
        fs::write(path, bytes).expect("written");
    }

    /// Copies the files of a folder over those that are there.
    pub(crate) fn lay(&self, from: &Path, name: &str) {
        for entry in fs::read_dir(from).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = format!("{name}/{}", entry.file_name().to_str().expect("UTF-8"));
            match entry.path() {
                path if path.is_dir() => self.lay(&path, &name),
                path => self.write(&name, fs::read(path).expect("read")),
            }
        }
    }

    /// The command, for tests that give it other streams.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_winconform"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("COLUMNS", "100")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        Said::from(self.command(arguments).output().expect("the tool starts"))
    }
}

/// The output and the exit code of the tool.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the tool writes UTF-8");
        Self {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code(),
        }
    }
}

impl Said {
    /// Standard error and the exit code, for a snapshot.
    pub(crate) fn errors(&self) -> String {
        self.assert_harmless();
        assert!(
            self.stdout.is_empty(),
            "results beside an error: {}",
            self.stdout
        );
        self.code_after(&self.stderr)
    }

    /// All output and the exit code, for a snapshot.
    pub(crate) fn all(&self) -> String {
        self.assert_harmless();
        self.code_after(&format!("{}--- stderr\n{}", self.stdout, self.stderr))
    }

    /// Checks that no output changes how a terminal shows the rest.
    pub(crate) fn assert_harmless(&self) {
        for (stream, text) in [
            ("standard output", &self.stdout),
            ("standard error", &self.stderr),
        ] {
            let hostile = |c: &char| *c != '\n' && winconform_core::text::is_hostile(*c);
            let character = text.chars().find(hostile);
            assert_eq!(character, None, "on {stream}: {}", text.escape_debug());
            assert!(!text.contains("panicked"), "{text}");
        }
    }

    fn code_after(&self, text: &str) -> String {
        match self.code {
            Some(code) => format!("{text}exit {code}\n"),
            None => format!("{text}killed\n"),
        }
    }
}

/// Compares a text with its snapshot.
#[track_caller]
pub(crate) fn check(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/bad_input/snapshots"),
    );
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
