//! Takes a script of `sh` apart: commands, joints, pipes, redirections, `while`, `until`, `for`, `if`
//! and groups. No functions, no `case`, no here-documents (busybox, shell/ash.c, `parsecmd`).

use super::super::script::{Command, Element, Joint, List, What, redirect};
use crate::topology::Os;

type Parsed<T> = Result<T, &'static str>;

/// Why a script is not understood that is over before its last command is.
const UNFINISHED: &str = "a command without its end";

/// How deep commands may stand in each other.
const DEEPEST: usize = 32;

/// The commands of a script; the reason where it cannot be taken apart.
pub(super) fn parse(script: &str) -> Parsed<List> {
    let mut parser = Parser {
        letters: script.chars().collect(),
        at: 0,
        depth: 0,
    };
    let (list, _) = parser.list(&[])?;
    Ok(list)
}

struct Parser {
    letters: Vec<char>,
    at: usize,
    depth: usize,
}

const KEYWORDS: &[&str] = &[
    "do", "done", "then", "elif", "else", "fi", "}", ")", "esac", "in",
];

impl Parser {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn eat(&mut self, letter: char) -> bool {
        let there = self.peek() == Some(letter);
        self.at += usize::from(there);
        there
    }

    fn blanks(&mut self) {
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' | '\r' => self.at += 1,
                '\\' if self.letters.get(self.at + 1) == Some(&'\n') => self.at += 2,
                '#' => {
                    while self.peek().is_some_and(|letter| letter != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn lines(&mut self) {
        loop {
            self.blanks();
            if !self.eat('\n') {
                return;
            }
        }
    }

    /// The word that stands here, if it is one that a list can end with or a command begin with.
    fn word(&self) -> String {
        let rest = &self.letters[self.at.min(self.letters.len())..];
        if let Some(letter) = rest.first().filter(|letter| matches!(letter, '(' | ')')) {
            return letter.to_string();
        }
        let ends = |letter: &char| letter.is_whitespace() || ";&|<>()".contains(*letter);
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        rest[..end].iter().collect()
    }

    /// Commands up to one of the words, which is read over; to the end where none is given.
    fn list(&mut self, stops: &[&str]) -> Parsed<(List, String)> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("commands nested so deep");
        }
        let mut elements: Vec<Element> = Vec::new();
        let mut joint = Joint::Always;
        loop {
            self.lines();
            let word = self.word();
            if stops.contains(&word.as_str()) {
                self.at += word.chars().count();
                self.depth -= 1;
                return Ok((elements.into(), word));
            }
            if self.peek().is_none() {
                self.depth -= 1;
                return match stops {
                    [] => Ok((elements.into(), word)),
                    _ => Err(UNFINISHED),
                };
            }
            if KEYWORDS.contains(&word.as_str()) {
                return Err("a word out of its place");
            }
            let mut element = self.pipeline(joint)?;
            self.blanks();
            joint = Joint::Always;
            if self.eat('&') {
                if self.eat('&') {
                    joint = Joint::AfterSuccess;
                } else if waits(&element) {
                    element.behind = true;
                } else {
                    return Err("a job in the background");
                }
            } else if self.eat('|') {
                self.at += 1;
                joint = Joint::AfterFailure;
            } else if self.eat(';') && self.peek() == Some(';') {
                return Err("`;;`");
            }
            elements.push(element);
        }
    }

    fn pipeline(&mut self, joint: Joint) -> Parsed<Element> {
        let mut element = Element::new(joint, Vec::new());
        if self.word() == "!" {
            self.at += 1;
            self.lines();
            element.negated = true;
        }
        loop {
            element.commands.push(self.command()?);
            self.blanks();
            if self.peek() != Some('|') || self.letters.get(self.at + 1) == Some(&'|') {
                return Ok(element);
            }
            self.at += 1;
            self.lines();
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        let word = self.word();
        let known = ["while", "until", "for", "if", "{", "("];
        if !known.contains(&word.as_str()) {
            if matches!(word.as_str(), "case" | "function") {
                return Err("a command of this kind");
            }
            return self.simple();
        }
        self.at += word.chars().count();
        let what = match word.as_str() {
            "{" => What::Group(self.list(&["}"])?.0),
            "(" => What::Own(self.list(&[")"])?.0),
            "if" => self.conditions()?,
            "for" => self.over()?,
            word => What::Loop {
                until: word == "until",
                condition: self.list(&["do"])?.0,
                body: self.list(&["done"])?.0,
            },
        };
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            let mut text = String::new();
            while let Some(digit) = self.peek().filter(|letter| matches!(letter, '1' | '2')) {
                text.push(digit);
                self.at += 1;
            }
            if !matches!(self.peek(), Some('<' | '>')) {
                return match text.as_str() {
                    "" => Ok(Command { what, redirects }),
                    _ => Err("a word out of its place"),
                };
            }
            redirects.push(self.redirect(&mut text)?);
        }
    }

    fn conditions(&mut self) -> Parsed<What> {
        let (mut arms, mut otherwise) = (Vec::new(), List::default());
        loop {
            let condition = self.list(&["then"])?.0;
            let (body, end) = self.list(&["elif", "else", "fi"])?;
            arms.push((condition, body));
            match end.as_str() {
                "elif" => {}
                "else" => {
                    otherwise = self.list(&["fi"])?.0;
                    break;
                }
                _ => break,
            }
        }
        Ok(What::If { arms, otherwise })
    }

    fn over(&mut self) -> Parsed<What> {
        self.blanks();
        let name = self.word();
        self.at += name.chars().count();
        self.blanks();
        if self.word() != "in" {
            return Err("a `for` without `in`");
        }
        self.at += 2;
        let Command {
            what: What::Simple(words),
            ..
        } = self.simple()?
        else {
            return Err("a `for` without words");
        };
        self.blanks();
        self.eat(';');
        self.lines();
        if self.peek().is_none() {
            return Err(UNFINISHED);
        }
        if self.word() != "do" {
            return Err("a `for` without `do`");
        }
        self.at += 2;
        let body = self.list(&["done"])?.0;
        Ok(What::Over { name, words, body })
    }

    fn redirect(&mut self, text: &mut String) -> Parsed<super::super::script::Redirect> {
        if self.letters[self.at] == '<' && self.letters.get(self.at + 1) == Some(&'<') {
            return Err("a here-document");
        }
        let (redirect, next) = redirect(&self.letters, self.at, text, Os::Linux)?;
        self.at = next;
        Ok(redirect)
    }

    /// One command without others in it, up to what joins it to the next.
    fn simple(&mut self) -> Parsed<Command> {
        let (mut text, mut redirects) = (String::new(), Vec::new());
        while let Some(letter) = self.peek() {
            match letter {
                ';' | '\n' | '&' | '|' | ')' => break,
                '<' | '>' => {
                    let found = self.redirect(&mut text)?;
                    redirects.push(found);
                }
                '(' => return Err("a function"),
                '#' if text.is_empty() || text.ends_with(char::is_whitespace) => {
                    self.blanks();
                }
                _ => self.letter(&mut text)?,
            }
        }
        let what = What::Simple(text.trim().to_owned());
        Ok(Command { what, redirects })
    }

    /// Reads over one letter, a quoted text or a substitution.
    fn letter(&mut self, text: &mut String) -> Parsed<()> {
        let Some(letter) = self.peek() else {
            return Ok(());
        };
        self.at += 1;
        text.push(letter);
        match letter {
            '\\' => {
                text.extend(self.peek());
                self.at += 1;
            }
            '`' => return Err("a substitution by back quotes"),
            '\'' => self.until('\'', text),
            '"' => {
                while let Some(next) = self.peek() {
                    if next == '"' {
                        self.at += 1;
                        text.push('"');
                        break;
                    }
                    self.letter(text)?;
                }
            }
            '$' if self.peek() == Some('(') => self.nested('(', ')', text)?,
            '$' if self.peek() == Some('{') => self.nested('{', '}', text)?,
            _ => {}
        }
        Ok(())
    }

    fn until(&mut self, end: char, text: &mut String) {
        while let Some(next) = self.peek() {
            self.at += 1;
            text.push(next);
            if next == end {
                return;
            }
        }
    }

    /// Up to the bracket that closes the one that stands here.
    fn nested(&mut self, open: char, close: char, text: &mut String) -> Parsed<()> {
        let mut depth = 0;
        while let Some(next) = self.peek() {
            if next == '\'' || next == '"' || next == '$' {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err("commands nested so deep");
                }
                self.letter(text)?;
                self.depth -= 1;
                continue;
            }
            self.at += 1;
            text.push(next);
            if next == open {
                depth += 1;
            } else if next == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(());
                }
            }
        }
        Err("a substitution without its end")
    }
}

