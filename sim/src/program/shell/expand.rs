//! What a shell puts in the place of `$NAME`, `${NAME:-word}`, `$?`, `$(command)` and `$((sum))`.

use std::borrow::Cow;

use super::super::script::{MOST_TEXT, Machine, path};
use super::super::{NOT_SIMULATED, Ran, Refusal, Sight, Started, system};
use super::{applets, syntax};
use crate::program::ran::End;

type Expanded<T> = Result<T, Ran>;

/// What one command is expanded to.
pub(super) struct Simple {
    /// Variables that stand before the command, with their values.
    pub(super) assigned: Vec<(String, String)>,
    pub(super) words: Vec<String>,
    /// What the commands of substitutions complained, and how long they took; its code is that of
    /// the last of them.
    pub(super) aside: Ran,
}

/// Expands one command.
pub(super) fn simple(machine: &Machine, text: &str, view: &Sight<'_>) -> Expanded<Simple> {
    let mut reader = Reader::new(machine, text, view);
    let assigned = reader.assigned()?;
    reader.machine = Cow::Borrowed(machine);
    let words = reader.words()?;
    Ok(Simple {
        assigned,
        words,
        aside: reader.aside,
    })
}

/// The words that a loop goes over.
pub(super) fn words(
    machine: &Machine,
    text: &str,
    view: &Sight<'_>,
) -> Expanded<(Vec<String>, Ran)> {
    let mut reader = Reader::new(machine, text, view);
    let words = reader.words()?;
    Ok((words, reader.aside))
}

struct Reader<'a> {
    machine: Cow<'a, Machine>,
    view: &'a Sight<'a>,
    letters: Vec<char>,
    at: usize,
    /// How much text variables and commands gave so far.
    held: usize,
    aside: Ran,
}

fn failed(started: Started) -> Ran {
    match started {
        Started::Ended(ran) => ran,
        _ => Ran::code(NOT_SIMULATED),
    }
}

impl<'a> Reader<'a> {
    fn new(machine: &'a Machine, text: &str, view: &'a Sight<'a>) -> Self {
        Self {
            machine: Cow::Borrowed(machine),
            view,
            letters: text.chars().collect(),
            at: 0,
            held: 0,
            aside: Ran::default(),
        }
    }

    /// Variables that are given values before the command; each sees those before it.
    fn assigned(&mut self) -> Expanded<Vec<(String, String)>> {
        let mut all = Vec::new();
        loop {
            let blank = |letter: &&char| letter.is_whitespace();
            self.at += self.letters[self.at..].iter().take_while(blank).count();
            let Some(name) = self.name() else {
                return Ok(all);
            };
            self.at += name.len() + 1;
            let value = self.word()?;
            let exported = self.machine.place.env.contains_key(&name);
            let machine = self.machine.to_mut();
            machine.assign(&name, value.clone(), exported)?;
            all.push((name, value));
        }
    }

    /// The name of the variable that is given a value here; its letters are of one byte each.
    fn name(&self) -> Option<String> {
        let rest = &self.letters[self.at..];
        let end = rest.iter().position(|letter| *letter == '=')?;
        let name: String = rest[..end].iter().collect();
        is_name(&name).then_some(name)
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.letters.get(self.at).copied();
        self.at += usize::from(letter.is_some());
        letter
    }

    /// A value, which does not fall apart.
    fn word(&mut self) -> Expanded<String> {
        let mut words = Vec::new();
        self.read(&mut words, true)?;
        Ok(words.concat())
    }

    fn words(&mut self) -> Expanded<Vec<String>> {
        let mut words = Vec::new();
        self.read(&mut words, false)?;
        Ok(words)
    }

