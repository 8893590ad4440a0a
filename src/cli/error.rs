//! The errors of commands, and the process exit code of each.

use std::error::Error;
use std::path::PathBuf;

#[cfg(feature = "demo")]
use hybrid_sim::JoinError;
use winconform_core::document::{Diagnostic, Diagnostics};
use winconform_core::method::ErrorKind;
use winconform_core::record::{Exit, RecordError, redact};
use winconform_core::report::junit::ReportError;
use winconform_core::text::{counted, printable};

use crate::cluster::{CleanError, CleanupError, ConnectError, Guarded};
use crate::engine::{JournalError, RunError};

/// Every error that can end a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// What is not valid, and the problems in it.
    #[error("{1}")]
    Invalid(&'static str, Diagnostics),
    #[error("{0}")]
    Usage(String),
    #[error("read `{}`", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("write `{}`", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("understand the record `{}`", path.display())]
    Record { path: PathBuf, source: RecordError },
    #[error("connect to the cluster")]
    Connect(#[from] ConnectError),
    #[error("{0}")]
    Guarded(Guarded),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Cleanup(#[from] CleanupError),
    #[error("make the report")]
    Report(#[source] ReportError),
    #[cfg(feature = "demo")]
    #[error("join the simulated nodes")]
    Join(#[source] JoinError),
    #[cfg(feature = "demo")]
    #[error("let the simulated nodes leave")]
    Leave(#[source] hybrid_sim::LeaveError),
    #[cfg(feature = "demo")]
    /// The second signal came before the nodes had left.
    #[error("{0}")]
    Cut(String),
    #[cfg(feature = "demo")]
    /// The kubeconfig to join has several contexts.
    #[error("{0}")]
    WhichContext(String),
    #[error("listen for signals")]
    Signals(#[source] std::io::Error),
}

impl CliError {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            // Nodes that may be left behind are no mistake of the user
            #[cfg(feature = "demo")]
            Self::Join(JoinError::Abandoned(_)) | Self::Leave(_) | Self::Cut(_) => 1,
            #[cfg(feature = "demo")]
            Self::Join(_) => 2,
            #[cfg(feature = "demo")]
            Self::WhichContext(_) => 20,
            Self::Invalid(..)
            | Self::Usage(_)
            | Self::Read { .. }
            | Self::Record { .. }
            | Self::Run(RunError::Resume(_) | RunError::Configuration(_))
            | Self::Cleanup(CleanupError::Clean(CleanError::NotARun { .. })) => 2,
            Self::Run(RunError::Selection(_)) => Exit::NothingSelected.code(),
            Self::Guarded(_)
            | Self::Run(RunError::DoesNotFit(_) | RunError::Journal(JournalError::InUse { .. })) => {
                20
            }
            Self::Connect(error) => error.exit_code(),
            Self::Run(RunError::Lease { source, .. }) => source.exit_code(),
            Self::Cleanup(CleanupError::Held(error)) => error.exit_code(),
            Self::Cleanup(CleanupError::Clean(CleanError::Unlistable(error))) => match error.kind {
                ErrorKind::Forbidden => Exit::CouldNotTell.code(),
                _ => 21,
            },
            Self::Run(RunError::Denied(_)) => Exit::CouldNotTell.code(),
            Self::Run(RunError::Journal(_) | RunError::Record(_) | RunError::Panicked(_))
            | Self::Write { .. }
            | Self::Report(_)
            | Self::Signals(_) => 1,
        }
    }

    /// The error with its causes, each once, fit for a terminal.
    pub(crate) fn render(&self) -> String {
        let problems = match self {
            Self::Invalid(what, problems) => Some((*what, problems)),
            Self::Run(RunError::Configuration(problems)) => {
                Some(("the configuration does not fit this cluster", problems))
            }
            Self::Run(RunError::Selection(problems)) => Some((
                "this cluster has nothing that matches the selection",
                problems,
            )),
            _ => None,
        };
        if let Some((what, problems)) = problems {
            return format!("error: {what}\n{}\n", redacted(problems));
        }
        let message = self.to_string();
        let mut text = match self.source() {
            None => format!("error: {}", lines(&message)),
            Some(_) => format!("error: failed to {}", lines(&message)),
        };
        let mut above = message;
        let mut source = self.source();
        while let Some(error) = source {
            let words = error.to_string();
            // kube's errors contain their source's text
            if !above.contains(&words) {
                text.push_str(&format!("\n  because: {}", lines(&words)));
            }
            above = words;
            source = error.source();
        }
        text.push('\n');
        // The text of a server or its proxy may hold the credential
        redact(&text)
    }
}

/// Problems with each of their texts redacted by itself: a file called `token.yaml` keeps the place behind its name.
fn redacted(problems: &Diagnostics) -> String {
    let redact = |text: &String| redact(&text.replace('\n', "⏎"));
    let each = problems.all().iter().map(|one| Diagnostic {
        file: redact(&one.file),
        message: redact(&one.message),
        hint: one.hint.as_ref().map(redact),
        ..one.clone()
    });
    let mut lines: Vec<_> = each.map(|one| one.to_string()).collect();
    lines.push(counted(lines.len(), "problem"));
    lines.join("\n")
}

/// Makes each line printable, and indents further lines.
fn lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(printable).collect();
    lines.join("\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::LeaseError;

    #[test]
    fn what_is_not_allowed_could_not_be_told_wherever_it_is_met() {
        let refused = |status| LeaseError::Refused {
            name: "winconform".to_owned(),
            status,
            message: "no".to_owned(),
        };
        let run = |source| {
            let name = "winconform".to_owned();
            CliError::Run(RunError::Lease { name, source })
        };
        let held_up = |error| CliError::Cleanup(CleanupError::Held(error));
        let clean = |kind: ErrorKind| {
            let error = CleanError::Unlistable(kind.error("no"));
            CliError::Cleanup(CleanupError::Clean(error))
        };
        let (name, holder) = ("winconform".to_owned(), "other".to_owned());
        let held = LeaseError::Held { name, holder };
        for (error, code) in [
            (run(refused(403)), 11),
            (held_up(refused(403)), 11),
            (held_up(held), 20),
            (clean(ErrorKind::Forbidden), 11),
            (run(refused(401)), 21),
            (clean(ErrorKind::Unauthenticated), 21),
            (clean(ErrorKind::ApiUnavailable), 21),
        ] {
            assert_eq!(error.exit_code(), code, "{error:?}");
        }
    }
}
