//! Where something was written, for problems that are found later.

use std::fmt::Write as _;

use super::diagnostic::Diagnostic;

/// A place in a file, or an argument.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// The file as it was named, or the argument.
    pub file: String,
    /// Line, from 1; 0 for an argument.
    pub line: u64,
    /// Column in characters, from 1; 0 for an argument.
    pub column: u64,
}

impl Place {
    /// An argument of the command line, such as `--select`.
    pub fn argument(name: &str) -> Self {
        Self {
            file: name.to_owned(),
            line: 0,
            column: 0,
        }
    }

    pub fn problem(&self, message: impl Into<String>, hint: Option<String>) -> Diagnostic {
        Diagnostic {
            file: self.file.clone(),
            line: self.line,
            column: self.column,
            message: message.into(),
            hint,
        }
    }
}

/// A value and where it was written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Placed<T> {
    pub value: T,
    pub at: Place,
}

impl<T> Placed<T> {
    /// The value of an argument of the command line.
    pub fn by_argument(value: T, name: &str) -> Self {
        let at = Place::argument(name);
        Self { value, at }
    }
}

/// Bytes in hexadecimal, as digests are shown.
pub fn hexadecimal(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
