//! What fails for Linux, too: since when, and by which control.

use std::time::Duration;

use winconform_core::verdict::{Reason, SkipReason};

/// Since when all rounds of a check fail for Linux, too, by the same control.
#[derive(Debug, Default)]
pub(super) struct Excused(Option<(Duration, String)>);

impl Excused {
    /// Takes note of the result of a round that ends now.
    pub(super) fn note(&mut self, now: Duration, reason: &Reason) {
        self.0 = match reason {
            Reason::Skipped(SkipReason::NotWindowsSpecific { control, .. }) => {
                let known = self.0.take().filter(|(_, known)| known == control);
                Some(known.unwrap_or_else(|| (now, control.clone())))
            }
            _ => None,
        };
    }

    /// Whether it fails for Linux, too, and has not done so for `long`: Linux may have failed for a moment.
    pub(super) fn is_new(&self, now: Duration, long: Duration) -> bool {
        let since = self.0.as_ref().map(|(since, _)| *since);
        since.is_some_and(|since| now < since + long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn for_all(control: &str) -> Reason {
        let [expected, seen] = ["an answer", "none"].map(str::to_owned);
        let control = control.to_owned();
        Reason::Skipped(SkipReason::NotWindowsSpecific {
            control,
            expected,
            seen,
        })
    }

    #[test]
    fn what_fails_for_all_for_long_by_one_control_is_not_new() {
        let second = Duration::from_secs;
        let long = second(60);
        let mut excused = Excused::default();
        assert!(!excused.is_new(second(0), long));
        for (at, reason, is_new) in [
            (1, for_all("a"), true),
            (60, for_all("a"), true),
            (61, for_all("a"), false),
            (62, for_all("b"), true),
            (90, Reason::Skipped(SkipReason::Interrupted), false),
            (130, for_all("b"), true),
            (190, for_all("b"), false),
        ] {
            excused.note(second(at), &reason);
            assert_eq!(excused.is_new(second(at), long), is_new, "{at}: {reason:?}");
        }
    }
}
