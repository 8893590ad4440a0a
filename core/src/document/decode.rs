//! From a located tree to checked types, collecting all problems.

use semver::VersionReq;

use super::diagnostic::{Diagnostic, nearest};
use super::place::Place;
use super::tree::{Entry, Node, Value, parse};
use super::unread::Unread;

/// Collects the problems of one file while its tree is decoded.
pub struct Decoder<'f> {
    file: &'f str,
    found: Vec<Diagnostic>,
}

impl<'f> Decoder<'f> {
    pub fn new(file: &'f str) -> Self {
        Self {
            file,
            found: Vec::new(),
        }
    }

    /// All problems found.
    pub fn finish(self) -> Vec<Diagnostic> {
        self.found
    }

    pub fn place(&self, node: &Node) -> Place {
        Place {
            file: self.file.to_owned(),
            line: node.line,
            column: node.column,
        }
    }

    /// Notes a problem at a node.
    pub fn report(&mut self, at: &Node, message: impl Into<String>, hint: Option<String>) {
        let problem = self.place(at).problem(message, hint);
        self.found.push(problem);
    }

    /// Notes the problem that keeps a node from being read; returns `None`.
    pub fn fail<T>(
        &mut self,
        at: &Node,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Option<T> {
        self.report(at, message, hint);
        None
    }

    /// What `read` makes of each item of a list that has some: an empty one would hold of anything, or of nothing.
    pub fn some<T>(
        &mut self,
        node: &Node,
        what: &str,
        read: impl Fn(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        if matches!(&node.value, Value::List(items) if items.is_empty()) {
            return self.fail(node, format!("{what} must not be empty"), None);
        }
        self.each(node, what, read)
    }

    /// Notes that a node is of another kind than it must be.
    fn refuse<T>(&mut self, at: &Node, what: &str, must: &str, hint: Option<String>) -> Option<T> {
        let message = format!("{what} must be {must}, not {}", kind(&at.value));
        self.fail(at, message, hint)
    }

    /// The fields of a mapping; `what` names it in messages.
    pub fn fields<'n>(&mut self, node: &'n Node, what: &'static str) -> Option<Fields<'n>> {
        let entries = self.entries(node, what)?;
        Some(Fields {
            what,
            node,
            entries,
            known: Vec::new(),
        })
    }

    /// The entries of a mapping whose keys are data.
    pub fn entries<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            _ => self.refuse(node, what, "a mapping", None),
        }
    }

    /// A whole number within bounds.
    pub fn whole(&mut self, node: &Node, what: &str, bounds: (u32, u32)) -> Option<u32> {
        let (least, most) = bounds;
        if let Value::Int(n) = node.value
            && let Ok(n) = u32::try_from(n)
            && (least..=most).contains(&n)
        {
            return Some(n);
        }
        let message = format!("{what} must be a whole number from {least} to {most}");
        self.fail(node, message, None)
    }

