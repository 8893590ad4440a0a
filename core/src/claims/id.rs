//! The name of a claim.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

/// The id of a claim: lower-case area, then words divided by dots, such as `reject.pod.sysctls`.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String")]
pub struct ClaimId(String);

impl ClaimId {
    pub fn parse(text: &str) -> Option<Self> {
        let (area, rest) = text.split_once('.')?;
        let word = |w: &str| {
            w.starts_with(|c: char| c.is_ascii_lowercase())
                && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let valid = text.len() <= 80
            && area.chars().all(|c| c.is_ascii_lowercase())
            && word(area)
            && rest.split('.').all(word);
        valid.then(|| Self(text.to_owned()))
    }

    /// The part before the first dot, which is the suite's folder: `net`, `reject`, ….
    pub fn area(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }
}

impl Borrow<str> for ClaimId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

crate::text::name!(ClaimId);

impl TryFrom<String> for ClaimId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a claim id"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_area_and_words() {
        for good in [
            "net.dns-service",
            "reject.hostPID",
            "reject.pod.seLinuxOptions",
        ] {
            assert!(ClaimId::parse(good).is_some(), "{good}");
        }
        for bad in [
            "", "net", "net.", ".x", "Net.x", "net..x", "net.X", "net.x y", "net.x/y",
        ] {
            assert!(ClaimId::parse(bad).is_none(), "{bad}");
        }
    }
}
