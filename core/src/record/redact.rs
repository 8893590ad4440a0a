//! Strikes credentials and values of environment variables out of foreign text before it is recorded.
//!
//! Logs contain secrets by accident. Whatever looks like a secret is struck out, at the price of striking out
//! some text that is none. The journal redacts each event, so no report has more.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde_json::Value;

use super::event::Event;

/// What replaces a secret.
const STRUCK: &str = "***";

/// Words that say what is wrong with a secret.
const REASONS: &str = "expired has invalid is missing not required signature timeout was";
/// How the server's messages about a wrong field begin.
const ERRORS: [&str; 7] = [
    "Duplicate value",
    "Forbidden",
    "Invalid value",
    "Not found",
    "Required value",
    "Too long",
    "Unsupported value",
];
/// Parts of a name, compared without `-` and `_`, that make its value a secret.
const NAMES: &str = "accesskey accountkey apikey authorization connectionstring cookie credential passphrase \
                     passwd password privatekey secret signature token xamz";
/// Names that are also plain words: a secret follows them after `=`, and rarely after `:`.
const WORDS: &str = "auth credential key pass sig";
/// Authentication schemes, which credentials follow (RFC 9110, 11.4).
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
/// The fewest bytes of a credential that begins so; shorter words are plain words.
const SHORTEST: usize = 16;

/// An event without what looks like a secret.
pub fn redacted(event: Event) -> serde_json::Result<Event> {
    // A plan has no foreign text
    if matches!(event, Event::Plan(_)) {
        return Ok(event);
    }
    let mut json = serde_json::to_value(&event)?;
    match redact_json(&mut json, false) {
        true => serde_json::from_value(json),
        false => Ok(event),
    }
}

/// Redacts each text in JSON; with `secret` its name makes it one. Returns whether it struck anything out.
fn redact_json(value: &mut Value, secret: bool) -> bool {
    match value {
        Value::String(text) => {
            let clean = match secret && !text.is_empty() {
                true => STRUCK.to_owned(),
                false => redact(text),
            };
            let struck = clean != *text;
            *text = clean;
            struck
        }
        Value::Array(items) => {
            let mut option = false;
            items.iter_mut().fold(false, |struck, item| {
                let flag = item.as_str().filter(|flag| flag.starts_with("--"));
                let next = flag.is_some_and(|flag| !flag.contains('=') && names_a_secret(flag));
                struck | redact_json(item, std::mem::replace(&mut option, next))
            })
        }
        Value::Object(members) => {
            // An environment variable, such as a container's; a name with a dot is that of a setting
            let variable = members.get("name").and_then(Value::as_str);
            let variable = variable.is_some_and(|name| !name.contains('.') && names_a_secret(name));
            members.iter_mut().fold(false, |struck, (name, item)| {
                let secret = names_a_secret(name) || name == "auth" || variable && name == "value";
                struck | redact_json(item, secret)
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Strikes out of text what looks like a secret; the number of lines stays the same.
pub fn redact(text: &str) -> String {
    let mut in_key = false;
    let begins = |line: &str| line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
    let ends = |line: &str| line.contains("-----END") && line.contains("PRIVATE KEY");
    // A key whose beginning was cut off may go back to the first line
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
        } else if let Some(gap) = gap(word, &lower, rest) {
            let whole = lower.contains("authorization") || lower.contains("cookie");
            rest = match whole {
                true => {
                    clean.push_str(&rest[..gap]);
                    clean.push_str(STRUCK);
                    ""
                }
                false if is_no_value(&lower, rest.split_at(gap)) => rest,
                false => without_value(rest, gap, &mut clean),
            };
        }
    }
    clean
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether a name is that of a secret; Kubernetes has many that merely name one, such as `secretName`, and
/// a credential spec holds none.
fn names_a_secret(name: &str) -> bool {
    let mut bare = Cow::from(name);
    if name.contains(['-', '_']) {
        bare = name.replace(['-', '_'], "").into();
    }
    if !bare.eq_ignore_ascii_case("pwd") && !PARTS.is_match(&*bare) {
        return false;
    }
    let bare = bare.to_ascii_lowercase();
    !bare.ends_with("name") && !bare.contains("credentialspec")
}

/// Finds [`NAMES`], whatever their case: each text of each event is searched for them.
static PARTS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let mut builder = AhoCorasick::builder();
    let built = builder.ascii_case_insensitive(true).build(NAMES.split(' '));
    built.expect("few short words")
});

/// `NAME=value`, as `set` and `env` print it, with its value struck out.
fn of_environment(line: &str) -> Option<String> {
    let (name, value) = line.split_once('=')?;
    let bare = name.trim().trim_start_matches("export ").trim();
    let begins = bare.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    let is_name = bare
        .bytes()
        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_');
    (begins && is_name && !value.is_empty()).then(|| format!("{name}={STRUCK}"))
}

/// The number of bytes between a secret's name and its value: a quote that ends the name, escaped or not, a
/// sign, blanks; in JSON everything between a variable or an option and its value; a single blank after an
/// option. `None` where no value follows.
fn gap(word: &str, lower: &str, rest: &str) -> Option<usize> {
    let unescaped = rest.trim_start_matches('\\');
    let unquoted = unescaped.strip_prefix(['"', '\'']);
    let signed = unquoted.unwrap_or(rest).trim_start();
    let option = word.starts_with("--");
    let in_list = signed.strip_prefix(',').filter(|_| unquoted.is_some());
    // Nothing follows most words, and these need not be compared with names
    if !signed.starts_with([':', '=']) && in_list.is_none() && !option {
        return None;
    }
    let is_word = WORDS.split(' ').any(|name| name == lower);
    let next = match (signed.strip_prefix([':', '=']), in_list) {
        _ if !is_word && !names_a_secret(lower) => None,
        (Some(value), _) => {
            let member = unquoted.is_some() && matches!(lower, "auth" | "credential");
            let sure = option || signed.starts_with('=') || member || !is_word;
            sure.then_some(value)
        }
        (None, Some(more)) if option => Some(more),
        (None, Some(more)) if !word.contains('.') => {
            let value = more
                .trim_start_matches([' ', '\\', '"'])
                .strip_prefix("value");
            let value = value.map(|value| value.trim_start_matches(['\\', '"', ' ']));
            value.and_then(|value| value.strip_prefix(':'))
        }
        _ if option && rest.starts_with(' ') => Some(&rest[1..]),
        _ => None,
    };
    next.map(|value| rest.len() - value.trim_start().len())
}

/// Whether the text after a name is certainly no secret: a structure, a word of JSON, what stands for any
/// value, or the rest of a sentence about it, such as `token: expired`.
fn is_no_value(name: &str, (sign, value): (&str, &str)) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | '}' | ']' | ')');
    let word = &value[..value.find(ends).unwrap_or(value.len())];
    let of_password = name.contains("pass") || name == "pwd";
    let said = !of_password && REASONS.split(' ').any(|reason| reason == word)
        || ERRORS.iter().any(|error| value.starts_with(error));
    sign.contains(':') && (said || value.starts_with(['{', '[']))
        || matches!(word, "true" | "false" | "null" | "VALUE" | "*")
}

