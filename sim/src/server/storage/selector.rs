//! Label and field selectors of requests.

use std::collections::BTreeSet;

use kube::core::{Expression, Selector, SelectorExt};
use serde_json::Value;

use super::store::{Object, Store};
use crate::base::query::Query;
use crate::nodes::placing;
use crate::server::ask::Ask;
use crate::server::checks::refusal::Refusal;
use crate::server::kinds::Kind;

/// The objects that a list or a watch selects.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    labels: Selector,
    fields: Vec<Term>,
}

/// The value that a field must have, or must not have.
#[derive(Clone, Debug)]
struct Term {
    field: Field,
    is: bool,
    value: String,
}

impl Selection {
    pub(crate) fn from_query(kind: &'static Kind, query: &Query) -> Result<Self, Refusal> {
        Ok(Self {
            labels: labels(query.first("labelSelector").unwrap_or_default())?,
            fields: fields(kind, query.first("fieldSelector").unwrap_or_default())?,
        })
    }

    /// Returns the objects that a request selects.
    pub(crate) fn all(&self, store: &Store, ask: &Ask) -> Vec<Object> {
        let objects = store.all(ask.kind.plural, &ask.namespace);
        let taken = objects.filter(|(_, object)| self.takes(object));
        taken.map(|(_, object)| Object::clone(object)).collect()
    }

    pub(crate) fn takes(&self, object: &Value) -> bool {
        let is = |term: &Term| (field(term.field, object) == term.value) == term.is;
        let labels = || placing::labels(&object["metadata"]["labels"]);
        self.fields.iter().all(is) && (self.labels.selects_all() || self.labels.matches(&labels()))
    }
}

/// A field that selects objects, and its value where it is not set (the kind's `ToSelectableFields`
/// in `pkg/registry/`).
type Field = (&'static str, &'static str);

/// The fields that select objects of every kind.
const ALWAYS: [Field; 2] = [("metadata.name", ""), ("metadata.namespace", "")];

/// The further fields that select objects of a kind (kubernetes 1.37.0,
/// `AddFieldLabelConversionFunc` in `pkg/apis/*/v1/conversion.go`), as far as clients use them.
const OF_KINDS: [(&str, Field); 10] = [
    ("pods", ("spec.nodeName", "")),
    ("pods", ("status.phase", "")),
    ("nodes", ("spec.unschedulable", "false")),
    ("namespaces", ("status.phase", "")),
    ("events", ("involvedObject.kind", "")),
    ("events", ("involvedObject.namespace", "")),
    ("events", ("involvedObject.name", "")),
    ("events", ("involvedObject.uid", "")),
    ("events", ("reason", "")),
    ("events", ("type", "")),
];

/// The value of an object's field.
fn field((name, unset): Field, object: &Value) -> String {
    match object.pointer(&format!("/{}", name.replace('.', "/"))) {
        Some(Value::String(text)) => text.clone(),
        Some(value @ Value::Bool(_)) => value.to_string(),
        _ => unset.to_owned(),
    }
}

/// Reads `a=b,c!=d` (apimachinery, `fields.ParseSelector`).
fn fields(kind: &Kind, text: &str) -> Result<Vec<Term>, Refusal> {
    let terms = text.split(',').filter(|term| !term.is_empty());
    let read = |term: &str| {
        let Some((key, value)) = term.split_once('=') else {
            return Err(Refusal::bad(format_args!(
                "invalid selector: '{text}'; can't understand '{term}'"
            )));
        };
        let (is, key, value) = match key.strip_suffix('!') {
            Some(key) => (false, key, value),
            None => (true, key, value.strip_prefix('=').unwrap_or(value)),
        };
        let of_kind = OF_KINDS.iter().filter(|(plural, _)| *plural == kind.plural);
        let of_kind: Vec<&Field> = of_kind.map(|(_, field)| field).collect();
        let mut known = ALWAYS.iter().chain(of_kind.iter().copied());
        let Some(&field) = known.find(|(known, _)| *known == key) else {
            let always = ALWAYS.map(|(name, _)| format!("{name:?}")).join(", ");
            return Err(Refusal::bad(match of_kind.is_empty() {
                true => format!("{key:?} is not a known field selector: only {always}"),
                false => format!("field label not supported: {key}"),
            }));
        };
        let value = value.to_owned();
        Ok(Term { field, is, value })
    };
    terms.map(read).collect()
}

/// Reads `a=b,c!=d,e in (f,g),!h,i` (apimachinery, `labels.Parse`, without comparisons of numbers).
fn labels(text: &str) -> Result<Selector, Refusal> {
    let mut depth = 0_i32;
    let pieces = text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    let pieces = pieces.map(str::trim).filter(|piece| !piece.is_empty());
    let read = |piece| {
        let why = || Refusal::bad(format_args!("unable to parse requirement: {piece:?}"));
        expression(piece).ok_or_else(why)
    };
    pieces.map(read).collect()
}

fn expression(piece: &str) -> Option<Expression> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let value = |text: &str| {
        let text = text.trim();
        text.chars().all(word).then(|| text.to_owned())
    };
    let set = |text: &str| -> Option<BTreeSet<String>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        inner.split(',').map(value).collect()
    };
    let (lacks, rest) = match piece.strip_prefix('!') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, piece),
    };
    let end = rest.find(|c| !(word(c) || c == '/')).unwrap_or(rest.len());
    let (key, rest) = (rest[..end].to_owned(), rest[end..].trim());
    if key.is_empty() {
        return None;
    }
    if lacks {
        rest.is_empty().then_some(Expression::DoesNotExist(key))
    } else if rest.is_empty() {
        Some(Expression::Exists(key))
    } else if let Some(values) = rest.strip_prefix("notin") {
        Some(Expression::NotIn(key, set(values)?))
    } else if let Some(values) = rest.strip_prefix("in") {
        Some(Expression::In(key, set(values)?))
    } else if let Some(other) = rest.strip_prefix("!=") {
        Some(Expression::NotEqual(key, value(other)?))
    } else {
        let same = rest.strip_prefix("==").or(rest.strip_prefix('='))?;
        Some(Expression::Equal(key, value(same)?))
    }
}