    pub fn list<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(items) => Some(items),
            _ => self.refuse(node, what, "a list", None),
        }
    }

    /// What `read` makes of each item of a list, so that one problem hides no other.
    pub fn each<T>(
        &mut self,
        node: &Node,
        what: &str,
        read: impl Fn(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.list(node, what)?;
        let read: Vec<_> = items.iter().map(|item| read(self, item)).collect();
        read.into_iter().collect()
    }

    /// The same for the valid items alone.
    pub fn kept<T>(
        &mut self,
        node: &Node,
        what: &str,
        read: impl Fn(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.list(node, what)?;
        Some(items.iter().filter_map(|item| read(self, item)).collect())
    }

    /// A range of versions.
    pub fn range(&mut self, node: &Node, what: &str) -> Option<VersionReq> {
        let text = self.text(node, what)?;
        let read = text.parse();
        if let Err(error) = &read {
            let hint = "a range such as \">=1.24, <1.28\"".to_owned();
            let message = format!("`{text}` is not a range of versions: {error}");
            self.report(node, message, Some(hint));
        }
        read.ok()
    }

    /// Text that is not empty.
    pub fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.value {
            Value::Text(text) if !text.trim().is_empty() => Some(text),
            Value::Text(_) => self.fail(node, format!("{what} must not be empty"), None),
            other => {
                let scalar = matches!(other, Value::Bool(_) | Value::Int(_) | Value::Float(_));
                let hint = scalar.then(|| "put it in quotes if it is meant as text".to_owned());
                self.refuse(node, what, "text", hint)
            }
        }
    }

    /// What `parse` makes of text; the message about any other text quotes it and goes on with `is_not`.
    pub fn parsed<T>(
        &mut self,
        node: &Node,
        what: &str,
        (is_not, hint): (&str, Option<&str>),
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(node, what)?;
        let value = parse(text);
        if value.is_none() {
            self.report(node, format!("`{text}` {is_not}"), hint.map(str::to_owned));
        }
        value
    }

    pub fn flag(&mut self, node: &Node, what: &str) -> Option<bool> {
        match node.value {
            Value::Bool(flag) => Some(flag),
            _ => self.refuse(node, what, "`true` or `false`", None),
        }
    }

    /// A whole number from 1 to 65535.
    pub fn count(&mut self, node: &Node, what: &str) -> Option<u16> {
        let count = self.whole(node, what, (1, u16::MAX.into()))?;
        u16::try_from(count).ok()
    }

    /// Text that `parse` takes; a refusal is reported with the nearest of the `known` words.
    pub fn word<T>(
        &mut self,
        node: &Node,
        what: &str,
        known: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(node, what)?;
        if let Some(value) = parse(text) {
            return Some(value);
        }
        let hint = did_you_mean(text, known);
        self.fail(node, format!("unknown {what} `{text}`"), Some(hint))
    }

    /// The member of `known` whose word the text is.
    pub fn member<T: Copy + Into<&'static str>>(
        &mut self,
        node: &Node,
        what: &str,
        known: &[T],
    ) -> Option<T> {
        let words: Vec<&str> = known.iter().map(|&one| one.into()).collect();
        self.word(node, what, &words, |text| {
            let place = words.iter().position(|&word| word == text)?;
            Some(known[place])
        })
    }

    /// The single `key: value` of a mapping that names one of several alternatives.
    pub fn tagged<'n>(
        &mut self,
        node: &'n Node,
        what: &'static str,
        known: &[&str],
    ) -> Option<&'n Entry> {
        let fields = self.fields(node, what)?;
        match fields.entries {
            [entry] if known.contains(&entry.key.as_str()) => Some(entry),
            [entry] => {
                let hint = did_you_mean(&entry.key, known);
                let message = format!("unknown {what} `{}`", entry.key);
                self.fail(&entry.key_node(), message, Some(hint))
            }
            entries => {
                let message = format!("{what} must have exactly one key, not {}", entries.len());
                self.fail(node, message, Some(format!("one of: {}", known.join(", "))))
            }
        }
    }
}

