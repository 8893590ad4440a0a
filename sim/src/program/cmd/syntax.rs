//! Takes a line of `cmd` apart: joints, pipes, redirections, `^`, parentheses, `if exist`, and `for` over
//! words or numbers; these two take the rest of the line.

use super::super::script::{Command, Element, Joint, List, Redirect, What, redirect};
use super::TOO_DEEP;
use crate::topology::Os;

/// How deep commands may stand in each other.
const DEEPEST: usize = 32;

type Parsed<T> = Result<T, &'static str>;

/// The commands of a line; the reason where it cannot be taken apart.
pub(super) fn parse(line: &str) -> Parsed<List> {
    let mut line = Line {
        letters: line.chars().collect(),
        at: 0,
    };
    line.list(0, false)
}

/// A line, and how far it is read.
struct Line {
    letters: Vec<char>,
    at: usize,
}

impl Line {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Whether a word stands here, with a blank or a parenthesis behind it.
    fn word(&self, word: &str) -> bool {
        let end = self.at + word.len();
        let Some(here) = self.letters.get(self.at..end) else {
            return false;
        };
        here.iter().collect::<String>().eq_ignore_ascii_case(word)
            && matches!(self.letters.get(end), Some(' ' | '\t' | '('))
    }

    /// Commands to the end of the line, or to the parenthesis that closes those `inside` of one, over
    /// which it reads.
    fn list(&mut self, depth: usize, inside: bool) -> Parsed<List> {
        if depth > DEEPEST {
            return Err(TOO_DEEP);
        }
        let mut parser = Parser::default();
        let mut quoted = false;
        while let Some(letter) = self.peek() {
            if !quoted && matches!(parser.text.trim(), "" | "@") {
                let what = if letter == '(' {
                    self.at += 1;
                    Some(What::Group(self.list(depth + 1, true)?))
                } else if self.word("for") {
                    self.at += 3;
                    Some(self.over(depth, inside)?)
                } else if self.word("if") {
                    self.at += 2;
                    Some(self.condition(depth, inside)?)
                } else {
                    None
                };
                if let Some(what) = what {
                    let group = matches!(what, What::Group(_));
                    parser.text.clear();
                    parser.open = Some(what);
                    if !group {
                        // Nothing is left of the line, or what is around it goes on
                        parser.end(Joint::Always);
                        return Ok(parser.elements.into());
                    }
                    continue;
                }
            }
            self.at += 1;
            let next = self.peek();
            match letter {
                ')' if inside && !quoted => {
                    parser.last();
                    return Ok(parser.elements.into());
                }
                '"' => {
                    quoted = !quoted;
                    parser.text.push(letter);
                }
                _ if quoted => parser.text.push(letter),
                '^' => {
                    // What follows is an ordinary letter
                    parser.text.extend(next);
                    self.at += 1;
                }
                '&' | '|' if next == Some(letter) => {
                    self.at += 1;
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
                    let (found, behind) =
                        redirect(&self.letters, self.at - 1, &mut parser.text, Os::Windows)?;
                    if let Redirect::Input(to) | Redirect::Output { to, .. } = &found
                        && to.contains('%')
                    {
                        return Err("a file whose name is expanded");
                    }
                    parser.redirects.push(found);
                    self.at = behind;
                }
                _ if parser.open.is_some() && !letter.is_whitespace() => {
                    return Err("what stands behind a parenthesis");
                }
                _ => parser.text.push(letter),
            }
        }
        if inside {
            return Err("a parenthesis without its end");
        }
        parser.last();
        Ok(parser.elements.into())
    }

    /// What `for` and `if` run: the rest of the line. Behind a parenthesis nothing may stand: which of
    /// the two it would belong to nobody here knows.
    fn body(&mut self, depth: usize, inside: bool) -> Parsed<List> {
        self.blanks();
        if self.peek() != Some('(') {
            let body = self.list(depth + 1, inside)?;
            // The parenthesis closes what is around
            self.at -= usize::from(inside);
            return Ok(body);
        }
        self.at += 1;
        let body = self.list(depth + 1, true)?;
        self.blanks();
        match self.peek() {
            None => Ok(body),
            Some(')') if inside => Ok(body),
            Some(_) => Err("what stands behind a parenthesis"),
        }
    }

    /// `if [not] exist FILE COMMANDS`, behind its first word.
    fn condition(&mut self, depth: usize, inside: bool) -> Parsed<What> {
        let mut asked = "if".to_owned();
        self.blanks();
        for word in ["not", "exist"] {
            if self.word(word) {
                self.at += word.len();
                self.blanks();
                asked.push(' ');
                asked.push_str(word);
            }
        }
        if !asked.ends_with("exist") {
            return Err("an `if` of this kind");
        }
        asked.push(' ');
        let mut quoted = false;
        while let Some(letter) = self.peek() {
            match letter {
                '"' => quoted = !quoted,
                ' ' | '\t' if !quoted => break,
                '&' | '|' | '<' | '>' | '^' | '(' | ')' if !quoted => {
                    return Err("an `if` of this kind");
                }
                _ => {}
            }
            asked.push(letter);
            self.at += 1;
        }
        let body = self.body(depth, inside)?;
        let condition = simple(asked);
        let arms = vec![([condition].into(), body)];
        self.close(inside)?;
        Ok(What::If {
            arms,
            otherwise: List::default(),
        })
    }

    /// Reads over the parenthesis that closes what is around.
    fn close(&mut self, inside: bool) -> Parsed<()> {
        if inside {
            self.blanks();
            if self.peek() != Some(')') {
                return Err("a parenthesis without its end");
            }
            self.at += 1;
        }
        Ok(())
    }

    /// `for %i in (a b) do COMMANDS` and `for /l %i in (FROM,STEP,TO) do COMMANDS`, behind its first word.
    fn over(&mut self, depth: usize, inside: bool) -> Parsed<What> {
        const KIND: &str = "a `for` of this kind";
        let line: String = self.letters[self.at..].iter().collect();
        let rest = line.trim_start();
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
            .get(..2)
            .is_some_and(|word| word.eq_ignore_ascii_case("do"))
            && rest[2..].starts_with([' ', '(']);
        if !before.trim().eq_ignore_ascii_case("in") || !has_do {
            return Err(KIND);
        }
        self.at = self.letters.len() - rest[2..].chars().count();
        let body = self.body(depth, inside)?;
        self.close(inside)?;
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
}

fn simple(text: String) -> Element {
    let command = Command {
        what: What::Simple(text),
        redirects: Vec::new(),
    };
    Element::new(Joint::Always, vec![command])
}

struct Parser {
    elements: Vec<Element>,
    /// How the next command follows.
    joint: Joint,
    /// Whether the next command reads what the one before it prints.
    piped: bool,
    text: String,
    redirects: Vec<Redirect>,
    /// A command with others in it, which redirections may follow.
    open: Option<What>,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            elements: Vec::new(),
            joint: Joint::Always,
            piped: false,
            text: String::new(),
            redirects: Vec::new(),
            open: None,
        }
    }
}

impl Parser {
    fn end(&mut self, next: Joint) {
        let text = std::mem::take(&mut self.text).trim().to_owned();
        let what = self.open.take().unwrap_or(What::Simple(text));
        let command = Command {
            what,
            redirects: std::mem::take(&mut self.redirects),
        };
        match self.elements.last_mut() {
            Some(element) if self.piped => element.commands.push(command),
            _ => self.elements.push(Element::new(self.joint, vec![command])),
        }
        self.piped = false;
        self.joint = next;
    }

    /// The last command.
    fn last(&mut self) {
        self.end(Joint::Always);
    }
}
