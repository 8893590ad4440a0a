//! How a claim is checked.

use crate::claims::{ClaimId, Kind};
use crate::document::{Decoder, Node};
use crate::verdict::LedgerEntry;
use crate::way::{SourceKind, Test};

use super::look::read_test;
use super::read::Known;

/// How a claim is checked: what it is repeated over, what is looked at, and its controls.
#[derive(Clone, Debug)]
pub struct Case {
    /// The claim.
    pub claim: ClaimId,
    /// What kind of claim it is.
    pub kind: Kind,
    /// Tells the cases of one claim apart; only such claims' cases have it.
    pub name: Option<String>,
    /// What is looked at, in words.
    pub title: String,
    /// What it is repeated over.
    pub over: Over,
    /// The look.
    pub test: Test,
    /// Looks that must hold beside it.
    pub controls: Vec<Control>,
    /// What to look at when it fails.
    pub hint: String,
}

/// The axes of a case.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Over {
    /// Every Windows pool.
    pub windows_pools: bool,
    /// These kinds of sources.
    pub sources: Vec<SourceKind>,
}

/// A look that must hold in the same round, so that the case's own look proves something.
#[derive(Clone, Debug)]
pub struct Control {
    /// Its name within the case.
    pub name: String,
    /// Where it looks from, when not from where the case does.
    pub source: Option<SourceKind>,
    /// What it looks at, when not at what the case does.
    pub test: Option<Test>,
}

/// Reads one case; problems are reported to the decoder.
pub(super) fn read_case(
    decoder: &mut Decoder<'_>,
    node: &Node,
    known: &Known<'_>,
) -> Option<Case> {
    let mut fields = decoder.fields(node, "a case")?;
    let claim_node = fields.required(decoder, "claim");
    let name = fields.optional("name");
    let title = fields.required(decoder, "title");
    let over_node = fields.optional("over");
    let test_node = fields.required(decoder, "test");
    let controls_node = fields.optional("controls");
    let hint = fields.required(decoder, "hint");
    fields.finish(decoder);

    let claim = claim_node.and_then(|node| known.claim(decoder, node));
    let name = name.and_then(|node| decoder.text(node, "`name`")).map(str::to_owned);
    let title = title.and_then(|node| decoder.text(node, "`title`")).map(str::to_owned);
    let hint = hint.and_then(|node| decoder.text(node, "`hint`")).map(str::to_owned);
    let over = match over_node {
        None => Some(Over::default()),
        Some(node) => read_over(decoder, node),
    };
    let test = test_node.and_then(|node| read_test(decoder, node));
    let controls = match controls_node {
        None => Some(Vec::new()),
        Some(node) => decoder.list(node, "`controls`").map(|items| {
            items.iter().filter_map(|item| read_control(decoder, item)).collect::<Vec<_>>()
        }),
    };
    let (claim, over, test, controls) = (claim?, over?, test?, controls?);
    let case = Case {
        claim: claim.id.clone(),
        kind: claim.kind,
        name,
        title: title?,
        over,
        test,
        controls,
        hint: hint?,
    };
    let sound = check_axes(decoder, over_node.unwrap_or(node), &case)
        & check_controls(decoder, controls_node.unwrap_or(node), &case)
        & check_ledger(decoder, claim_node.unwrap_or(node), &case, known.ledger(&case.claim));
    sound.then_some(case)
}

fn read_over(decoder: &mut Decoder<'_>, node: &Node) -> Option<Over> {
    let mut fields = decoder.fields(node, "`over`")?;
    let pool = fields.optional("pool");
    let source = fields.optional("source");
    fields.finish(decoder);
    let windows_pools = match pool {
        None => false,
        Some(node) => decoder.word(node, "pool axis", &["windows"], |word| {
            (word == "windows").then_some(true)
        })?,
    };
    let mut sources = Vec::new();
    for item in source.and_then(|node| decoder.list(node, "`source`")).unwrap_or_default() {
        let source = read_source(decoder, item)?;
        if sources.contains(&source) {
            decoder.report(item, format!("source `{}` stands here twice", source.as_str()), None);
        }
        sources.push(source);
    }
    Some(Over { windows_pools, sources })
}

