//! The words of a statement, and what kind of command its first one names.

use super::super::{Place, cmd};

/// The words of a statement without their quotes; `None` where a word is an expression
/// (`about_Parsing`, `about_Quoting_Rules`: nothing is replaced between single quotes, and a doubled
/// quote stands for itself).
pub(super) fn arguments(place: &Place, statement: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut part) = (Vec::new(), String::new(), String::new());
    // Whether the word began with a quote, and which is open
    let (mut begun, mut quoted, mut open) = (false, false, None);
    let mut letters = statement.chars().peekable();
    while let Some(letter) = letters.next() {
        match open {
            Some(quote) if letter == quote && letters.peek() == Some(&quote) => {
                letters.next();
                part.push(quote);
            }
            Some(quote) if letter == quote => {
                open = None;
                let part = std::mem::take(&mut part);
                word.push_str(&match quote {
                    '"' => valued(place, &part),
                    _ => part,
                });
                let next = letters.peek().copied().unwrap_or(' ');
                if quoted && !next.is_whitespace() && next != ')' {
                    return None;
                }
            }
            Some(_) => part.push(letter),
            None if letter == '"' || letter == '\'' => {
                quoted |= !begun;
                begun = true;
                word.push_str(&unquoted(place, &std::mem::take(&mut part))?);
                open = Some(letter);
            }
            None if letter.is_whitespace() => {
                word.push_str(&unquoted(place, &std::mem::take(&mut part))?);
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                (begun, quoted) = (false, false);
            }
            None => {
                begun = true;
                part.push(letter);
            }
        }
    }
    word.push_str(&match open {
        Some('"') => valued(place, &part),
        Some(_) => part,
        None => unquoted(place, &part)?,
    });
    if begun {
        words.push(word);
    }
    Some(words)
}

/// What stands outside of quotes; `None` where a property or an element of a variable is asked for.
fn unquoted(place: &Place, part: &str) -> Option<String> {
    let variable = part
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("$env:"));
    let behind = || part[5..].trim_start_matches(is_of_name);
    let member = variable && behind().starts_with(['.', '[']);
    (!member).then(|| valued(place, part))
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Whether a statement is one variable of the environment, and nothing else.
pub(super) fn is_variable(statement: &str) -> bool {
    let name = statement
        .get(..5)
        .filter(|start| start.eq_ignore_ascii_case("$env:"))
        .map(|_| &statement[5..]);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(is_of_name))
}

/// A word with `$env:NAME` replaced.
fn valued(place: &Place, word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.to_ascii_lowercase().find("$env:") {
        out.push_str(&rest[..at]);
        let after = &rest[at + 5..];
        let end = after
            .find(|letter: char| !is_of_name(letter))
            .unwrap_or(after.len());
        out.push_str(&cmd::variable(place, &after[..end]).unwrap_or_default());
        rest = &after[end..];
    }
    out + rest
}

/// Whether a name may be that of a cmdlet: with one of the approved verbs (learn.microsoft.com, "Approved
/// Verbs for PowerShell Commands"), or one of the few others that PowerShell has.
pub(super) fn is_cmdlet(name: &str) -> bool {
    let verb = name.split_once('-').map(|(verb, _)| verb);
    verb.is_some_and(|verb| VERBS.contains(&verb))
}

const VERBS: &[&str] = &[
    "add",
    "approve",
    "assert",
    "backup",
    "block",
    "build",
    "checkpoint",
    "clear",
    "close",
    "compare",
    "complete",
    "compress",
    "confirm",
    "connect",
    "convert",
    "convertfrom",
    "convertto",
    "copy",
    "debug",
    "deny",
    "deploy",
    "disable",
    "disconnect",
    "dismount",
    "edit",
    "enable",
    "enter",
    "exit",
    "expand",
    "export",
    "find",
    "foreach",
    "format",
    "get",
    "grant",
    "group",
    "hide",
    "import",
    "initialize",
    "install",
    "invoke",
    "join",
    "limit",
    "lock",
    "measure",
    "merge",
    "mount",
    "move",
    "new",
    "open",
    "optimize",
    "out",
    "ping",
    "pop",
    "protect",
    "publish",
    "push",
    "read",
    "receive",
    "redo",
    "register",
    "remove",
    "rename",
    "repair",
    "request",
    "reset",
    "resize",
    "resolve",
    "restart",
    "restore",
    "resume",
    "revoke",
    "save",
    "search",
    "select",
    "send",
    "set",
    "show",
    "skip",
    "sort",
    "split",
    "start",
    "step",
    "stop",
    "submit",
    "suspend",
    "switch",
    "sync",
    "tee",
    "test",
    "trace",
    "unblock",
    "undo",
    "uninstall",
    "unlock",
    "unprotect",
    "unpublish",
    "unregister",
    "update",
    "use",
    "wait",
    "watch",
    "where",
    "write",
];

#[cfg(test)]
mod tests {
    use super::super::super::tests::{place, run};
    use super::super::super::{NOT_SIMULATED, Started};
    use crate::image::Family;
    use crate::topology::Os;

    fn text(script: &str) -> (String, u32) {
        let mut place = place(Os::Windows, Family::Servercore);
        place.env = std::sync::Arc::new([("FOO".to_owned(), "bar".to_owned())].into());
        match run(&place, &["powershell", "-Command", script]) {
            Started::Ended(ran) => {
                let all = [ran.stdout, ran.stderr].concat();
                (String::from_utf8(all).expect("text"), ran.code)
            }
            other => panic!("{script}: {other:?}"),
        }
    }

    #[test]
    fn quotes_say_what_is_replaced() {
        for (script, printed) in [
            ("Write-Output 'x $env:FOO'", "x $env:FOO\r\n"),
            ("'x $env:FOO'", "x $env:FOO\r\n"),
            ("Write-Output \"x $env:FOO.\" $env:FOO", "x bar.\r\nbar\r\n"),
            ("Write-Output 'it''s \"a\"'", "it's \"a\"\r\n"),
            ("Write-Output a$env:FOO\\b", "abar\\b\r\n"),
            ("$Env:foo", "bar\r\n"),
            ("$env:NONESUCH", ""),
        ] {
            assert_eq!(text(script), (printed.to_owned(), 0), "{script}");
        }
    }

    #[test]
    fn expressions_are_not_taken_for_commands() {
        for script in [
            "\"abc\".Length",
            "Write-Output \"abc\".Length",
            "\"a\" + \"b\"",
            "\"abc\" -replace \"a\",\"b\"",
            "1+1",
            "5",
            "5 -gt 3",
            "-not 1",
            "$env:FOO + 'x'",
            "$env:FOO.Length",
            "$env:FOO = 1",
            "Write-Output $env:FOO.Length",
            "Get-Process",
        ] {
            let (said, code) = text(script);
            assert_eq!(code, NOT_SIMULATED, "{script}: {said}");
            assert!(said.starts_with("hybrid-sim does not simulate `"), "{said}");
        }
        let (said, code) = text("nosuch-cmd");
        assert!(
            said.starts_with("nosuch-cmd : The term 'nosuch-cmd' is not recognized"),
            "{said}"
        );
        assert_eq!(code, 1);
    }
}
