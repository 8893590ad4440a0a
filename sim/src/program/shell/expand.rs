//! What a shell puts in the place of `$NAME`, `${NAME:-word}`, `$?`, `$(command)` and `$((sum))`.

use super::super::input::Input;
use super::super::script::Machine;
use super::super::{NOT_SIMULATED, Ran, Refusal, Sight, Started};
use super::syntax;
use crate::program::ran::End;

type Expanded<T> = Result<T, Ran>;

/// The arguments of one command.
pub(super) fn words(machine: &Machine, text: &str, view: &Sight<'_>) -> Expanded<Vec<String>> {
    let mut reader = Reader {
        machine,
        view,
        letters: text.chars().collect(),
        at: 0,
    };
    reader.words()
}

struct Reader<'a> {
    machine: &'a Machine,
    view: &'a Sight<'a>,
    letters: Vec<char>,
    at: usize,
}

fn failed(started: Started) -> Ran {
    match started {
        Started::Ended(ran) => ran,
        _ => Ran::code(NOT_SIMULATED),
    }
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let letter = self.letters.get(self.at).copied();
        self.at += usize::from(letter.is_some());
        letter
    }

    fn words(&mut self) -> Expanded<Vec<String>> {
        let (mut words, mut word, mut begun) = (Vec::new(), String::new(), false);
        let mut quote = None;
        while let Some(letter) = self.next() {
            match (letter, quote) {
                ('\'' | '"', None) => (quote, begun) = (Some(letter), true),
                (letter, Some(open)) if letter == open => quote = None,
                ('\\', None) => {
                    word.extend(self.next());
                    begun = true;
                }
                ('\\', Some('"')) => {
                    // Between quotes it takes the meaning from few letters
                    match self.next() {
                        Some(next @ ('"' | '\\' | '$' | '`')) => word.push(next),
                        next => {
                            word.push('\\');
                            word.extend(next);
                        }
                    }
                }
                ('$', None | Some('"')) => {
                    let value = self.value()?;
                    if quote.is_some() {
                        word.push_str(&value);
                        continue;
                    }
                    // Without quotes it falls apart at blanks
                    let mut parts = value.split_whitespace();
                    if value.starts_with(char::is_whitespace) && begun {
                        words.push(std::mem::take(&mut word));
                        begun = false;
                    }
                    if let Some(first) = parts.next() {
                        word.push_str(first);
                        begun = true;
                    }
                    for part in parts {
                        words.push(std::mem::replace(&mut word, part.to_owned()));
                    }
                    if value.ends_with(char::is_whitespace) && begun {
                        words.push(std::mem::take(&mut word));
                        begun = false;
                    }
                }
                (' ' | '\t' | '\n' | '\r', None) => {
                    if begun {
                        words.push(std::mem::take(&mut word));
                    }
                    begun = false;
                }
                (other, _) => {
                    word.push(other);
                    begun = true;
                }
            }
        }
        if begun {
            words.push(word);
        }
        Ok(words)
    }

    /// Behind a dollar.
    fn value(&mut self) -> Expanded<String> {
        match self.letters.get(self.at) {
            Some('?') => {
                self.at += 1;
                Ok(self.machine.code.to_string())
            }
            // The shell is a container's first process more often than not
            Some('$') => {
                self.at += 1;
                Ok("1".to_owned())
            }
            Some('(') if self.letters.get(self.at + 1) == Some(&'(') => {
                let inner = self.bracketed('(', ')');
                let sum = inner.trim_start_matches('(').trim_end_matches(')');
                match (Sum {
                    machine: self.machine,
                    rest: sum,
                })
                .all()
                {
                    Some(value) => Ok(value.to_string()),
                    None => Err(Refusal::instead_of(&format!("`$(({sum}))` of a shell"))),
                }
            }
            Some('(') => {
                let script = self.bracketed('(', ')');
                self.substituted(&script)
            }
            Some('{') => {
                let inner = self.bracketed('{', '}');
                let name_ends = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                let (name, rest) = inner.split_at(inner.find(name_ends).unwrap_or(inner.len()));
                let value = variable(self.machine, name);
                match rest.strip_prefix(":-") {
                    Some(word) => Ok(match value {
                        Some(value) if !value.is_empty() => value,
                        _ => word.to_owned(),
                    }),
                    None if rest.is_empty() => Ok(value.unwrap_or_default()),
                    None => Err(Refusal::instead_of(&format!("`${{{inner}}}` of a shell"))),
                }
            }
            _ => {
                let mut name = String::new();
                while let Some(&letter) = self.letters.get(self.at) {
                    if !letter.is_ascii_alphanumeric() && letter != '_' {
                        break;
                    }
                    name.push(letter);
                    self.at += 1;
                }
                Ok(match name.as_str() {
                    "" => "$".to_owned(),
                    name => variable(self.machine, name).unwrap_or_default(),
                })
            }
        }
    }

    /// What stands between two brackets, of which the first stands here.
    fn bracketed(&mut self, open: char, close: char) -> String {
        let (mut depth, mut inner) = (0, String::new());
        while let Some(letter) = self.next() {
            if letter == close {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            if depth > 0 {
                inner.push(letter);
            }
            depth += usize::from(letter == open);
        }
        inner
    }

    /// What a command prints, without the ends of line behind it.
    fn substituted(&self, script: &str) -> Expanded<String> {
        let view = self.view.deeper()?;
        let list = match syntax::parse(script) {
            Ok(list) => list,
            Err(why) => return Err(failed(super::not_understood(script, why))),
        };
        let inner = self
            .machine
            .inner(list, Input::default())
            .at_depth(view.depth);
        let followed = inner.run(&view).follow_at(&view);
        match followed.end {
            End::Ended if followed.ran.code == NOT_SIMULATED => Err(followed.ran),
            End::Ended => {
                let text = String::from_utf8_lossy(&followed.ran.stdout);
                Ok(text.trim_end_matches('\n').to_owned())
            }
            _ => Err(Refusal::instead_of(&format!(
                "`$({script})`, which does not end,"
            ))),
        }
    }
}

