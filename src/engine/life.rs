//! What a run is given, and why one cannot begin or go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use winconform_core::config::Config;
use winconform_core::document::Diagnostics;
use winconform_core::plan::{Access, Selection, Shortage};
use winconform_core::record::{RecordError, ResumeError, RunView};

use crate::cluster::{Cluster, LeaseError};
use crate::engine::record::journal::{Journal, JournalError};
use crate::engine::scheduler::repeat::Repeat;

/// A run under way.
#[derive(Clone, Copy)]
pub(crate) struct Life<'r> {
    pub(crate) cluster: &'r Cluster,
    pub(crate) options: &'r RunOptions,
    pub(crate) journal: &'r Journal,
}

/// What a run is given besides its cluster and suites.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The run's id: a DNS label, unique.
    pub run: String,
    /// The Lease that keeps two runs apart.
    pub lease: String,
    /// The name of its holder: a run that has to wait or give up shows it.
    pub holder: String,
    /// The config. The cluster already has its limits.
    pub config: Config,
    /// Which checks the user selects.
    pub selection: Selection,
    /// The time from its start after which it begins nothing more.
    pub deadline: Option<Duration>,
    /// How often it observes everything.
    pub repeat: Repeat,
    /// The earlier run that it resumes.
    pub resume: Option<Arc<RunView>>,
    /// When it leaves what it created in the cluster.
    pub keep: Keep,
}

/// When a run leaves what it created in the cluster. An interrupted run never does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Keep {
    Never,
    /// Unless its outcome is conformant.
    OnFailure,
    /// Whatever its outcome is.
    Always,
}

/// Why a run could not begin or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another run holds the Lease, or it could not be taken.
    #[error("take the Lease `{name}` that keeps runs apart")]
    Lease {
        /// The Lease's name.
        name: String,
        source: LeaseError,
    },
    /// The server does not allow all that is necessary. Nothing was created.
    #[error("nothing was begun, since the server does not allow{}", listed(.0))]
    Denied(BTreeMap<Access, String>),
    /// The nodes have less left than the run needs. Nothing was created.
    #[error("nothing was begun, since the run does not fit on the nodes:{}\n\
             `--select '!pool=NAME*'` leaves out a pool of Windows nodes, other selections need fewer pods", lines(.0))]
    DoesNotFit(Vec<Shortage>),
    /// The configuration names something that this cluster does not have, or excludes all of it. Nothing was created.
    #[error("{0}")]
    Configuration(Diagnostics),
    /// The selection does not fit this cluster. Nothing was created.
    #[error("{0}")]
    Selection(Diagnostics),
    /// It cannot resume that record. Nothing was created.
    #[error("go on with the record of an earlier run")]
    Resume(#[source] ResumeError),
    /// The record's file could not be written. The run was ended and torn down.
    #[error("write the record, and ended the run for that reason")]
    Journal(#[source] JournalError),
    /// The record of this run cannot be read back.
    #[error("read back the record of this run")]
    Record(#[source] RecordError),
    /// A panic. What the run created was torn down, and the record has that.
    #[error("a bug in winconform ended the run; please report it: {0}")]
    Panicked(String),
}

impl RunError {
    /// Whether this run may hold its Lease although taking it failed.
    pub(crate) fn may_leave_a_lease(&self) -> bool {
        matches!(self, Self::Lease { source, .. } if matches!(source, LeaseError::ObservationError { .. }))
    }
}

fn lines(shortages: &[Shortage]) -> String {
    let line = |shortage: &Shortage| format!("\n  {shortage}");
    shortages.iter().map(line).collect::<Vec<_>>().concat()
}

/// Each denied access on its own line, with the authoriser's words.
fn listed(denied: &BTreeMap<Access, String>) -> String {
    let line = |(access, words): (&Access, &String)| match words.as_str() {
        "" => format!("\n{access}"),
        words => format!("\n{access}: {words}"),
    };
    denied.iter().map(line).collect()
}
