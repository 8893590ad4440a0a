//! Amounts as Kubernetes writes them (`resource.Quantity`), as near as a simulator needs them.

/// The amount in its base unit (processors, bytes), or none for what is no quantity.
pub(crate) fn amount(text: &str) -> Option<f64> {
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let factor = match suffix {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024.0_f64.powi(2),
        "Gi" => 1024.0_f64.powi(3),
        "Ti" => 1024.0_f64.powi(4),
        "Pi" => 1024.0_f64.powi(5),
        "Ei" => 1024.0_f64.powi(6),
        exponent => {
            let exponent = exponent.strip_prefix(['e', 'E'])?.parse::<i8>().ok()?;
            10.0_f64.powi(exponent.into())
        }
    };
    let number: f64 = number.parse().ok()?;
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes() {
        for (text, is) in [
            ("4", 4.0),
            ("250m", 0.25),
            ("1.5Gi", 1.5 * 1024.0 * 1024.0 * 1024.0),
            ("1e3", 1000.0),
            ("12E2", 1200.0),
            ("2E", 2e18),
        ] {
            assert_eq!(amount(text), Some(is), "{text}");
        }
        for text in ["", "Gi", "4GB", "four", "1e999", "é"] {
            assert_eq!(amount(text), None, "{text}");
        }
    }
}
