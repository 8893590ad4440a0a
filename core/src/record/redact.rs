//! What must not be on record of foreign text: credentials, and values of environment variables.
//!
//! Logs say much that nobody meant to tell. What looks like a secret is struck out, at the price
//! of striking out some that is none. The journal redacts each event, so no report has more.

use serde_json::Value;

use super::event::Event;

/// What stands in the place of a secret.
const STRUCK: &str = "***";

/// Words that say what is wrong with a secret.
const REASONS: [&str; 4] = ["expired", "invalid", "missing", "timeout"];
/// Words within a name that make its value a secret.
const NAMES: [&str; 18] = [
    "accesskey",
    "access_key",
    "accountkey",
    "api-key",
    "api_key",
    "apikey",
    "authorization",
    "connectionstring",
    "cookie",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "secret",
    "signature",
    "token",
    "x-amz-",
];
/// The same, where they are the whole name.
const WHOLE_NAMES: [&str; 5] = ["auth", "key", "pass", "pwd", "sig"];
/// Members of JSON objects whose text is a secret, in lower case, without `-` and `_`. Kubernetes has many
/// others that merely name one, such as `secretName`.
const MEMBERS: [&str; 19] = [
    "accesskey",
    "accesstoken",
    "accountkey",
    "apikey",
    "auth",
    "authorization",
    "clientsecret",
    "connectionstring",
    "cookie",
    "idtoken",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "refreshtoken",
    "secretkey",
    "setcookie",
    "token",
];
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

/// An event without what looks like a secret.
pub fn redacted(event: Event) -> serde_json::Result<Event> {
    let mut json = serde_json::to_value(&event)?;
    match redact_json(&mut json) {
        true => serde_json::from_value(json),
        false => Ok(event),
    }
}

/// Redacts each text in JSON; says whether anything was struck out.
fn redact_json(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let clean = redact(text);
            let struck = clean != *text;
            *text = clean;
            struck
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |struck, item| struck | redact_json(item)),
        Value::Object(members) => {
            // An environment variable, as of a container
            let variable = members.get("name").and_then(Value::as_str);
            let variable = variable.is_some_and(|name| names_a_secret(&name.to_ascii_lowercase()));
            members.iter_mut().fold(false, |struck, (name, item)| {
                let name = name.to_ascii_lowercase().replace(['-', '_'], "");
                let secret = MEMBERS.contains(&name.as_str()) || (variable && name == "value");
                let now = match item {
                    Value::String(text) if secret && !text.is_empty() && text != STRUCK => {
                        STRUCK.clone_into(text);
                        true
                    }
                    _ => redact_json(item),
                };
                struck | now
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

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

/// Whether what follows a name is surely no secret: a structure, a word of JSON, or the next word of a
/// sentence, such as `token: expired`.
fn is_no_value(name: &str, (sign, value): (&str, &str)) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | '}' | ']' | ')');
    let word = &value[..value.find(ends).unwrap_or(value.len())];
    let more = value[word.len()..].trim_start_matches(' ');
    let goes_on = more.starts_with(|c: char| c.is_ascii_lowercase());
    let is_word = !word.is_empty() && word.bytes().all(|c| c.is_ascii_lowercase());
    let prose = sign.contains(':')
        && !name.contains("pass")
        && name != "pwd"
        && is_word
        && (goes_on || REASONS.contains(&word));
    value.starts_with(['{', '[']) || matches!(word, "true" | "false" | "null") || prose
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
            (
                "https://a.example/b?X-Amz-Signature=0a1b&X-Amz-Date=1&c=2",
                "https://a.example/b?X-Amz-Signature=***&X-Amz-Date=***&c=2",
            ),
            (
                r#"{"auths":{"a.example":{"auth":"dTpw"}}}"#,
                r#"{"auths":{"a.example":{"auth":***}}}"#,
            ),
            ("passphrase: open sesame", "passphrase: *** sesame"),
            ("client_secret: qwertyuiop", "client_secret: ***"),
            (
                "ConnectionString=Server=a;Timeout=3",
                "ConnectionString=***;Timeout=3",
            ),
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
            "invalid token: signature is invalid",
            "the token: expired",
            r#"{"automountServiceAccountToken":false,"imagePullSecrets":[{"name":"a"}]}"#,
        ] {
            assert_eq!(redact(text), text);
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
                "tolerations": [{"key": "a"}],
                "volumes": [{"secret": {"secretName": "d"}}],
            },
            "auth": "dTpw",
        });
        let mut expected = pod.clone();
        expected["spec"]["containers"][0]["env"][0]["value"] = STRUCK.into();
        expected["auth"] = STRUCK.into();
        assert!(redact_json(&mut pod));
        assert_eq!(pod, expected);
        assert!(!redact_json(&mut pod));
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
