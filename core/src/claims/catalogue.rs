//! All claims, read from `suites/claims.yaml`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::{Occupied, Vacant};

use super::claim_type::{ClaimType, Document};
use super::id::ClaimId;
use crate::document::{Decoder, Diagnostic, Node, Unread, read_list};

/// One documented statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub id: ClaimId,
    /// What sort of statement it is.
    pub claim_type: ClaimType,
    pub from: Vec<Document>,
    pub statement: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    claims: BTreeMap<ClaimId, Claim>,
    unread: Unread,
}

impl Catalogue {
    /// Reads a claims file: keeps what is valid and reports the rest to `found`.
    pub fn read(file: &str, text: &str, found: &mut Vec<Diagnostic>) -> Self {
        let mut claims = BTreeMap::new();
        let words = ["the claims file", "claims", "id"];
        let unread = read_list((file, text), words, found, |decoder, item| {
            let claim = read_claim(decoder, item)?;
            match claims.entry(claim.id.clone()) {
                Vacant(place) => {
                    place.insert(claim);
                }
                Occupied(_) => {
                    let message = format!("claim `{}` appears twice", claim.id);
                    let hint = "give each an id of its own, or remove one".to_owned();
                    decoder.report(item, message, Some(hint));
                }
            }
            Some(())
        });
        Self { claims, unread }
    }

    /// The catalogue of a file that could not be read at all.
    pub fn unread() -> Self {
        Self {
            claims: BTreeMap::new(),
            unread: Unread::whole(),
        }
    }

    /// Whether a claim of this id may be where the file could not be read.
    pub fn may_hold(&self, id: &str) -> bool {
        self.unread.may_hold(id)
    }

    /// The claims in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.claims.values()
    }

    pub fn find(&self, id: &str) -> Option<&Claim> {
        self.claims.get(id)
    }
}

fn read_claim(decoder: &mut Decoder<'_>, node: &Node) -> Option<Claim> {
    let mut fields = decoder.fields(node, "a claim")?;
    let id = fields.read(decoder, "id", |decoder, node| {
        let hint = Some("an area and words divided by dots, such as net.dns-service");
        decoder.parsed(node, "`id`", ("is not a claim id", hint), ClaimId::parse)
    });
    let kind = fields.read(decoder, "type", |decoder, node| {
        decoder.member(node, "type", ClaimType::ALL)
    });
    let from = fields.read(decoder, "from", |decoder, node| {
        let items = decoder.list(node, "`from`")?;
        let documents: Vec<_> = items
            .iter()
            .filter_map(|item| decoder.member(item, "document", Document::ALL))
            .collect();
        if items.is_empty() {
            decoder.report(node, "`from` names no document", None);
        }
        Some(documents)
    });
    let statement = fields.text(decoder, "claim");
    fields.finish(decoder);
    Some(Claim {
        id: id?,
        claim_type: kind?,
        from: from?,
        statement: statement?,
    })
}