/// A variable of the shell, or of the container.
fn variable(machine: &Machine, name: &str) -> Option<String> {
    let own = || machine.own.get(name).cloned();
    match name {
        "HOSTNAME" => Some(machine.place.hostname.clone()),
        _ => machine.place.env.get(name).cloned().or_else(own),
    }
}

/// `+ - * / %` of whole numbers and variables, from left to right as they bind.
struct Sum<'a> {
    machine: &'a Machine,
    rest: &'a str,
}

impl Sum<'_> {
    fn all(mut self) -> Option<i64> {
        let value = self.added()?;
        self.rest.trim().is_empty().then_some(value)
    }

    fn operator(&mut self, of: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let letter = self
            .rest
            .chars()
            .next()
            .filter(|letter| of.contains(letter))?;
        self.rest = &self.rest[1..];
        Some(letter)
    }

    fn added(&mut self) -> Option<i64> {
        let mut value = self.multiplied()?;
        while let Some(sign) = self.operator(&['+', '-']) {
            let next = self.multiplied()?;
            value = match sign {
                '+' => value.wrapping_add(next),
                _ => value.wrapping_sub(next),
            };
        }
        Some(value)
    }

    fn multiplied(&mut self) -> Option<i64> {
        let mut value = self.one()?;
        while let Some(sign) = self.operator(&['*', '/', '%']) {
            let next = self.one()?;
            value = match sign {
                '*' => value.wrapping_mul(next),
                '/' => value.checked_div(next)?,
                _ => value.checked_rem(next)?,
            };
        }
        Some(value)
    }

    fn one(&mut self) -> Option<i64> {
        self.rest = self.rest.trim_start().trim_start_matches('$');
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            return word.parse().ok();
        }
        if word.is_empty() {
            return None;
        }
        // What is not set is nothing
        match variable(self.machine, word) {
            Some(value) if !value.is_empty() => value.trim().parse().ok(),
            _ => Some(0),
        }
    }
}
