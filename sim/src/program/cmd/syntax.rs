//! Takes a line of `cmd` apart: joints, pipes, redirections, `^`, and `for` over words or numbers,
//! which takes the rest of the line.

use super::super::script::{Command, Element, Joint, List, Redirect, What, redirect};
use crate::topology::Os;

/// How deep one `for` may stand in another.
const DEEPEST: usize = 32;

/// The commands of a line; the reason where it cannot be taken apart.
pub(super) fn parse(line: &str) -> Result<List, &'static str> {
    let letters: Vec<char> = line.chars().collect();
    list(&letters, 0)
}

fn list(letters: &[char], depth: usize) -> Result<List, &'static str> {
    if depth > DEEPEST {
        return Err("commands nested so deep");
    }
    let mut parser = Parser {
        elements: Vec::new(),
        joint: Joint::Always,
        piped: false,
        text: String::new(),
        redirects: Vec::new(),
    };
    let mut at = 0;
    let mut quoted = false;
    while let Some(&letter) = letters.get(at) {
        let next = letters.get(at + 1).copied();
        if parser.text.trim().is_empty() && is_for(&letters[at..]) {
            let what = over(&letters[at..], depth)?;
            parser.push(what);
            return Ok(parser.elements.into());
        }
        at += 1;
        match letter {
            '"' => {
                quoted = !quoted;
                parser.text.push(letter);
            }
            _ if quoted => parser.text.push(letter),
            '^' => {
                // What follows is an ordinary letter
                parser.text.extend(next);
                at += 1;
            }
            '&' | '|' if next == Some(letter) => {
                at += 1;
                parser.end(match letter {
                    '&' => Joint::AfterSuccess,
                    _ => Joint::AfterFailure,
                });
            }
            '&' => parser.end(Joint::Always),
            '|' => {
                parser.end(Joint::Always);
                parser.piped = true;
            }
            '<' | '>' => {
                let (found, behind) = redirect(letters, at - 1, &mut parser.text, Os::Windows)?;
                parser.redirects.push(found);
                at = behind;
            }
            _ => parser.text.push(letter),
        }
    }
    parser.end(Joint::Always);
    Ok(parser.elements.into())
}

struct Parser {
    elements: Vec<Element>,
    /// How the next command follows.
    joint: Joint,
    /// Whether the next command reads what the one before it prints.
    piped: bool,
    text: String,
    redirects: Vec<Redirect>,
}

impl Parser {
    fn end(&mut self, next: Joint) {
        let text = std::mem::take(&mut self.text).trim().to_owned();
        self.push(What::Simple(text));
        self.joint = next;
    }

    fn push(&mut self, what: What) {
        let command = Command {
            what,
            redirects: std::mem::take(&mut self.redirects),
        };
        match self.elements.last_mut() {
            Some(element) if self.piped => element.commands.push(command),
            _ => self.elements.push(Element::new(self.joint, vec![command])),
        }
        self.piped = false;
    }
}

fn is_for(letters: &[char]) -> bool {
    let begin: String = letters.iter().take(4).collect();
    begin.eq_ignore_ascii_case("for ")
}

/// `for %i in (a b) do COMMANDS` and `for /l %i in (FROM,STEP,TO) do COMMANDS`.
fn over(letters: &[char], depth: usize) -> Result<What, &'static str> {
    const KIND: &str = "a `for` of this kind";
    let line: String = letters.iter().collect();
    let rest = line.get(4..).unwrap_or_default().trim_start();
    let counts = rest
        .get(..3)
        .is_some_and(|flag| flag.eq_ignore_ascii_case("/l "));
    let rest = if counts { rest[3..].trim_start() } else { rest };
    let (name, rest) = rest.split_once(' ').ok_or(KIND)?;
    let letter = name.trim_start_matches('%');
    if !name.starts_with('%') || letter.chars().count() != 1 {
        return Err(KIND);
    }
    let (before, rest) = rest.split_once('(').ok_or(KIND)?;
    let (words, rest) = rest.split_once(')').ok_or(KIND)?;
    let rest = rest.trim_start();
    let has_do = rest
        .get(..3)
        .is_some_and(|word| word.eq_ignore_ascii_case("do "));
    if !before.trim().eq_ignore_ascii_case("in") || !has_do {
        return Err(KIND);
    }
    let body = rest[3..].trim();
    let body = body
        .strip_prefix('(')
        .map_or(body, |body| body.trim_end_matches([')', ' ']));
    let body: Vec<char> = body.chars().collect();
    let body = list(&body, depth + 1)?;
    let name = format!("%{letter}");
    if !counts {
        let words = words.to_owned();
        return Ok(What::Over { name, words, body });
    }
    let numbers: Option<Vec<i64>> = words
        .split([',', ' '])
        .filter(|number| !number.is_empty())
        .map(|number| number.parse().ok())
        .collect();
    match numbers.as_deref() {
        Some(&[from, step, to]) => Ok(What::Count {
            name,
            from,
            step,
            to,
            body,
        }),
        _ => Err(KIND),
    }
}
