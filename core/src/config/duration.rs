//! Durations as people write them.

use std::time::Duration;

use jiff::SignedDuration;

/// Longer than any run; arithmetic with more could overflow.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// Reads `30s`, `20m`, `1h 30m`: more than nothing, and a year at most. The error says what a duration must be.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    let unreadable = |_| "must be a number with its unit, such as `30s`, `20m` or `1h 30m`";
    let signed: SignedDuration = text.parse().map_err(unreadable)?;
    match Duration::try_from(signed) {
        Ok(duration) if duration > LONGEST => Err("must be a year at most"),
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) | Err(_) => Err("must be more than zero, such as `30s`"),
    }
}

/// A duration as a user would write it.
pub fn shown(duration: Duration) -> String {
    match SignedDuration::try_from(duration) {
        Ok(signed) => format!("{signed:#}"),
        Err(_) => format!("{duration:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("30s", 30),
            ("20m", 1200),
            ("1h 30m", 5400),
            ("1h30m", 5400),
            ("2 hours", 7200),
            ("1.5h", 5400),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for text in ["", "20", "m", "20 parsecs", "1d", "\u{1b}[31m"] {
            let unreadable = "must be a number with its unit, such as `30s`, `20m` or `1h 30m`";
            assert_eq!(parse_duration(text), Err(unreadable), "{text}");
        }
        for text in ["-5m", "5m ago", "0s"] {
            let nothing = "must be more than zero, such as `30s`";
            assert_eq!(parse_duration(text), Err(nothing), "{text}");
        }
        assert_eq!(parse_duration("8784h"), Ok(LONGEST));
        for text in ["8784h 1s", "2562047788015215h"] {
            assert_eq!(
                parse_duration(text),
                Err("must be a year at most"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for seconds in [1, 59, 60, 90, 1200, 5400, 86400] {
            let duration = Duration::from_secs(seconds);
            assert_eq!(parse_duration(&shown(duration)), Ok(duration));
        }
        assert_eq!(shown(Duration::from_mins(20)), "20m");
    }
}