/// Reads the list of a file, item by item, and returns the names of items that it could not read: `what`
/// names the file in messages, `key` is the key of the list, `name` the key of an item's name.
pub fn read_list(
    (file, text): (&str, &str),
    [what, key, name]: [&'static str; 3],
    found: &mut Vec<Diagnostic>,
    mut read: impl FnMut(&mut Decoder<'_>, &Node) -> Option<()>,
) -> Unread {
    let root = match parse(file, text) {
        Ok(root) => root,
        Err(error) => {
            found.push(error);
            return Unread::whole();
        }
    };
    let mut decoder = Decoder::new(file);
    let items = decoder.fields(&root, what).and_then(|mut fields| {
        let list = fields.required(&mut decoder, key);
        fields.finish(&mut decoder);
        decoder.list(list?, &format!("`{key}`"))
    });
    let mut unread = match items {
        Some(_) => Unread::default(),
        None => Unread::whole(),
    };
    for item in items.unwrap_or_default() {
        if read(&mut decoder, item).is_none() {
            unread.note(item, name);
        }
    }
    found.extend(decoder.finish());
    unread
}

/// The fields of one mapping; [`Fields::finish`] reports the keys that were not read.
pub struct Fields<'n> {
    what: &'static str,
    node: &'n Node,
    entries: &'n [Entry],
    known: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The value of a key that may be missing.
    pub fn optional(&mut self, key: &'static str) -> Option<&'n Node> {
        self.known.push(key);
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }

    /// The value of a key that may be missing, or may have no value.
    pub fn filled(&mut self, key: &'static str) -> Option<&'n Node> {
        self.optional(key).filter(|node| node.value != Value::Null)
    }

    /// What `read` makes of the value of a key that may be missing, or may have no value.
    pub fn set<T>(
        &mut self,
        decoder: &mut Decoder<'_>,
        key: &'static str,
        read: impl FnOnce(&mut Decoder<'_>, &'n Node) -> Option<T>,
    ) -> Option<T> {
        let node = self.filled(key)?;
        read(decoder, node)
    }

    /// The value of a key that must be present; its absence is reported.
    pub fn required(&mut self, decoder: &mut Decoder<'_>, key: &'static str) -> Option<&'n Node> {
        let value = self.optional(key);
        if value.is_none() {
            decoder.report(self.node, format!("{} has no `{key}`", self.what), None);
        }
        value
    }

    /// What `read` makes of the value of a key that must be present.
    pub fn read<T>(
        &mut self,
        decoder: &mut Decoder<'_>,
        key: &'static str,
        read: impl FnOnce(&mut Decoder<'_>, &'n Node) -> Option<T>,
    ) -> Option<T> {
        let node = self.required(decoder, key)?;
        read(decoder, node)
    }

    /// What `read` makes of the value of a key; `absent` where it is missing.
    pub fn or<T>(
        &mut self,
        decoder: &mut Decoder<'_>,
        key: &'static str,
        absent: T,
        read: impl FnOnce(&mut Decoder<'_>, &'n Node) -> Option<T>,
    ) -> Option<T> {
        match self.optional(key) {
            None => Some(absent),
            Some(node) => read(decoder, node),
        }
    }

    /// The same, with `None` for a missing key.
    pub fn maybe<T>(
        &mut self,
        decoder: &mut Decoder<'_>,
        key: &'static str,
        read: impl FnOnce(&mut Decoder<'_>, &'n Node) -> Option<T>,
    ) -> Option<Option<T>> {
        self.or(decoder, key, None, |decoder, node| {
            read(decoder, node).map(Some)
        })
    }

    /// The text of a key that must be present.
    pub fn text(&mut self, decoder: &mut Decoder<'_>, key: &'static str) -> Option<String> {
        let node = self.required(decoder, key)?;
        decoder.text(node, &format!("`{key}`")).map(str::to_owned)
    }

    /// The range of versions of a key that must be present.
    pub fn range(&mut self, decoder: &mut Decoder<'_>, key: &'static str) -> Option<VersionReq> {
        let node = self.required(decoder, key)?;
        decoder.range(node, &format!("`{key}`"))
    }

    /// The whole number from 1 to 65535 of a key that must be present.
    pub fn count(&mut self, decoder: &mut Decoder<'_>, key: &'static str) -> Option<u16> {
        let node = self.required(decoder, key)?;
        decoder.count(node, &format!("`{key}`"))
    }

    /// Reports every key that was not read, with the nearest known key; returns their number.
    pub fn finish(self, decoder: &mut Decoder<'_>) -> usize {
        let known = |entry: &&Entry| self.known.contains(&entry.key.as_str());
        let mut unknown = 0;
        for entry in self.entries.iter().filter(|entry| !known(entry)) {
            let message = format!("{} has an unknown key `{}`", self.what, entry.key);
            let hint = did_you_mean(&entry.key, &self.known);
            decoder.report(&entry.key_node(), message, Some(hint));
            unknown += 1;
        }
        unknown
    }
}

/// A hint with the nearest known word, if one is near, and all known words.
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? known are: {}", known.join(", ")),
        None => format!("known are: {}", known.join(", ")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Float(_) => "a number",
        Value::Text(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a mapping",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::parse;
    use super::*;

    #[derive(Clone, Copy, Debug, Eq, PartialEq, strum::IntoStaticStr, strum::VariantArray)]
    #[strum(serialize_all = "kebab-case")]
    enum Part {
        Container,
        ReplicaSet,
    }

    #[test]
    fn a_word_of_no_member_is_refused_with_all_that_are_known() {
        use strum::VariantArray;
        let read = |word: &str| {
            let node = parse("a.yaml", word).expect("valid");
            let mut decoder = Decoder::new("a.yaml");
            let member = decoder.member(&node, "part", Part::VARIANTS);
            let found = decoder.finish().into_iter();
            (member, found.map(|it| it.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(read("replica-set"), (Some(Part::ReplicaSet), Vec::new()));
        let (member, found) = read("sidecar");
        assert_eq!(member, None);
        assert!(found[0].contains("unknown part `sidecar`"), "{found:?}");
        assert!(found[0].contains("container, replica-set"), "{found:?}");
    }
}
