//! `grep` of busybox (findutils/grep.c), of files or of its input.

use regex::bytes::Regex;

use super::super::script::path;
use super::super::{Place, Ran, Refusal, Started, system};

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are letters of a command line"
)]
struct Options {
    count: bool,
    extended: bool,
    fold: bool,
    inverted: bool,
    literal: bool,
    names: Option<bool>,
    numbered: bool,
    only_names: bool,
    quiet: bool,
    silent: bool,
    whole: bool,
}

/// `grep [-cEFHhilnqsvx] PATTERN [FILE…]`.
pub(super) fn run(args: &[String], place: &Place, input: &[u8]) -> Started {
    let refused = || Refusal::not_simulated(&format!("grep {}", args.join(" ")));
    let Some((options, patterns, files)) = read(args) else {
        return refused();
    };
    match expression(&patterns, &options) {
        Some(wanted) => search(&wanted, &options, &files, place, input),
        None => refused(),
    }
}

/// The options, the patterns and the files.
fn read(args: &[String]) -> Option<(Options, Vec<&String>, Vec<&String>)> {
    let (mut options, mut patterns, mut operands) = (Options::default(), Vec::new(), Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            None => operands.push(arg),
            Some("-") => operands.extend(rest.by_ref()),
            Some("e") => match rest.next() {
                Some(pattern) => patterns.push(pattern),
                None => return None,
            },
            Some(letters) => {
                for letter in letters.chars() {
                    match letter {
                        'c' => options.count = true,
                        'E' => options.extended = true,
                        'F' => options.literal = true,
                        'H' => options.names = Some(true),
                        'h' => options.names = Some(false),
                        'i' => options.fold = true,
                        'l' => options.only_names = true,
                        'n' => options.numbered = true,
                        'q' => options.quiet = true,
                        's' => options.silent = true,
                        'v' => options.inverted = true,
                        'x' => options.whole = true,
                        _ => return None,
                    }
                }
            }
        }
    }
    if patterns.is_empty() {
        if operands.is_empty() {
            return None;
        }
        patterns.push(operands.remove(0));
    }
    Some((options, patterns, operands))
}

fn search(
    wanted: &Regex,
    options: &Options,
    files: &[&String],
    place: &Place,
    input: &[u8],
) -> Started {
    let own = "-".to_owned();
    let files = if files.is_empty() { &[&own] } else { files };
    let named = options.names.unwrap_or(files.len() > 1);
    let (mut ran, mut matched, mut failed) = (Ran::default(), false, false);
    for file in files {
        let at = path(place, file);
        let (name, bytes) = match (file.as_str(), place.files.read(&at)) {
            ("-", _) => ("(standard input)", input.to_vec()),
            (name, Ok(bytes)) => (name, bytes),
            (_, Err(_)) if system::is_unknown(place, &at) => {
                return Refusal::not_simulated(&format!("the content of {file}"));
            }
            (_, Err(error)) => {
                failed = true;
                if !options.silent {
                    let text = format!("grep: {file}: {}\n", error.text(place.os));
                    ran = ran.then(Ran::complains(text, 2));
                }
                continue;
            }
        };
        let prefix = if named {
            format!("{name}:")
        } else {
            String::new()
        };
        let lines = bytes
            .strip_suffix(b"\n")
            .unwrap_or(&bytes)
            .split(|byte| *byte == b'\n');
        let lines = lines.enumerate().filter(|_| !bytes.is_empty());
        let found: Vec<_> = lines
            .filter(|(_, line)| wanted.is_match(line) != options.inverted)
            .collect();
        matched |= !found.is_empty();
        if options.quiet {
            continue;
        }
        if options.only_names {
            if !found.is_empty() {
                ran.say(format!("{name}\n"));
            }
        } else if options.count {
            ran.say(format!("{prefix}{}\n", found.len()));
        } else {
            for (at, line) in found {
                let number = if options.numbered {
                    format!("{}:", at + 1)
                } else {
                    String::new()
                };
                ran.stdout.extend(format!("{prefix}{number}").bytes());
                ran.stdout.extend(line);
                ran.stdout.push(b'\n');
            }
        }
    }
    let code = match (failed, options.quiet && matched) {
        (true, false) => 2,
        _ => u32::from(!matched),
    };
    Started::Ended(ran.ending(code))
}

/// The patterns as one expression; `None` where they mean something else than they would here.
fn expression(patterns: &[&String], options: &Options) -> Option<Regex> {
    let one = |pattern: &&String| match (options.literal, options.extended) {
        (true, _) => Some(regex::escape(pattern)),
        (false, extended) => translated(pattern, extended),
    };
    let all: Option<Vec<String>> = patterns.iter().map(one).collect();
    let any = all?.join("|");
    let any = if options.whole {
        format!("^(?:{any})$")
    } else {
        any
    };
    let flags = if options.fold { "(?i-u)" } else { "(?-u)" };
    Regex::new(&format!("{flags}{any}")).ok()
}

/// A pattern of regcomp(3) in the words of this library.
fn translated(pattern: &str, extended: bool) -> Option<String> {
    let mut out = String::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next()? {
                next if next.is_ascii_punctuation()
                    && (extended || !"(){}|+?<>'`".contains(next)) =>
                {
                    out.push_str(&regex::escape(&next.to_string()));
                }
                _ => return None,
            },
            '[' => {
                let inner: String = letters.by_ref().take_while(|next| *next != ']').collect();
                // What is more than letters and ranges is written otherwise here
                if inner.is_empty()
                    || inner == "^"
                    || inner.contains(['[', '\\', '&', '~'])
                    || inner.contains("--")
                {
                    return None;
                }
                out.push_str(&format!("[{inner}]"));
            }
            '*' if out.is_empty() || out.ends_with('*') => return None,
            '(' | ')' | '{' | '}' | '|' | '+' | '?' if !extended => {
                out.push('\\');
                out.push(letter);
            }
            '^' if !out.is_empty() && !extended => out.push_str("\\^"),
            '$' if letters.peek().is_some() && !extended => out.push_str("\\$"),
            _ => out.push(letter),
        }
    }
    Some(out)
}
