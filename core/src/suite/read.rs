//! Reads all suite files together, and reports all their problems together.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use super::admission::read_exceptions;
use super::case::{Case, read_case};
use super::when::report_unknowable;
use crate::claims::{Catalogue, ClaimId};
use crate::document::{
    Decoder, Diagnostic, Diagnostics, Place, Unread, did_you_mean, hexadecimal, parse,
};
use crate::verdict::{Ledger, LedgerEntry, read_ledger};

/// One file of a suites folder.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct SuiteFile {
    /// Its path below the folder, with forward slashes: `net/service.yaml`.
    pub path: String,
    /// How it is named in messages.
    pub shown: String,
    pub text: String,
}

/// The claims, the ledger and the cases.
#[derive(Clone, Debug)]
pub struct Suites {
    pub claims: Catalogue,
    /// The known limitations.
    pub ledger: Ledger,
    /// The cases, in the order of their claims.
    pub cases: Vec<Case>,
    /// SHA-256 over paths and texts, in hexadecimal.
    pub digest: String,
}

/// What a case may refer to.
pub(super) struct Known<'k> {
    pub(super) claims: &'k Catalogue,
    ledger: &'k Ledger,
    unread: &'k Unread,
}

/// What the ledger says of a case.
pub(super) enum Listed<'k> {
    Entry(&'k LedgerEntry),
    /// It may have an entry that could not be read.
    Unread,
    Not,
}

impl Known<'_> {
    /// The ledger's entry of a case.
    pub(super) fn listed(&self, claim: &ClaimId, name: Option<&str>) -> Listed<'_> {
        match self.ledger.of_case(claim, name) {
            Some(entry) => Listed::Entry(entry),
            None if self.unread.may_hold(claim.as_str()) => Listed::Unread,
            None => Listed::Not,
        }
    }
}

impl Suites {
    /// Reads all files of a suites folder: `claims.yaml`, `limitations.yaml`, and
    /// `<area>/<topic>.yaml` with the cases of claims of that area.
    pub fn read(mut files: Vec<SuiteFile>) -> Result<Self, Diagnostics> {
        files.sort();
        let digest = digest(&files);
        let mut problems = Vec::new();
        leave_out_copies(&mut files, &mut problems);
        let claims = match file(&files, "claims.yaml", &mut problems) {
            Some(file) => Catalogue::read(&file.shown, &file.text, &mut problems),
            None => Catalogue::unread(),
        };
        let (ledger, unread) = match file(&files, "limitations.yaml", &mut problems) {
            Some(file) => read_ledger(&file.shown, &file.text, &claims, &mut problems),
            None => (Ledger::default(), Unread::whole()),
        };
        let known = Known {
            claims: &claims,
            ledger: &ledger,
            unread: &unread,
        };
        let (mut cases, mut unread_cases) = (BTreeMap::new(), Unread::default());
        for file in &files {
            match file.path.as_str() {
                "claims.yaml" | "limitations.yaml" => {}
                path if path.contains('/') => {
                    read_cases(file, &known, &mut cases, &mut unread_cases, &mut problems);
                }
                _ => {
                    let message = "is neither claims.yaml nor limitations.yaml";
                    let hint = "cases belong in a folder named for their area".to_owned();
                    problems.push(Place::argument(&file.shown).problem(message, Some(hint)));
                }
            }
        }
        let cases: Vec<_> = cases.into_values().map(|(case, _)| case).collect();
        report_unknown_cases(&ledger, &cases, &unread_cases, &mut problems);
        report_unknowable(&cases, &unread_cases, &mut problems);
        Diagnostics::check(problems)?;
        Ok(Self {
            claims,
            ledger,
            cases,
            digest,
        })
    }

    pub fn has_area(&self, name: &str) -> bool {
        self.claims.iter().any(|claim| claim.id.area() == name)
    }

    pub fn cases_of(&self, claim: &ClaimId) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.claim == *claim)
    }

    /// The ledger's entry of a case, which is a limitation then.
    pub fn limitation(&self, case: &Case) -> Option<&LedgerEntry> {
        self.ledger.of_case(&case.claim, case.name.as_deref())
    }
}

