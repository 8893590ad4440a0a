//! A pattern of names: `reject.*`, `net.*[pool=windows-2022*`.

use serde::{Deserialize, Serialize};

use crate::document::{Decoder, Node};

/// A pattern of names: `*` stands for any characters or none, `?` for one; brackets are brackets,
/// as they are in the ids of checks.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String")]
pub struct Pattern(String);

// What a pattern must be
const LENGTH: &str = "a pattern has 1 to 200 characters";
const CHARACTERS: &str = "a pattern holds letters, digits, `.`, `-`, `/`, `[`, `]`, `=`, `,` and the wildcards `*` and `?`";
const BRACKET: &str =
    "the bracket of a pattern has a claim's id or a wildcard before it, and nothing after it";

/// What may follow a claim's id in the id of a check.
struct Part {
    begins: char,
    ends: Option<char>,
    /// The characters that it cannot hold.
    foreign: &'static str,
}

/// `/` and the name of a case.
const NAME: Part = Part {
    begins: '/',
    ends: None,
    foreign: "/[],=",
};
/// The values of a point, in brackets.
const POINT: Part = Part {
    begins: '[',
    ends: Some(']'),
    foreign: "/[]",
};

/// Whether the whole of a text matches, where only the wildcards are as in a pattern of names.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    Pattern(pattern.to_owned()).matches(text)
}

/// Reads a pattern; `what` names it in messages.
pub(crate) fn read_pattern(decoder: &mut Decoder<'_>, node: &Node, what: &str) -> Option<Pattern> {
    let text = decoder.text(node, what)?;
    match Pattern::parse(text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let message = format!("`{text}` is not a pattern of checks");
            decoder.fail(node, message, Some(error.to_owned()))
        }
    }
}

impl Pattern {
    /// The most characters of a pattern.
    pub const LONGEST: usize = 200;

    /// The error says what a pattern must be.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.len() > Self::LONGEST {
            return Err(LENGTH);
        }
        let known = |c: char| c.is_ascii_alphanumeric() || ".-/[]=,*?".contains(c);
        if !text.chars().all(known) {
            return Err(CHARACTERS);
        }
        let (open, close) = (text.matches('[').count(), text.matches(']').count());
        let sound = match (open, close) {
            (0, 0) => true,
            (1, 0) => !text.starts_with('['),
            (1, 1) => !text.starts_with('[') && text.ends_with(']'),
            // `*2022]` ends as ids do
            (0, 1) => text.ends_with(']') && text.contains(['*', '?']),
            _ => false,
        };
        match sound {
            true => Ok(Self(text.to_owned())),
            false => Err(BRACKET),
        }
    }

    /// Whether it names nothing: it has only wildcards and separators of the parts of ids.
    pub fn is_everything(&self) -> bool {
        let mut parts = self.0.split(['[', ',']);
        parts.all(|part| {
            let named = part.split_once('=').map_or(part, |(_, value)| value);
            named.chars().all(|c| "*?./]".contains(c))
        })
    }

    /// Whether it may name a point or a case alone, so that a claim's id need not match.
    pub fn is_of_a_check(&self) -> bool {
        self.0.starts_with('*') || self.0.contains(['[', ']', '/', '='])
    }

    /// Whether the whole of a name matches.
    pub fn matches(&self, name: &str) -> bool {
        // Most patterns differ from most names before their first wildcard
        let literal = self.0.bytes().take_while(|letter| !b"*?".contains(letter));
        let differs = literal.zip(name.bytes()).any(|(one, other)| one != other);
        !differs && self.places(name).last() == Some(&true)
    }

    /// Whether a check's id matches, or its part before the point, or the claim's id alone: the
    /// id of a claim means all of its checks.
    pub fn covers(&self, id: &str) -> bool {
        let case = id.split('[').next().unwrap_or_default();
        let claim = case.split('/').next().unwrap_or_default();
        [id, case, claim].iter().any(|name| self.matches(name))
    }

    /// Whether a check of the claim with this id may be covered, whatever its case and its point.
    pub fn may_cover(&self, claim: &str) -> bool {
        self.may_cover_case(claim) || self.ends(claim, &[NAME]) || self.ends(claim, &[NAME, POINT])
    }

    /// Whether a check of the case with this id, or of a claim's case without a name, may be covered,
    /// whatever its point.
    pub fn may_cover_case(&self, case: &str) -> bool {
        self.covers(case) || self.ends(case, &[POINT])
    }

    /// Whether a name with this beginning and then these parts can match.
    fn ends(&self, begins: &str, parts: &[Part]) -> bool {
        let mut places = self.places(begins);
        for part in parts {
            self.read(&mut places, part.begins);
            // A part has any characters or none: it may pass each literal that it can hold
            for place in 0..self.0.len() {
                let literal = char::from(self.0.as_bytes()[place]);
                places[place + 1] |= places[place] && !part.foreign.contains(literal);
            }
            if let Some(last) = part.ends {
                self.read(&mut places, last);
            }
        }
        places.last() == Some(&true)
    }

    /// Which places of the pattern are reached when the name has been read: place `n` is before its `n`th
    /// character, the last is its end. It follows all places at once, so that no pattern takes longer than
    /// its length times the name's.
    fn places(&self, name: &str) -> Vec<bool> {
        let mut places = vec![false; self.0.len() + 1];
        places[0] = true;
        self.skip_stars(&mut places);
        for character in name.chars() {
            self.read(&mut places, character);
        }
        places
    }

    /// Makes of these places those that are reached by one more character.
    fn read(&self, places: &mut [bool], character: char) {
        let pattern = self.0.as_bytes();
        places[pattern.len()] = false;
        // From the end, for each changes itself and the one behind it
        for (place, &letter) in pattern.iter().enumerate().rev() {
            if places[place] && letter != b'*' {
                places[place] = false;
                places[place + 1] |= letter == b'?' || char::from(letter) == character;
            }
        }
        self.skip_stars(places);
    }

    fn skip_stars(&self, places: &mut [bool]) {
        for (place, letter) in self.0.bytes().enumerate() {
            if places[place] && letter == b'*' {
                places[place + 1] = true;
            }
        }
    }
}

