//! The query of a request, percent-decoded.

/// The pairs of a query, in their order; a name may occur more than once, as `command` does.
#[derive(Debug)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Self {
            pairs: pairs.collect(),
        }
    }

    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let named = self.pairs.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.clone()).collect()
    }

    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Go's `1`, `true`.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.first(name), Some("1" | "true"))
    }
}

fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = bytes.as_slice_prefix();
                match digits {
                    Some(decoded) => {
                        out.push(decoded);
                        bytes.nth(1);
                    }
                    None => out.push(b'%'),
                }
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

trait HexPrefix {
    fn as_slice_prefix(&self) -> Option<u8>;
}

impl HexPrefix for std::str::Bytes<'_> {
    /// The byte that the next two hexadecimal digits stand for.
    fn as_slice_prefix(&self) -> Option<u8> {
        let mut ahead = self.clone();
        let mut digit = || char::from(ahead.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        u8::try_from(high * 16 + low).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_in_order() {
        let query = Query::parse(Some(
            "command=cmd&command=%2Fc&command=exit+7%26&output=1&tty=false&x",
        ));
        assert_eq!(query.all("command"), ["cmd", "/c", "exit 7&"]);
        assert!(query.is_set("output") && !query.is_set("tty") && !query.is_set("input"));
        assert_eq!(query.first("x"), Some(""));
    }

    #[test]
    fn odd_escapes_do_no_harm() {
        for text in ["%", "%4", "%zz", "%é", "%%41", "=&=", "%ff"] {
            Query::parse(Some(text));
        }
        assert_eq!(decoded("%%41"), "%A");
        assert!(Query::parse(None).all("a").is_empty());
    }
}
