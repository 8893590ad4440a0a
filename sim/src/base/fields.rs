//! Reading fields of an object of any kind; a missing field reads as empty.

use serde_json::{Value, json};

/// The fields of an object, any of which may be missing.
pub(crate) trait Fields {
    /// The value as text, or an empty text.
    fn text(&self) -> &str;

    /// The value as a number, or 0.
    fn number(&self) -> i64;

    /// The items of a list.
    fn items(&self) -> std::slice::Iter<'_, Value>;

    /// The fields of an object with their names.
    fn fields(&self) -> impl Iterator<Item = (&String, &Value)>;

    /// Whether it has all fields of `other` with the same values, as labels that a selector selects do.
    fn includes(&self, other: &Value) -> bool;

    /// The items of the list in a field, to be changed.
    fn items_mut(&mut self, field: &str) -> std::slice::IterMut<'_, Value>;

    /// Appends to a list, or creates the list if there is none.
    fn push(&mut self, item: Value);

    /// Removes a field and returns it.
    fn remove(&mut self, field: &str) -> Option<Value>;
}

impl Fields for Value {
    fn text(&self) -> &str {
        self.as_str().unwrap_or_default()
    }

    fn number(&self) -> i64 {
        self.as_i64().unwrap_or_default()
    }

    fn items(&self) -> std::slice::Iter<'_, Value> {
        self.as_array().map_or(&[][..], Vec::as_slice).iter()
    }

    fn fields(&self) -> impl Iterator<Item = (&String, &Self)> {
        self.as_object().into_iter().flatten()
    }

    fn includes(&self, other: &Value) -> bool {
        let mut fields = other.fields();
        fields.all(|(name, value)| self.get(name) == Some(value))
    }

    fn items_mut(&mut self, field: &str) -> std::slice::IterMut<'_, Value> {
        let list = self.get_mut(field).and_then(Self::as_array_mut);
        list.map_or(&mut [][..], Vec::as_mut_slice).iter_mut()
    }

    fn push(&mut self, item: Value) {
        match self.as_array_mut() {
            Some(items) => items.push(item),
            None => *self = json!([item]),
        }
    }

    fn remove(&mut self, field: &str) -> Option<Value> {
        self.as_object_mut()?.remove(field)
    }
}