crate::text::name!(Pattern);

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).map_err(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    const TABLES: &str = include_str!("pattern.yaml");
    use proptest::prelude::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).expect("a pattern")
    }

    #[test]
    fn wildcards_stand_for_any_characters_and_brackets_for_themselves() {
        let id = "net.service-ip-from-pod[pool=windows-2022,source=linux-pod]";
        for good in [
            "*",
            "net.*",
            "*.service-ip-from-pod*",
            "net.*[pool=windows-2022*",
            "net.*[*source=linux-pod]",
            "net.service-ip-from-???[*",
            "*2022*",
            id,
        ] {
            assert!(pattern(good).matches(id), "{good}");
        }
        for bad in rows::<String>(TABLES, "matches-none") {
            assert!(!pattern(&bad).matches(id), "{bad}");
        }
    }

    #[test]
    fn the_id_of_a_claim_means_all_its_checks() {
        let id = "reject.pod.hostUsers/deployment[pool=windows-2022]";
        for good in rows::<String>(TABLES, "covers") {
            assert!(pattern(&good).covers(id), "{good}");
        }
        for bad in ["reject", "reject.pod", "reject.pod.hostUsers/pod", "*/dep"] {
            assert!(!pattern(bad).covers(id), "{bad}");
        }
    }

    #[test]
    fn whether_a_point_may_match_is_known_from_the_claim() {
        for (text, expected) in rows::<(String, bool)>(TABLES, "may-cover") {
            let may = pattern(&text).may_cover("net.service-ip-from-pod");
            assert_eq!(may, expected, "{text}");
        }
        assert!(!pattern("net.x/one/two").may_cover_case("net.x/one"));
    }

    #[test]
    fn whether_a_case_may_match_is_known_from_its_id() {
        for (text, case, expected) in rows::<(String, String, bool)>(TABLES, "may-cover-case") {
            assert_eq!(
                pattern(&text).may_cover_case(&case),
                expected,
                "{text} {case}"
            );
        }
        for (text, expected) in [
            ("net.*/ring", true),
            ("net.udp/*[node=1]", true),
            ("net.udp/a/b", false),
        ] {
            assert_eq!(pattern(text).may_cover("net.udp"), expected, "{text}");
        }
    }

    #[test]
    fn wildcards_alone_name_nothing() {
        for text in rows::<String>(TABLES, "everything") {
            assert!(pattern(&text).is_everything(), "{text}");
        }
        for text in rows::<String>(TABLES, "not-everything") {
            assert!(!pattern(&text).is_everything(), "{text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (text, error) in [
            ("", LENGTH),
            ("net.a b", CHARACTERS),
            ("net.\u{1b}[31m", CHARACTERS),
            ("net.{a}", CHARACTERS),
            ("net.x[pool=a]]", BRACKET),
            ("[pool=a]", BRACKET),
            ("net.x[pool=a]b", BRACKET),
            ("net.x]", BRACKET),
        ] {
            assert_eq!(Pattern::parse(text), Err(error), "{text}");
        }
        let long = "a".repeat(Pattern::LONGEST + 1);
        assert_eq!(Pattern::parse(&long), Err(LENGTH));
    }

    #[test]
    fn many_stars_take_no_longer_than_one() {
        let stars = pattern(&"*a".repeat(Pattern::LONGEST / 2));
        assert!(!stars.matches(&"ab".repeat(40)));
    }

    /// What matching means, in the slow way.
    fn slow(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], name) => name.is_empty(),
            (['*', rest @ ..], name) => (0..=name.len()).any(|at| slow(rest, &name[at..])),
            (['?', rest @ ..], [_, name @ ..]) => slow(rest, name),
            ([letter, rest @ ..], [first, name @ ..]) => letter == first && slow(rest, name),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn matching_is_what_it_means(text in "[ab*?]{1,8}", name in "[ab]{0,10}") {
            let (letters, given): (Vec<_>, Vec<_>) = (text.chars().collect(), name.chars().collect());
            prop_assert_eq!(pattern(&text).matches(&name), slow(&letters, &given));
        }
    }
}
