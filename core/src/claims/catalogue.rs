//! All claims, read from `suites/claims.yaml`.

use std::collections::BTreeMap;

use super::id::ClaimId;
use super::kind::{Document, Kind};
use crate::document::{Decoder, Diagnostic, Node, parse};

/// One documented statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its id.
    pub id: ClaimId,
    /// What sort of statement it is.
    pub kind: Kind,
    /// The documents that make it.
    pub from: Vec<Document>,
    /// The statement.
    pub statement: String,
}

/// All claims by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    claims: BTreeMap<ClaimId, Claim>,
}

impl Catalogue {
    /// Reads a claims file; what is valid is kept, the rest is reported to `found`.
    pub fn read(file: &str, text: &str, found: &mut Vec<Diagnostic>) -> Self {
        let mut catalogue = Self::default();
        let root = match parse(file, text) {
            Ok(root) => root,
            Err(error) => {
                found.push(error);
                return catalogue;
            }
        };
        let mut decoder = Decoder::new(file);
        if let Some(mut fields) = decoder.fields(&root, "the claims file") {
            let list = fields.required(&mut decoder, "claims");
            fields.finish(&mut decoder);
            let items = list.and_then(|node| decoder.list(node, "`claims`")).unwrap_or_default();
            for item in items {
                if let Some(claim) = read_claim(&mut decoder, item) {
                    let id = claim.id.clone();
                    if catalogue.claims.insert(id.clone(), claim).is_some() {
                        decoder.report(item, format!("claim `{id}` stands here twice"), None);
                    }
                }
            }
        }
        found.extend(decoder.finish());
        catalogue
    }

    /// The claims in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.claims.values()
    }

    /// The claim with this id.
    pub fn find(&self, id: &str) -> Option<&Claim> {
        self.claims.get(id)
    }

    /// How many claims there are.
    pub fn len(&self) -> usize {
        self.claims.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }
}

fn read_claim(decoder: &mut Decoder<'_>, node: &Node) -> Option<Claim> {
    let mut fields = decoder.fields(node, "a claim")?;
    let id = fields.required(decoder, "id");
    let kind = fields.required(decoder, "kind");
    let from = fields.required(decoder, "from");
    let statement = fields.required(decoder, "claim");
    fields.finish(decoder);
    let id = id.and_then(|node| {
        let text = decoder.text(node, "`id`")?;
        let id = ClaimId::parse(text);
        if id.is_none() {
            let hint = "an area and words divided by dots, such as net.dns-service".to_owned();
            decoder.report(node, format!("`{text}` is not a claim id"), Some(hint));
        }
        id
    });
    let kind = kind.and_then(|node| {
        decoder.word(node, "kind", &Kind::ALL.map(Kind::as_str), Kind::parse)
    });
    let from = from.and_then(|node| {
        let known = Document::ALL.map(Document::as_str);
        let items = decoder.list(node, "`from`")?;
        let documents: Vec<_> = items
            .iter()
            .filter_map(|item| decoder.word(item, "document", &known, Document::parse))
            .collect();
        if items.is_empty() {
            decoder.report(node, "`from` names no document", None);
        }
        Some(documents)
    });
    let statement = statement.and_then(|node| decoder.text(node, "`claim`"));
    Some(Claim { id: id?, kind: kind?, from: from?, statement: statement?.to_owned() })
}
