//! What is wrong in a file a person wrote, where, and what to do about it.

use std::fmt;

use crate::text::{counted, printable};

/// One problem at one place of a file.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Diagnostic {
    pub file: String,
    /// Line, from 1; 0 when the problem has no place.
    pub line: u64,
    /// Column in characters, from 1; 0 when the problem has no place.
    pub column: u64,
    /// What is wrong, in lower case.
    pub message: String,
    pub hint: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = printable(&self.file);
        match (self.line, self.column) {
            (0, _) => write!(f, "{file}: {}", printable(&self.message))?,
            (line, column) => write!(f, "{file}:{line}:{column}: {}", printable(&self.message))?,
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {}", printable(hint)),
            None => Ok(()),
        }
    }
}

/// All problems of one or more files, in the order of their places; never empty.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// The problems as an error, or `Ok` when there are none.
    pub fn check(mut problems: Vec<Diagnostic>) -> Result<(), Self> {
        if problems.is_empty() {
            return Ok(());
        }
        problems.sort();
        problems.dedup();
        Err(Self(problems))
    }

    /// The problems, sorted by file, line and column.
    pub fn all(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self(vec![one])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.0 {
            writeln!(f, "{one}")?;
        }
        f.write_str(&counted(self.0.len(), "problem"))
    }
}

/// The known word nearest to `word`, if it is near enough to be what was meant.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // A name of a megabyte is no typing mistake, and the comparison is quadratic
    if word.len() > 200 {
        return None;
    }
    // A long word that is cut short, with one mistake
    let begins = |candidate: &str| {
        let heads = [word.len(), word.len() + 1].map(|end| candidate.get(..end));
        let mut heads = heads.into_iter().flatten();
        word.len() > 8 && heads.any(|head| strsim::damerau_levenshtein(word, head) == 1)
    };
    // If more than a third of the letters differ, another word was meant, unless `word` is cut short
    let near = |(likeness, candidate): &(f64, &str)| {
        let longer = word.chars().count().max(candidate.chars().count());
        let differ = strsim::damerau_levenshtein(word, candidate);
        // Likeness says little of words of three letters
        (candidate.starts_with(word) || begins(candidate) || differ * 3 <= longer)
            && (*likeness > 0.8 || differ == 1)
    };
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(near)
        .max_by(|a, b| begins(a.1).cmp(&begins(b.1)).then(a.0.total_cmp(&b.0)))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_is_not_meant() {
        let known = [
            "net.service-ip-from-pod",
            "net.service-types",
            "windows-2022",
            "reject",
            "hint",
            "net",
        ];
        for (written, near) in [
            ("net.service-ip", Some("net.service-ip-from-pod")),
            ("net.servce-ip", Some("net.service-ip-from-pod")),
            ("windows-2023", Some("windows-2022")),
            ("hnit", Some("hint")),
            ("hit", Some("hint")),
            ("rejects", Some("reject")),
            ("nt", Some("net")),
            ("nx", None),
            ("win-2022-c", None),
            ("hostile", None),
            ("moon", None),
        ] {
            assert_eq!(nearest(written, known), near, "{written}");
        }
    }
}