/// Whether a command does nothing but pass the time, so that it may run behind the script.
fn waits(element: &Element) -> bool {
    element.commands.iter().all(|command| {
        matches!(&command.what, What::Simple(text)
            if text.starts_with("sleep ") || text.starts_with("tail -f /dev/null"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_named() {
        for (script, why) in [
            ("echo `date`", "a substitution by back quotes"),
            ("case a in a) true;; esac", "a command of this kind"),
            ("f() { true; }", "a function"),
            ("echo a &", "a job in the background"),
            ("cat <<EOF\na\nEOF", "a here-document"),
            ("while true; do echo", "a command without its end"),
            ("done", "a word out of its place"),
            ("echo $(date", "a substitution without its end"),
            ("for a; do b; done", "a `for` without `in`"),
        ] {
            assert_eq!(parse(script).expect_err(script), why, "{script}");
        }
        let deep = "{ ".repeat(10_000);
        assert_eq!(parse(&deep), Err("commands nested so deep"));
        let deep = "\"$(".repeat(10_000);
        assert_eq!(parse(&deep), Err("commands nested so deep"));
    }

    #[test]
    fn odd_scripts_come_to_an_end() {
        for script in [
            "", "'", "\"", "$", "${", ">", "<", "|", "||", "&&", "2>", "2>&", ">&", "\\", "é>é",
            "|a|", "a 2>&1|b", "(", ")", "{", "}", "!", "while", "if", "for", "do", "$((", "a;;b",
            "#", "a #",
        ] {
            let _ = parse(script);
        }
    }
}
