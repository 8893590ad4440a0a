//! The known differences between two records.

use serde::Deserialize;

use crate::seen::Difference;

impl Difference {
    fn is_of(&self, other: &Self) -> bool {
        (self.case == "*" || self.case == other.case)
            && self.at == other.at
            && is_so(self.real.as_deref(), other.real.as_deref())
            && is_so(self.simulated.as_deref(), other.simulated.as_deref())
    }
}

/// A known text may end with ` *`, where chance decides the rest.
fn is_so(known: Option<&str>, seen: Option<&str>) -> bool {
    match (known.and_then(|known| known.strip_suffix('*')), seen) {
        (Some(known), Some(seen)) => known.ends_with(' ') && seen.starts_with(known),
        _ => known == seen,
    }
}

/// Known differences with one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    because: String,
    differences: Vec<Difference>,
}

/// The list of known differences.
pub(crate) struct Known(Vec<Difference>);

impl Known {
    pub(crate) fn all() -> Self {
        let text = include_str!("differences.yaml");
        let groups: Vec<Group> =
            serde_saphyr::from_str(text).expect("differences.yaml is as documented");
        for group in &groups {
            assert!(
                !group.because.trim().is_empty(),
                "a known difference has its reason"
            );
        }
        let list: Vec<_> = groups.into_iter().flat_map(|g| g.differences).collect();
        for known in &list {
            assert!(known.real != known.simulated, "not a difference: {known:?}");
        }
        Self(list)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The known differences that may occur in a case.
    pub(crate) fn for_case(&self, case: &str) -> Self {
        let applies = |known: &&Difference| known.case == "*" || known.case == case;
        Self(self.0.iter().filter(applies).cloned().collect())
    }

    /// Whether the differences of a case are exactly the known ones.
    pub(crate) fn explain(&self, seen: &[Difference]) -> bool {
        let expected = self.0.iter().filter(|known| known.case != "*");
        seen.iter()
            .all(|difference| self.0.iter().any(|known| known.is_of(difference)))
            && expected
                .clone()
                .all(|known| seen.iter().any(|difference| known.is_of(difference)))
    }

    /// Describes what is wrong with the list, with the entries to add; one entry for a difference that
    /// several cases have in common.
    pub(crate) fn check(&self, seen: &[Difference]) -> String {
        let mut new: Vec<Difference> = Vec::new();
        for difference in seen {
            if self.0.iter().any(|known| known.is_of(difference)) {
                continue;
            }
            let mut any = difference.clone();
            "*".clone_into(&mut any.case);
            match new.iter_mut().find(|new| any.is_of(new)) {
                Some(same) => *same = any,
                None => new.push(difference.clone()),
            }
        }
        let new: Vec<&Difference> = new.iter().collect();
        let gone: Vec<_> = self
            .0
            .iter()
            .filter(|known| !seen.iter().any(|difference| known.is_of(difference)))
            .collect();
        let list = |title: &str, of: &[&Difference]| {
            if of.is_empty() {
                return String::new();
            }
            let entries = serde_saphyr::to_string(&of).expect("YAML");
            format!("{} {title}:\n{entries}\n", of.len())
        };
        list("differences are not in differences.yaml", &new)
            + &list(
                "differences of differences.yaml are gone; delete them",
                &gone,
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::{Record, between};

    fn record(at: &str, text: &str) -> Record {
        Record::from([(at.to_owned(), text.to_owned())])
    }

    fn known(case: &str, simulated: &str) -> Known {
        Known(vec![Difference {
            case: case.to_owned(),
            at: "status.phase".to_owned(),
            real: Some("Running".to_owned()),
            simulated: Some(simulated.to_owned()),
        }])
    }

    #[test]
    fn new_and_gone_differences_are_both_told() {
        let real = record("status.phase", "Running");
        let seen = between("one", &real, &record("status.phase", "Not yet"));
        for explained in [known("one", "Not yet"), known("*", "Not *")] {
            assert!(explained.explain(&seen));
            assert_eq!(explained.check(&seen), "");
        }
        for other in [known("two", "Not yet"), known("one", "Never")] {
            assert!(!other.explain(&seen));
            let wrong = other.check(&seen);
            assert!(wrong.contains("1 differences are not in"), "{wrong}");
            assert!(wrong.contains("are gone; delete them"), "{wrong}");
        }
        let none = between("one", &real, &real);
        assert!(!known("one", "Not yet").explain(&none));
        assert!(known("*", "Not yet").check(&none).contains("are gone"));
    }

    #[test]
    fn what_one_side_lacks_differs() {
        let seen = between("one", &record("a", "1"), &record("b", "1"));
        let sides = seen
            .iter()
            .map(|d| (d.real.is_some(), d.simulated.is_some()));
        assert_eq!(sides.collect::<Vec<_>>(), [(true, false), (false, true)]);
    }

    #[test]
    fn the_list_is_whole() {
        assert!(Known::all().len() > 0);
    }
}