/// Writes the text before a value, strikes out the value between its quotes, and returns what follows.
fn without_value<'t>(rest: &'t str, gap: usize, clean: &mut String) -> &'t str {
    let (before, value) = rest.split_at(gap);
    clean.push_str(before);
    let at = value.len() - value.trim_start_matches('\\').len();
    let end = match value[at..].chars().next() {
        Some(quote @ ('"' | '\'' | '{')) => {
            let (open, value) = value.split_at(at + 1);
            let close = if quote == '{' { "}" } else { open };
            clean.push_str(open);
            let mut ends = value.match_indices(close);
            let end = ends.find(|(end, _)| !value[..*end].ends_with('\\'));
            open.len() + end.map_or(value.len(), |(end, _)| end)
        }
        _ => value
            .find(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | '}' | '"' | '\''))
            .unwrap_or(value.len()),
    };
    if end > 0 {
        clean.push_str(STRUCK);
    }
    &value[end..]
}

/// Strikes out `user:password` at the beginning of a URL's authority, and returns what follows.
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
    use crate::rows::rows;

    const TABLES: &str = include_str!("redact.yaml");

    #[test]
    fn secrets_are_struck_out() {
        for (raw, clean) in rows::<(String, String)>(TABLES, "secrets_are_struck_out") {
            assert_eq!(redact(&raw), clean, "{raw}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in rows::<String>(TABLES, "what_is_no_secret_stays") {
            assert_eq!(redact(&text), text);
        }
    }

    #[test]
    fn an_event_is_redacted_whole_and_only_where_it_must_be() {
        let event = |words: &str| Event::Interrupted {
            by: words.to_owned(),
        };
        let clean = redacted(event("pulling https://u:p@a.example/b?sig=Zm9v")).expect("an event");
        assert_eq!(clean, event("pulling https://***@a.example/b?sig=***"));
        let mut pod = serde_json::json!({
            "spec": {
                "containers": [{"env": [{"name": "DB_PASSWORD", "value": "a"}, {"name": "b", "value": "c"}]}],
                "command": ["a", "--token", "b", "c"],
                "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}],
                "tolerations": [{"key": "a"}],
                "volumes": [{"secret": {"secretName": "d"}}],
            },
            "auth": "dTpw",
        });
        let mut expected = pod.clone();
        expected["spec"]["containers"][0]["env"][0]["value"] = STRUCK.into();
        expected["spec"]["command"][2] = STRUCK.into();
        expected["auth"] = STRUCK.into();
        assert!(redact_json(&mut pod, false));
        assert_eq!(pod, expected);
        assert!(!redact_json(&mut pod, false));
    }

    #[test]
    fn a_private_key_is_struck_out_line_by_line() {
        let text =
            "before\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nafter";
        assert_eq!(redact(text), "before\n***\n***\n***\nafter");
        // A key without its end goes on to the end of the text
        assert_eq!(
            redact("-----BEGIN PRIVATE KEY-----\nMIIE\nmore"),
            "***\n***\n***"
        );
        // A key without its beginning goes back to the beginning of the text
        assert_eq!(
            redact("MIIE\nmore\n-----END EC PRIVATE KEY-----\nafter"),
            "***\n***\n***\nafter"
        );
        assert_eq!(
            redact("MIIE\n-----END PRIVATE KEY-----\na\n-----BEGIN PRIVATE KEY-----\nMIIE"),
            "***\n***\na\n***\n***"
        );
        // The end of something else says nothing about the lines before
        let certificate = "before\n-----END CERTIFICATE-----\nafter";
        assert_eq!(redact(certificate), certificate);
    }
}
