//! Takes a script of PowerShell apart: statements, and loops without an end.

use super::super::script::{Command, Element, Joint, List, What};

/// How deep loops may stand in each other.
const DEEPEST: usize = 32;

/// The statements of a script; the reason where it cannot be taken apart.
pub(super) fn parse(script: &str) -> Result<List, &'static str> {
    list(script, 0)
}

fn list(script: &str, depth: usize) -> Result<List, &'static str> {
    if depth > DEEPEST {
        return Err("commands nested so deep");
    }
    let mut elements = Vec::new();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if rest.is_empty() {
            return Ok(elements.into());
        }
        let what = match endless(rest)? {
            Some((body, behind)) => {
                rest = behind;
                What::Loop {
                    until: false,
                    condition: List::default(),
                    body: list(body, depth + 1)?,
                }
            }
            None => {
                let end = until(rest, &[';', '\n']).unwrap_or(rest.len());
                let (statement, behind) = rest.split_at(end);
                rest = behind;
                What::Simple(statement.trim().to_owned())
            }
        };
        let command = Command {
            what,
            redirects: Vec::new(),
        };
        elements.push(Element::new(Joint::Always, vec![command]));
    }
}

/// Whether a statement is more than a command and its arguments: a pipe, a redirection, a list, a
/// sub-expression or a variable but those of the environment.
pub(super) fn is_more(statement: &str) -> bool {
    let lower = statement.to_ascii_lowercase();
    // Those whose parentheses are known
    let fetch = lower.starts_with("(invoke-webrequest") || lower.starts_with("(iwr");
    let mut quote = None;
    for (at, letter) in lower.char_indices() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            ('$', None | Some('"')) => {
                let rest = &lower[at + 1..];
                let names =
                    rest.starts_with(|c: char| c.is_ascii_alphabetic() || "({_?$".contains(c));
                let known = rest.starts_with("env:") || lower.starts_with("exit ");
                if names && !known {
                    return true;
                }
            }
            ('|' | '<' | '>' | '`', None) | ('`', Some('"')) => return true,
            ('(' | '{' | '@', None) if !fetch => return true,
            _ => {}
        }
    }
    false
}

/// Whether all that has a meaning of its own to the language stands between quotes, the command's own
/// name left out.
pub(super) fn is_plain(statement: &str) -> bool {
    let arguments = statement.split_once(char::is_whitespace);
    let (mut quote, mut before) = (None, ' ');
    for letter in arguments.map_or("", |(_, arguments)| arguments).chars() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            (',' | '@', None) => return false,
            ('-', None) if before == ' ' => return false,
            _ => {}
        }
        before = letter;
    }
    true
}

/// `while ($true) { BODY }`, `for (;;) { BODY }` and `do { BODY } while ($true)`: the body, and what
/// stands behind it.
fn endless(rest: &str) -> Result<Option<(&str, &str)>, &'static str> {
    const KIND: &str = "a loop of this kind";
    let word_end = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    let word = rest[..word_end].to_ascii_lowercase();
    let for_ever = |condition: &str| {
        let plain: String = condition.chars().filter(|c| !c.is_whitespace()).collect();
        matches!(plain.to_ascii_lowercase().as_str(), "$true" | "1" | ";;")
    };
    let (body, condition, behind) = match word.as_str() {
        "while" | "for" => {
            let (condition, behind) = block(&rest[word_end..], '(', ')').ok_or(KIND)?;
            let (body, behind) = block(behind, '{', '}').ok_or(KIND)?;
            (body, condition, behind)
        }
        "do" => {
            let (body, behind) = block(&rest[word_end..], '{', '}').ok_or(KIND)?;
            let behind = behind.trim_start();
            let end = behind
                .get(..5)
                .filter(|word| word.eq_ignore_ascii_case("while"));
            end.ok_or(KIND)?;
            let (condition, behind) = block(&behind[5..], '(', ')').ok_or(KIND)?;
            (body, condition, behind)
        }
        "foreach" | "if" | "switch" | "function" | "try" => return Err(KIND),
        _ => return Ok(None),
    };
    match for_ever(condition) {
        true => Ok(Some((body, behind))),
        false => Err(KIND),
    }
}

/// What stands in the bracket that the text begins with, and what stands behind it.
fn block(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let inner = text.trim_start().strip_prefix(open)?;
    let end = until(inner, &[close])?;
    Some((&inner[..end], &inner[end + close.len_utf8()..]))
}

/// Where one of some letters stands first, outside of quotes and brackets.
fn until(text: &str, letters: &[char]) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0_usize);
    for (at, letter) in text.char_indices() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            (letter, None) if depth == 0 && letters.contains(&letter) => return Some(at),
            ('"' | '\'', None) => quote = Some(letter),
            ('{' | '(', None) => depth += 1,
            ('}' | ')', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}
