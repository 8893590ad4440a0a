//! Suites: the claims, the ledger of limitations and the cases, from YAML.

mod admission;
mod assertion;
mod case;
mod container;
mod control;
mod fact;
mod over;
mod placement;
mod read;
mod when;

pub use admission::{ClusterPart, Exception, Expected, Gate, Then};
pub use case::Case;
pub use control::{Control, Without};
pub use over::{Across, Over};
pub use read::{SuiteFile, Suites};
pub use when::{Condition, When};
