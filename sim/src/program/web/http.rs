//! HTTP requests and answers as programs see them, without their bytes.

use crate::base::query::Query;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        let body = body.into();
        Self { status, body }
    }

    /// What of its body arrives where the connection is reset in the middle.
    pub(crate) fn first_half(&self) -> String {
        let half = self.body.len() / 2;
        self.body[..self.body.floor_char_boundary(half)].to_owned()
    }

    /// net/http's `http.Error`: the text and a line end.
    pub(crate) fn error(status: u16, text: &str) -> Self {
        Self::new(status, format!("{text}\n"))
    }
}

/// A path without its query.
pub(crate) fn plain(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// The value of a key in a path's query; empty if there is none.
pub(crate) fn query(path: &str, key: &str) -> String {
    let query = Query::parse(path.split_once('?').map(|(_, query)| query));
    query.first(key).unwrap_or_default().to_owned()
}
