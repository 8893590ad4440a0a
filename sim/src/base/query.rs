//! The query string of a request.

/// The pairs of a query, in order; a name may occur more than once, as `command` does.
#[derive(Debug)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let pairs = pairs.into_owned().collect();
        Self { pairs }
    }

    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let named = self.pairs.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.clone()).collect()
    }

    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        let (_, value) = self.pairs.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    /// Whether the value is true, which Go writes `1` or `true`.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.first(name), Some("1" | "true"))
    }
}
