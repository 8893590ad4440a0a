//! Tables of tests, which are YAML files beside them.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

/// The rows of a file with one table.
pub(crate) fn listed<T: DeserializeOwned>(table: &str) -> Vec<T> {
    let rows: Vec<T> = serde_saphyr::from_str(table).expect("rows");
    assert!(!rows.is_empty(), "there are no rows");
    rows
}

/// The rows of the table of that name.
pub(crate) fn rows<T: DeserializeOwned>(tables: &str, name: &str) -> Vec<T> {
    let mut tables: BTreeMap<String, Json> = serde_saphyr::from_str(tables).expect("tables");
    let rows = tables.remove(name).expect("a table of that name");
    let rows: Vec<T> = serde_json::from_value(rows).expect("rows");
    assert!(!rows.is_empty(), "{name} has no rows");
    rows
}
