//! The values that a command may hold: parsing checks each, so that a shell reads it as one word.

use crate::facts::Os;

/// A word of ASCII letters, digits and the other characters that are given; none of those comes first.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $most:literal, $others:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub struct $name(String);

        impl $name {
            pub fn parse(text: &str) -> Option<Self> {
                let fits = |c: char| c.is_ascii_alphanumeric() || $others.contains(c);
                let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
                let is_word = begins && text.len() <= $most && text.chars().all(fits);
                is_word.then(|| Self(text.to_owned()))
            }
        }

        crate::text::name!($name);
    )*};
}

words! {
    /// A word that no other party can predict, or that a later command searches for.
    Token: 64, "";
    /// The name of an environment variable.
    VariableName: 128, "_";
    /// The name of a Windows service.
    ServiceName: 128, "-_";
}

impl Token {
    /// A token of random bits.
    pub fn random(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }

    /// Its first eight characters at most: an account name has up to 20, and `net` prompts before it takes a
    /// password of more than 14.
    pub(super) fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

/// A file or folder in a container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FilePath {
    os: Os,
    text: String,
}

/// Where a `HostProcess` container finds its own files (containerd with hcsshim); `cmd` expands it.
const SANDBOX: &str = "%CONTAINER_SANDBOX_MOUNT_POINT%";
/// The longest path: `cmd` takes 8,191 characters, and a command has two paths at most.
const LONGEST: usize = 1024;

impl FilePath {
    /// An absolute path of ASCII letters, digits and `.`, `-`, `_`, `~`, without a step up. On Windows it
    /// begins with a drive, or with the mount point of a `HostProcess` container.
    pub fn parse(os: Os, text: &str) -> Option<Self> {
        let (rest, slash) = match os {
            Os::Linux => (text, '/'),
            Os::Windows => {
                let rest = text.strip_prefix(SANDBOX);
                (rest.or_else(|| behind_drive(text))?, '\\')
            }
        };
        let in_names = |c: char| c.is_ascii_alphanumeric() || ".-_~".contains(c);
        let is_name = |step: &str| step.chars().all(in_names) && !matches!(step, "" | "." | "..");
        let steps = rest.strip_prefix(slash)?;
        let is_path = text.len() <= LONGEST && steps.split(slash).all(is_name);
        is_path.then(|| Self {
            os,
            text: text.to_owned(),
        })
    }

    /// The path, if it is one of this system.
    pub(super) fn on(&self, os: Os) -> Option<&str> {
        (self.os == os).then_some(&*self.text)
    }
}

fn behind_drive(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(|c: char| c.is_ascii_alphabetic())?;
    rest.strip_prefix(':')
}
