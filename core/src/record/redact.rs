//! What must not be on record of foreign text: credentials, and values of environment variables.
//!
//! Logs say much that nobody meant to tell. What looks like a secret is struck out, at the price
//! of striking out some that is none.

/// What stands in the place of a secret.
const STRUCK: &str = "***";

/// Words within a name that make its value a secret.
const NAMES: [&str; 14] = [
    "accesskey",
    "access_key",
    "accountkey",
    "api-key",
    "api_key",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "passwd",
    "password",
    "private_key",
    "secret",
    "token",
];
/// The same, where they are the whole name.
const WHOLE_NAMES: [&str; 4] = ["key", "pass", "pwd", "sig"];
/// Schemes after which credentials stand (RFC 9110, 11.4).
const SCHEMES: [&str; 3] = ["basic", "bearer", "negotiate"];
/// How well-known credentials begin: JSON Web Tokens, keys of AWS, GitHub, GitLab, Slack.
const BEGINNINGS: [&str; 8] = [
    "eyJ",
    "AKIA",
    "ASIA",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xox",
];
/// Shorter words that begin so are words.
const SHORTEST: usize = 16;

/// Strikes out of text what looks like a secret; its lines stay as many as they are.
pub fn redact(text: &str) -> String {
    let mut in_key = false;
    let begins = |line: &str| line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
    let ends = |line: &str| line.contains("-----END") && line.contains("PRIVATE KEY");
    // Of a key whose beginning was cut off nobody knows how far it goes back
    let mut marked = text.split('\n').enumerate();
    let first = marked.find(|(_, line)| begins(line) || ends(line));
    let cut_off = first.filter(|(_, line)| !begins(line)).map(|(at, _)| at);
    let lines = text.split('\n').enumerate().map(|(at, line)| {
        let within = in_key || begins(line) || cut_off.is_some_and(|end| at <= end);
        in_key = (in_key || begins(line)) && !line.contains("-----END");
        match within {
            true => STRUCK.to_owned(),
            false => redact_line(line),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn redact_line(line: &str) -> String {
    if let Some(assignment) = of_environment(line) {
        return assignment;
    }
    let mut rest = line;
    let mut clean = String::with_capacity(line.len());
    while let Some(first) = rest.chars().next() {
        if !is_of_word(first) {
            clean.push(first);
            rest = &rest[first.len_utf8()..];
            if clean.ends_with("://") {
                rest = without_user(rest, &mut clean);
            }
            continue;
        }
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if word.len() >= SHORTEST && BEGINNINGS.iter().any(|begin| word.starts_with(begin)) {
            clean.push_str(STRUCK);
            continue;
        }
        clean.push_str(word);
        let lower = word.trim_start_matches('-').to_ascii_lowercase();
        if SCHEMES.contains(&lower.as_str()) {
            rest = without_value(rest, rest.len() - rest.trim_start().len(), &mut clean);
        } else if names_a_secret(&lower)
            && let Some(gap) = gap(word, rest)
        {
            let whole = lower.contains("authorization") || lower.contains("cookie");
            rest = match whole {
                true => {
                    clean.push_str(&rest[..gap]);
                    clean.push_str(STRUCK);
                    ""
                }
                false => without_value(rest, gap, &mut clean),
            };
        }
    }
    clean
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn names_a_secret(name: &str) -> bool {
    WHOLE_NAMES.contains(&name) || NAMES.iter().any(|part| name.contains(part))
}

/// `NAME=value`, as `set` and `env` print it, with its value struck out.
fn of_environment(line: &str) -> Option<String> {
    let (name, value) = line.split_once('=')?;
    let own = name.trim().trim_start_matches("export ").trim();
    let begins = own.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    let is_name = own
        .bytes()
        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_');
    (begins && is_name && !value.is_empty()).then(|| format!("{name}={STRUCK}"))
}

/// The bytes between a name and its value: a quote that ends the name, a sign, blanks; a blank
/// alone after an option. `None` where no value follows.
fn gap(word: &str, rest: &str) -> Option<usize> {
    let unquoted = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
    let signed = unquoted.trim_start();
    match signed.strip_prefix([':', '=']) {
        Some(value) => Some(rest.len() - value.trim_start().len()),
        None if word.starts_with("--") && rest.starts_with(' ') => Some(1),
        None => None,
    }
}

/// Writes what lies before a value and strikes out the value; gives what follows.
fn without_value<'t>(rest: &'t str, gap: usize, clean: &mut String) -> &'t str {
    let (before, value) = rest.split_at(gap);
    clean.push_str(before);
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let end = match quote {
        Some(quote) => value[1..].find(quote).map_or(value.len(), |at| at + 2),
        None => value
            .find(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | '}' | '"' | '\''))
            .unwrap_or(value.len()),
    };
    if end > 0 {
        clean.push_str(STRUCK);
    }
    &value[end..]
}

/// Strikes out `user:password` at the beginning of a URL's authority; gives what follows.
fn without_user<'t>(rest: &'t str, clean: &mut String) -> &'t str {
    let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>');
    let authority = &rest[..rest.find(ends).unwrap_or(rest.len())];
    match authority.rfind('@') {
        Some(at) => {
            clean.push_str(STRUCK);
            &rest[at..]
        }
        None => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_struck_out() {
        for (raw, clean) in [
            (
                "GET http://user:hunter2@example.com/a",
                "GET http://***@example.com/a",
            ),
            (
                "proxy=http://:p@10.0.0.1:3128 next",
                "proxy=http://***@10.0.0.1:3128 next",
            ),
            (
                "Authorization: Basic dXNlcjpwYXNz and more",
                "Authorization: ***",
            ),
            ("sent Bearer abc.def-ghi to it", "sent Bearer *** to it"),
            (
                r#"{"password": "a b", "user": "me"}"#,
                r#"{"password": ***, "user": "me"}"#,
            ),
            (
                "Server=db;Password=x;Timeout=3",
                "Server=db;Password=***;Timeout=3",
            ),
            ("--token abc --verbose", "--token *** --verbose"),
            (
                "kubelet --bootstrap-token=abc.def",
                "kubelet --bootstrap-token=***",
            ),
            (
                "https://a.blob.example/c?sv=1&sig=Zm9v%3D&se=2",
                "https://a.blob.example/c?sv=1&sig=***&se=2",
            ),
            ("got eyJhbGciOiJIUzI1NiJ9.e30.abc", "got ***"),
            ("key AKIAIOSFODNN7EXAMPLE is used", "key *** is used"),
            ("PATH=C:\\Windows", "PATH=***"),
            ("  export DB_HOST=db.local", "  export DB_HOST=***"),
            ("client_secret = 'a b' x", "client_secret = *** x"),
            ("Set-Cookie: a=b; path=/", "Set-Cookie: ***"),
        ] {
            assert_eq!(redact(raw), clean, "{raw}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "",
            "Windows Container Web Server\r\nlistening on http://*:80/",
            "exit code 0xC0000142: STATUS_DLL_INIT_FAILED",
            "failed to pull image \"a.example/b@sha256:0123\": 401",
            "the token is too old",
            "a = b",
            "eyJ short",
            "tokens: ",
            "mail me@example.com or see https://example.com/@me",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn a_private_key_is_struck_out_line_by_line() {
        let text =
            "before\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nafter";
        assert_eq!(redact(text), "before\n***\n***\n***\nafter");
        // One whose end is missing has no end
        assert_eq!(
            redact("-----BEGIN PRIVATE KEY-----\nMIIE\nmore"),
            "***\n***\n***"
        );
        // Nor does one whose beginning is missing begin anywhere
        assert_eq!(
            redact("MIIE\nmore\n-----END EC PRIVATE KEY-----\nafter"),
            "***\n***\n***\nafter"
        );
        assert_eq!(
            redact("MIIE\n-----END PRIVATE KEY-----\na\n-----BEGIN PRIVATE KEY-----\nMIIE"),
            "***\n***\na\n***\n***"
        );
        // What is no private key's end says nothing of what came before
        let certificate = "before\n-----END CERTIFICATE-----\nafter";
        assert_eq!(redact(certificate), certificate);
    }
}