fn file<'f>(
    files: &'f [SuiteFile],
    path: &str,
    problems: &mut Vec<Diagnostic>,
) -> Option<&'f SuiteFile> {
    let file = files.iter().find(|file| file.path == path);
    if file.is_none() {
        let hint = "copy it from the project's own `suites/`".to_owned();
        problems.push(Place::argument(path).problem("is missing from the suites", Some(hint)));
    }
    file
}

/// Leaves out each folder of suites that is within another, and reports it once.
fn leave_out_copies(files: &mut Vec<SuiteFile>, problems: &mut Vec<Diagnostic>) {
    let is_within = |file: &&SuiteFile| file.path.ends_with("/claims.yaml");
    while let Some(top) = files.iter().find(is_within).cloned() {
        let folder = top.path.trim_end_matches("claims.yaml");
        files.retain(|file| !file.path.starts_with(folder));
        let shown = top.shown.trim_end_matches("claims.yaml");
        let hint = format!("remove the folder `{shown}`, or put it elsewhere");
        let message = "begins a folder of suites within this one";
        problems.push(Place::argument(&top.shown).problem(message, Some(hint)));
    }
}

fn read_cases<'f>(
    file: &'f SuiteFile,
    known: &Known<'_>,
    cases: &mut BTreeMap<(ClaimId, Option<String>), (Case, &'f str)>,
    unread: &mut Unread,
    problems: &mut Vec<Diagnostic>,
) {
    let root = match parse(&file.shown, &file.text) {
        Ok(root) => root,
        Err(error) => {
            *unread = Unread::whole();
            problems.push(error);
            return;
        }
    };
    let mut decoder = Decoder::new(&file.shown);
    if let Some(mut fields) = decoder.fields(&root, "a suite") {
        let list = fields.required(&mut decoder, "cases");
        let except = fields.optional("except");
        fields.finish(&mut decoder);
        let common = except
            .and_then(|node| read_exceptions(&mut decoder, node))
            .unwrap_or_default();
        let items = list
            .and_then(|node| decoder.list(node, "`cases`"))
            .unwrap_or_default();
        // The same mistake of many cases is reported at the first
        let (mut astray, mut twice) = (BTreeSet::new(), BTreeSet::new());
        for item in items {
            let Some(mut case) = read_case(&mut decoder, item, known) else {
                unread.note(item, "claim");
                continue;
            };
            case.exceptions.splice(0..0, common.iter().cloned());
            let area = file.path.split('/').next().unwrap_or_default();
            if case.claim.area() != area && astray.insert(case.claim.area().to_owned()) {
                let hint = format!("its cases belong in `{}/`", case.claim.area());
                let message = format!("`{}` is not of the area `{area}`", case.claim);
                decoder.report(item, message, Some(hint));
            }
            let key = (case.claim.clone(), case.name.clone());
            if let Some((case, other)) = cases.insert(key, (case, &file.shown))
                && (other == file.shown || twice.insert(other))
            {
                let message = format!("a second case of `{}` of the same name", case.claim);
                let hint = format!("one is in `{other}`: remove one, or give each a `name`");
                decoder.report(item, message, Some(hint));
            }
        }
    }
    problems.extend(decoder.finish());
}

/// Reports entries of the ledger for cases that do not exist.
fn report_unknown_cases(
    ledger: &Ledger,
    cases: &[Case],
    unread: &Unread,
    problems: &mut Vec<Diagnostic>,
) {
    for entry in ledger.entries() {
        let Some(named) = &entry.case else { continue };
        let of_claim = cases.iter().filter(|case| case.claim == entry.claim);
        let known: Vec<_> = of_claim.filter_map(|case| case.name.as_deref()).collect();
        let (claim, name) = (&entry.claim, named.value.as_str());
        // The problem that hides the case is reported at its own place
        if known.contains(&name) || unread.may_hold(claim.as_str()) {
            continue;
        }
        let hint = match known.as_slice() {
            [] => "none of its cases has a `name`: give it one, or remove the entry".to_owned(),
            known => did_you_mean(name, known),
        };
        let message = format!("claim `{claim}` has no case `{name}`");
        problems.push(named.at.problem(message, Some(hint)));
    }
}

fn digest(files: &[SuiteFile]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        for part in [&file.path, &file.text] {
            // The length separates the parts
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hexadecimal(hash.finalize())
}