    /// Reads words to the end; of a `value` one, which is not split.
    fn read(&mut self, words: &mut Vec<String>, is_value: bool) -> Expanded<()> {
        let (mut word, mut begun) = (String::new(), false);
        let mut quote = None;
        // Where the first letter stands that stands for others in names of files
        let mut pattern = None;
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
                    self.held += value.len();
                    if self.held > MOST_TEXT {
                        return Err(Refusal::instead_of("a command of so much text"));
                    }
                    if quote.is_some() || is_value {
                        word.push_str(&value);
                        begun = true;
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
                    self.literal(&word, pattern.take())?;
                    if begun {
                        words.push(std::mem::take(&mut word));
                    }
                    begun = false;
                    if is_value {
                        return Ok(());
                    }
                }
                ('~', None) if !begun && matches!(self.peek(), None | Some('/' | ' ' | '\t')) => {
                    word.push_str("/root");
                    begun = true;
                }
                (other, _) => {
                    if quote.is_none() && matches!(other, '*' | '?') && !is_value {
                        pattern.get_or_insert(word.len());
                    }
                    word.push(other);
                    begun = true;
                }
            }
        }
        self.literal(&word, pattern)?;
        if begun {
            words.push(word);
        }
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    /// A word with `*` or `?` stands for itself where there is no file of that kind.
    fn literal(&self, word: &str, pattern: Option<usize>) -> Expanded<()> {
        let Some(at) = pattern else {
            return Ok(());
        };
        let place = &self.machine.place;
        let before = word.get(..at).unwrap_or_default();
        let (directory, begins) = match before.rsplit_once('/') {
            Some((directory, begins)) => (path(place, &format!("{directory}/")), begins),
            None => (place.directory.clone(), before),
        };
        let names = place.files.list(&directory).unwrap_or_default();
        let hidden = begins.is_empty();
        let known = |name: &String| name.starts_with(begins) && !(hidden && name.starts_with('.'));
        match names.iter().any(known) || system::is_unknown(place, &directory) {
            true => Err(Refusal::instead_of("names of files with `*` or `?`")),
            false => Ok(()),
        }
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
            // The arguments of the script stand under their numbers
            Some(&digit) if digit.is_ascii_digit() || matches!(digit, '#' | '@' | '*') => {
                self.at += 1;
                let name = digit.to_string();
                if self.machine.own.contains_key("1") && matches!(digit, '@' | '*') {
                    return Err(Refusal::instead_of(&format!("`${name}` of a shell")));
                }
                Ok(self.machine.own.get(&name).cloned().unwrap_or_default())
            }
            Some(&letter @ ('!' | '-')) => {
                Err(Refusal::instead_of(&format!("`${letter}` of a shell")))
            }
            Some('(') if self.letters.get(self.at + 1) == Some(&'(') => {
                let inner = self.bracketed('(', ')');
                let sum = inner.trim_start_matches('(').trim_end_matches(')');
                match (Sum {
                    machine: &self.machine,
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
                let value = variable(&self.machine, name);
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
                    name => variable(&self.machine, name).unwrap_or_default(),
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
    fn substituted(&mut self, script: &str) -> Expanded<String> {
        let view = self.view.later(self.aside.lasted()).deeper()?;
        let list = match syntax::parse(script) {
            Ok(list) => list,
            Err(why) => return Err(failed(super::not_understood(script, why))),
        };
        let inner = self
            .machine
            .inner(list, self.machine.input())
            .at_depth(view.depth);
        let followed = inner.run(&view).follow_at(&view);
        match followed.end {
            End::Ended if followed.ran.code == NOT_SIMULATED => Err(followed.ran),
            End::Ended => {
                let mut ran = followed.ran;
                let printed = std::mem::take(&mut ran.stdout);
                let before = std::mem::take(&mut self.aside);
                self.aside = before.then(ran);
                let text = String::from_utf8_lossy(&printed);
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
    let system = || match name {
        "PWD" => Some(applets::directory(&machine.place)),
        _ => applets::variable(&machine.place, name),
    };
    machine
        .place
        .env
        .get(name)
        .cloned()
        .or_else(own)
        .or_else(system)
}

/// Whether a variable may have that name.
fn is_name(name: &str) -> bool {
    let letter = |each: char| each.is_ascii_alphanumeric() || each == '_';
    name.chars().all(letter) && name.starts_with(|first: char| !first.is_ascii_digit())
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
