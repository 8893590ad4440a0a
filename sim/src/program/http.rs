//! An HTTP exchange as programs see it, without its bytes.

#[cfg(test)]
use crate::clock;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Those that stand before `Date` and `Content-Length`, which every answer has.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Whether net/http found out by itself that the body is plain text; it says so last.
    pub(crate) sniffed: bool,
    pub(crate) body: String,
}

/// How Go labels plain text.
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";
const FORM: &str = "application/x-www-form-urlencoded";

impl Asked {
    /// A GET without headers.
    pub(crate) fn get(path: &str) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// The path alone.
    pub(crate) fn plain_path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// A header's value, however its name is written.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |(key, _): &&(String, String)| key.eq_ignore_ascii_case(name);
        let (_, value) = self.headers.iter().find(named)?;
        Some(value)
    }

    /// A value of the query.
    pub(crate) fn query(&self, key: &str) -> String {
        let query = self.path.split_once('?').map_or("", |(_, query)| query);
        value(query, key).unwrap_or_default()
    }

    /// A value of a posted form, or else of the query, as Go's `Request.FormValue` finds it.
    pub(crate) fn form(&self, key: &str) -> String {
        let posted = matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
            && self.header("content-type") == Some(FORM);
        let found = if posted { value(&self.body, key) } else { None };
        found.unwrap_or_else(|| self.query(key))
    }
}

fn value(pairs: &str, key: &str) -> Option<String> {
    pairs.split('&').find_map(|pair| {
        // Go refuses a pair with a semicolon in it (net/url, `parseQuery`)
        if pair.contains(';') {
            return None;
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescaped(name)? == key).then(|| unescaped(value))?
    })
}

/// What `%XX` and `+` stand for; `None` where an escape is broken, which Go drops the pair for.
fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

impl Answer {
    /// Plain text that a handler wrote without labelling it.
    pub(crate) fn text(status: u16, body: impl Into<String>) -> Self {
        let body = body.into();
        Self {
            status,
            headers: Vec::new(),
            sniffed: !body.is_empty(),
            body,
        }
    }

    /// net/http's `http.Error`: the text and a line end.
    pub(crate) fn error(status: u16, text: &str) -> Self {
        Self {
            status,
            headers: vec![
                ("Content-Type", PLAIN.to_owned()),
                ("X-Content-Type-Options", "nosniff".to_owned()),
            ],
            sniffed: false,
            body: format!("{text}\n"),
        }
    }

    /// A page of HTML.
    pub(crate) fn html(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", "text/html".to_owned())],
            sniffed: false,
            body: body.into(),
        }
    }

    /// The status line and the headers, as net/http orders them, with the empty line behind.
    #[cfg(test)]
    pub(crate) fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, phrase(self.status));
        let date = clock::now()
            .strftime("%a, %d %b %Y %H:%M:%S GMT")
            .to_string();
        let sniffed = self.sniffed.then(|| ("Content-Type", PLAIN.to_owned()));
        let always = [
            ("Date", date),
            ("Content-Length", self.body.len().to_string()),
        ];
        for (name, value) in self.headers.iter().cloned().chain(always).chain(sniffed) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }
}

/// The phrase behind a status, as net/http writes it.
pub(crate) fn phrase(status: u16) -> String {
    http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .map_or_else(|| format!("status code {status}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_queries() {
        let asked = Asked::get("/echo?msg=a%20b+c&x=%zz&empty");
        assert_eq!(asked.query("msg"), "a b c");
        assert_eq!(asked.query("x"), "");
        assert_eq!(asked.query("empty"), "");
        let posted = Asked {
            method: "POST".to_owned(),
            headers: vec![("Content-Type".to_owned(), FORM.to_owned())],
            body: "msg=body".to_owned(),
            ..Asked::get("/echo?msg=query&other=1")
        };
        assert_eq!(posted.form("msg"), "body");
        assert_eq!(posted.form("other"), "1");
    }
}
