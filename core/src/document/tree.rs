//! The located tree of one YAML document.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Options, Spanned};

use super::diagnostic::Diagnostic;
use super::place::Place;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub value: Value,
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
}

/// One key of a mapping with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key; always text.
    pub key: String,
    /// Line of the key, from 1.
    pub line: u64,
    /// Column of the key, from 1.
    pub column: u64,
    pub node: Node,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`, nothing else (YAML 1.2).
    Bool(bool),
    /// A whole number.
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// A mapping, in the order written.
    Map(Vec<Entry>),
}

impl Entry {
    /// The key as a text node.
    pub fn key_node(&self) -> Node {
        Node {
            value: Value::Text(self.key.clone()),
            line: self.line,
            column: self.column,
        }
    }
}

impl Node {
    /// The same value as JSON, without places.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Int(n) => Json::from(*n),
            Value::Float(n) => Json::from(*n),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Value::Map(entries) => Json::Object(
                entries
                    .iter()
                    .map(|e| (e.key.clone(), e.node.to_json()))
                    .collect(),
            ),
        }
    }

    fn from_spanned(spanned: Spanned<Value>) -> Self {
        Self {
            line: spanned.referenced.line(),
            column: spanned.referenced.column(),
            value: spanned.value,
        }
    }
}

/// Parses one YAML document; the error is its first syntax error.
pub fn parse(file: &str, text: &str) -> Result<Node, Diagnostic> {
    // `010` is not eight and `yes` is not true: both are traps in a file of versions and words
    let mut options = Options::default();
    options.legacy_octal_numbers = false;
    options.strict_booleans = true;
    serde_saphyr::from_str_with_options::<Spanned<Value>>(text, options)
        .map(Node::from_spanned)
        .map_err(|error| {
            let (line, column) = error
                .location()
                .map_or((0, 0), |at| (at.line(), at.column()));
            let (what, hint) = words(error.without_snippet(), line, column);
            let file = file.to_owned();
            let place = Place { file, line, column };
            place.problem(format!("not valid YAML: {what}"), hint)
        })
}

/// What is wrong with the YAML, and what to do, without the place, which the diagnostic has apart.
fn words(error: &Error, line: u64, column: u64) -> (String, Option<String>) {
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key
                .as_ref()
                .map(|key| format!(" `{key}`"))
                .unwrap_or_default();
            (format!("the key{key} appears twice"), None)
        }
        Error::MultipleDocuments { .. } => {
            let hint = "a file holds one document: remove the `---`, or make two files".to_owned();
            ("a second document begins here".to_owned(), Some(hint))
        }
        error => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            if first.starts_with("budget breached") {
                return (
                    "it unfolds into more than is read of one file".to_owned(),
                    None,
                );
            }
            let place = format!(" at line {line}, column {column}");
            (first.strip_suffix(&place).unwrap_or(first).to_owned(), None)
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        // Above i64 only identifiers in a wrong place occur; their text serves the message
        Ok(i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element::<Spanned<Value>>()? {
            items.push(Node::from_spanned(item));
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            let value = access.next_value::<Spanned<Value>>()?;
            entries.push(Entry {
                line: key.referenced.line(),
                column: key.referenced.column(),
                key: key.value,
                node: Node::from_spanned(value),
            });
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_place() {
        let node = parse("a.yaml", "one: 1\ntwo:\n  - {three: yes}\n").expect("valid");
        let Value::Map(entries) = &node.value else {
            panic!("a mapping")
        };
        assert_eq!(
            (entries[0].line, entries[0].column, entries[0].node.column),
            (1, 1, 6)
        );
        let Value::List(items) = &entries[1].node.value else {
            panic!("a list")
        };
        assert_eq!((items[0].line, items[0].column), (3, 5));
        assert_eq!(items[0].to_json(), serde_json::json!({"three": "yes"}));
    }

    #[test]
    fn octal_looking_numbers_are_not_octal() {
        let node = parse("a.yaml", "mode: 010").expect("valid");
        assert_ne!(node.to_json(), serde_json::json!({"mode": 8}));
    }

    #[test]
    fn a_syntax_error_has_a_place() {
        let error = parse("a.yaml", "one: [1\ntwo: 2").expect_err("not YAML");
        assert!(error.line > 0, "{error}");
        assert!(error.to_string().starts_with("a.yaml:"), "{error}");
    }

    #[test]
    fn duplicate_keys_are_refused() {
        let error = parse("a.yaml", "one: 1\none: 2").expect_err("duplicate");
        assert!(
            error.message.ends_with("the key `one` appears twice"),
            "{error}"
        );
    }
}