fn read_source(decoder: &mut Decoder<'_>, node: &Node) -> Option<SourceKind> {
    decoder.word(node, "source", &SourceKind::ALL.map(SourceKind::as_str), SourceKind::parse)
}

fn read_control(decoder: &mut Decoder<'_>, node: &Node) -> Option<Control> {
    let mut fields = decoder.fields(node, "a control")?;
    let name = fields.required(decoder, "name");
    let source = fields.optional("source");
    let test = fields.optional("test");
    fields.finish(decoder);
    if source.is_none() && test.is_none() {
        let hint = "give it a `source` or a `test` of its own".to_owned();
        decoder.report(node, "a control like its case controls nothing", Some(hint));
        return None;
    }
    let name = name.and_then(|node| decoder.text(node, "`name`")).map(str::to_owned);
    let source = match source {
        None => None,
        Some(node) => Some(read_source(decoder, node)?),
    };
    let test = match test {
        None => None,
        Some(node) => Some(read_test(decoder, node)?),
    };
    Some(Control { name: name?, source, test })
}

fn check_axes(decoder: &mut Decoder<'_>, node: &Node, case: &Case) -> bool {
    let mut sound = true;
    let mut refuse = |message: &str, hint: &str| {
        decoder.report(node, message, Some(hint.to_owned()));
        sound = false;
    };
    match (case.test.needs_source(), case.over.sources.is_empty()) {
        (true, true) => refuse("this test looks from somewhere, but the case has no source", {
            "add `source: [linux-pod, windows-pod]` to `over`"
        }),
        (false, false) => refuse("this test asks the API server: sources mean nothing to it", {
            "remove `source` from `over`"
        }),
        (true, false) | (false, true) => {}
    }
    let tests = std::iter::once(&case.test).chain(case.controls.iter().flat_map(|c| &c.test));
    let per_pool = tests.flat_map(Test::needs).any(|(fixture, _)| fixture.per_pool());
    if per_pool && !case.over.windows_pools {
        refuse("its fixture stands once per pool, but the case has no pool", {
            "add `pool: windows` to `over`"
        });
    }
    sound
}

fn check_controls(decoder: &mut Decoder<'_>, node: &Node, case: &Case) -> bool {
    let mut names: Vec<_> = case.controls.iter().map(|control| &control.name).collect();
    names.sort();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    if let Some(pair) = twice {
        decoder.report(node, format!("control `{}` stands here twice", pair[0]), None);
        return false;
    }
    match case.kind {
        Kind::Limitation | Kind::Rejection if case.controls.is_empty() => {
            let message = format!("the case of a {} needs controls", case.kind);
            let hint = match case.kind {
                Kind::Limitation => "the same look from where it should work",
                _ => "the same object without the field, and the field without `os`",
            };
            decoder.report(node, message, Some(hint.to_owned()));
            false
        }
        _ => true,
    }
}

fn check_ledger(
    decoder: &mut Decoder<'_>,
    node: &Node,
    case: &Case,
    entry: Option<&LedgerEntry>,
) -> bool {
    if case.kind != Kind::Limitation {
        return true;
    }
    let Some(entry) = entry else {
        let message = format!("limitation `{}` has no entry in the ledger", case.claim);
        let hint = "add it to limitations.yaml with scope, signature, reason and source".to_owned();
        decoder.report(node, message, Some(hint));
        return false;
    };
    if case.test.expecting(&entry.signature).is_none() {
        let message = format!("the ledger's signature of `{}` is not one of this test", case.claim);
        decoder.report(node, message, None);
        return false;
    }
    true
}
