//! The configuration that a prober sends to curl's input.

use std::time::Duration;

/// The options of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    pub(super) urls: Vec<String>,
    pub(super) show_error: bool,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) max_time: Option<Duration>,
    pub(super) write_out: Vec<Written>,
    /// Whether it judges no certificate and prints no answer; only then TLS is simulated.
    pub(super) blind: bool,
}

/// A part of the line after each transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Text(String),
    Status,
    Url,
    /// `%{exitcode}`, from 7.75 on.
    ExitCode,
    /// `%{stderr}`, from 7.63 on; nothing may come after it.
    Stderr,
}

impl Options {
    /// Parses a configuration (`src/tool_parsecfg.c`): one option a line, with its value in quotes. Returns
    /// `None` for anything that is not simulated, which includes a progress meter and a reused connection.
    pub(super) fn parse(input: &[u8]) -> Option<Self> {
        let mut read = Self::default();
        let input = std::str::from_utf8(input).ok()?;
        for line in input.lines() {
            match line.split_once(" = ") {
                Some((name, value)) => {
                    let quoted = value.strip_prefix('"').map(|value| value.strip_suffix('"'));
                    read.apply(name, Some(&unslashed(quoted.unwrap_or(Some(value))?)?))?;
                }
                None => read.apply(line, None)?,
            }
        }
        let says = |option: &str| input.lines().any(|line| line == option);
        let is_plain = says("silent") && says(r#"header = "Connection: close""#);
        (is_plain && !read.urls.is_empty()).then_some(read)
    }

    /// The options `-sS -m SECONDS URL`.
    pub(super) fn of_one(seconds: &str, url: &str) -> Option<Self> {
        Some(Self {
            urls: vec![url.to_owned()],
            show_error: true,
            max_time: Some(limit(seconds)?),
            ..Self::default()
        })
    }

    fn apply(&mut self, name: &str, value: Option<&str>) -> Option<()> {
        match (name, value) {
            ("show-error", None) => self.show_error = true,
            ("silent" | "globoff", None)
            | ("noproxy", Some("*"))
            | ("header", Some("Connection: close")) => {}
            ("connect-timeout", Some(seconds)) => self.connect_timeout = Some(limit(seconds)?),
            ("max-time", Some(seconds)) => self.max_time = Some(limit(seconds)?),
            ("write-out", Some(format)) => self.write_out = written(format)?,
            ("url", Some(url)) => self.urls.push(url.to_owned()),
            _ => return None,
        }
        Some(())
    }
}

/// `src/tool_parsecfg.c`, `unslashquote`: a backslash keeps the letter after it, except that `\n` is an end
/// of line.
fn unslashed(quoted: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '"' => return None,
            '\\' => match letters.next()? {
                'n' => '\n',
                letter @ ('\\' | '"') => letter,
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(out)
}

fn limit(seconds: &str) -> Option<Duration> {
    let limit = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    (!limit.is_zero()).then_some(limit)
}

/// Parses a format (`src/tool_writeout.c`).
fn written(format: &str) -> Option<Vec<Written>> {
    let mut parts = format.split("%{");
    let text = |text: &str| {
        let text = text.replace("\\n", "\n");
        (!text.contains(['%', '\\'])).then_some(Written::Text(text))
    };
    let mut list = vec![text(parts.next()?)?];
    for part in parts {
        let (name, rest) = part.split_once('}')?;
        list.push(match name {
            "http_code" => Written::Status,
            "url_effective" => Written::Url,
            "exitcode" => Written::ExitCode,
            "stderr" if rest.is_empty() => Written::Stderr,
            _ => return None,
        });
        list.push(text(rest)?);
    }
    Some(list)
}
