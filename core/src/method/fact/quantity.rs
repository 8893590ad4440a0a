//! Kubernetes quantities, exactly (`k8s.io/apimachinery/pkg/api/resource/quantity.go`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount as in `status.capacity`: `8Gi`, `500m`, `16777216Ki`, `1.5e9`. It is kept in billionths, the
/// smallest unit of Kubernetes; finer parts are rounded away from zero, as Kubernetes does.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Quantity {
    nanos: i128,
}

impl Quantity {
    pub const ZERO: Self = Self { nanos: 0 };
    pub const ONE: Self = Self {
        nanos: 1_000_000_000,
    };

    /// Reads a quantity; `None` where the text is none, or its value is too large to keep.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // A text without a digit, or with a second point, is no number
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let places = i32::try_from(fraction.len()).ok()?;
        let (factor, exponent) = scale(suffix)?;
        let exponent = exponent.checked_sub(places)?.checked_add(9)?;
        let scaled = digits.checked_mul(factor)?;
        let nanos = match u32::try_from(exponent) {
            Ok(exponent) => match scaled {
                0 => 0,
                _ => scaled.checked_mul(10_i128.checked_pow(exponent)?)?,
            },
            Err(_) => match 10_i128.checked_pow(exponent.unsigned_abs()) {
                Some(divisor) => scaled / divisor + i128::from(scaled % divisor != 0),
                None => i128::from(scaled != 0),
            },
        };
        Some(Self {
            nanos: sign * nanos,
        })
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
        }
    }

    /// This quantity `count` times.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self {
            nanos: self.nanos.saturating_mul(i128::from(count)),
        }
    }

    /// This quantity minus the other.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_sub(other.nanos),
        }
    }
}

/// Factor and power of ten of a suffix; `E` alone is exa, with a number after it an exponent.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "" => (1, 0),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        _ => (1, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

/// Writes it in the largest unit, of bytes or of ten, of which it is a whole multiple.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ONE: i128 = 1_000_000_000;
        let units = [
            (ONE << 40, "Ti"),
            (ONE << 30, "Gi"),
            (ONE << 20, "Mi"),
            (ONE * ONE, "G"),
            (ONE << 10, "Ki"),
            (ONE, ""),
            (ONE / 1_000, "m"),
            (1, "n"),
        ];
        let unit = units
            .into_iter()
            .find(|(size, _)| self.nanos % size == 0 && self.nanos != 0);
        let (size, suffix) = unit.unwrap_or((ONE, ""));
        write!(f, "{}{suffix}", self.nanos / size)
    }
}

impl From<Quantity> for String {
    fn from(quantity: Quantity) -> Self {
        quantity.to_string()
    }
}

impl TryFrom<String> for Quantity {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a quantity"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    const TABLES: &str = include_str!("quantity.yaml");
    use proptest::prelude::*;

    fn nanos(text: &str) -> Option<i128> {
        Quantity::parse(text).map(|quantity| quantity.nanos)
    }

    #[test]
    fn every_form_is_exact() {
        let one = 1_000_000_000;
        for (text, expected) in [
            ("0", 0),
            ("4", 4 * one),
            ("-4", -4 * one),
            ("+.5", one / 2),
            ("5.", 5 * one),
            ("16777216Ki", (16_777_216 << 10) * one),
            ("1.5Gi", 3 * (1 << 29) * one),
            ("8Ei", (1 << 63) * one),
            ("500m", one / 2),
            ("250u", 250_000),
            ("7n", 7),
            ("2G", 2 * one * one),
            ("3M", 3_000_000 * one),
            ("3T", 3_000 * one * one),
            ("3P", 3_000_000 * one * one),
            ("3Mi", 3 * (1 << 20) * one),
            ("3Ti", 3 * (1 << 40) * one),
            ("3Pi", 3 * (1 << 50) * one),
            ("1k", 1_000 * one),
            ("1E", one * one * one),
            ("1e3", 1_000 * one),
            ("1E3", 1_000 * one),
            ("15e-1", 3 * one / 2),
            ("1e-12", 1),
            ("10e-10", 1),
            ("0.0000000001", 1),
            ("-0.0000000011", -2),
            ("0e99999", 0),
            ("1e-99999", 1),
        ] {
            assert_eq!(nanos(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in rows::<String>(TABLES, "refused") {
            assert_eq!(nanos(&text), None, "{text}");
        }
    }

    #[test]
    fn shown_in_whole_units() {
        for (text, shown) in rows::<(String, String)>(TABLES, "shown") {
            let quantity = Quantity::parse(&text).map(|q| q.to_string());
            assert_eq!(quantity.as_deref(), Some(&*shown), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(text in "[-+]?[0-9]{0,12}\\.?[0-9]{0,11}(n|u|m|k|M|G|Ki|Mi|Gi|e-?[0-9]|)") {
            if let Some(quantity) = Quantity::parse(&text) {
                prop_assert_eq!(Quantity::parse(&quantity.to_string()), Some(quantity));
            }
        }

        #[test]
        fn nothing_panics(text in ".{0,30}") {
            let _ = Quantity::parse(&text);
        }
    }
}
