//! Suites: the claims, the ledger of limitations and the cases, from YAML.

mod case;
mod look;
mod read;

pub use case::{Case, Control, Over};
pub use read::{SuiteFile, Suites};
