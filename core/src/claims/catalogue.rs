//! All claims, read from `suites/claims.yaml`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::{Occupied, Vacant};

use super::claim_type::{ClaimType, Document};
use super::id::ClaimId;
use crate::document::{Decoder, Diagnostic, Node, Unread, nearest, read_list};

/// One documented statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub id: ClaimId,
    /// What sort of statement it is.
    pub claim_type: ClaimType,
    pub from: Vec<Document>,
    /// The address of its own page, test or issue.
    pub source: Option<String>,
    pub statement: String,
    /// Why it says otherwise than its documents.
    pub reworded: Option<String>,
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

    /// The claims in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.claims.values()
    }

    pub fn find(&self, id: &str) -> Option<&Claim> {
        self.claims.get(id)
    }

    /// The claim whose id a node has; an unknown one is reported with the nearest of those that `fits`.
    pub(crate) fn read_named(
        &self,
        decoder: &mut Decoder<'_>,
        node: &Node,
        fits: impl Fn(&Claim) -> bool,
    ) -> Option<&Claim> {
        let text = decoder.text(node, "`claim`")?;
        let claim = self.find(text);
        // The problem that hides a claim is reported at its own place
        if claim.is_none() && !self.unread.may_hold(text) {
            let known = self.iter().filter(|claim| fits(claim));
            let hint = match nearest(text, known.map(|claim| claim.id.as_str())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "add the claim to claims.yaml first".to_owned(),
            };
            decoder.report(node, format!("unknown claim `{text}`"), Some(hint));
        }
        claim
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
    let source = fields.maybe(decoder, "source", |decoder, node| {
        let is_not = ("is not an address", Some("it begins with https://"));
        let known = |text: &str| text.starts_with("https://").then(|| text.to_owned());
        decoder.parsed(node, "`source`", is_not, known)
    });
    let statement = fields.text(decoder, "claim");
    let reworded = fields.maybe(decoder, "reworded", |decoder, node| {
        decoder.text(node, "`reworded`").map(str::to_owned)
    });
    fields.finish(decoder);
    Some(Claim {
        id: id?,
        claim_type: kind?,
        from: from?,
        source: source?,
        statement: statement?,
        reworded: reworded?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(more: &str) -> (Catalogue, Vec<Diagnostic>) {
        let mut found = Vec::new();
        let claim = "id: net.x, type: advice, from: [docs], claim: it works";
        let text = format!("claims: [{{{claim}{more}}}]");
        let catalogue = Catalogue::read("claims.yaml", &text, &mut found);
        (catalogue, found)
    }

    #[test]
    fn a_claim_may_name_its_source_and_why_it_is_reworded() {
        let more = r#", source: "https://a.example/b", reworded: it is so"#;
        let (catalogue, found) = read(more);
        assert!(found.is_empty(), "{found:?}");
        let claim = catalogue.find("net.x").expect("the claim");
        assert_eq!(claim.source.as_deref(), Some("https://a.example/b"));
        assert_eq!(claim.reworded.as_deref(), Some("it is so"));
        let (catalogue, _) = read("");
        let claim = catalogue.find("net.x").expect("the claim");
        assert_eq!((&claim.source, &claim.reworded), (&None, &None));
    }

    #[test]
    fn a_source_is_an_address() {
        let (catalogue, found) = read(", source: page 7");
        assert!(catalogue.find("net.x").is_none());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].message, "`page 7` is not an address");
    }
}
