//! The options that a prober gives curl, on its command line and in a configuration on its input.

use std::time::Duration;

/// What a whole command line asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    pub(super) urls: Vec<String>,
    silent: bool,
    pub(super) show_error: bool,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) max_time: Option<Duration>,
    pub(super) write_out: Vec<Written>,
    pub(super) headers: Vec<(String, String)>,
}

/// A part of the line behind each transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Text(String),
    Status,
    Url,
}

impl Options {
    /// Reads a command line, and the configuration that it names; none where something in them is not
    /// simulated.
    pub(super) fn parse(args: &[String], input: &[u8]) -> Option<Self> {
        let mut read = Self::default();
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            match arg {
                "-q" => {}
                "-K" => match args.next()? {
                    "-" => read.configure(std::str::from_utf8(input).ok()?)?,
                    _ => return None,
                },
                "-s" => read.apply("silent", None)?,
                "-S" => read.apply("show-error", None)?,
                "-sS" => {
                    read.apply("silent", None)?;
                    read.apply("show-error", None)?;
                }
                "-g" => read.apply("globoff", None)?,
                "-m" => read.apply("max-time", args.next())?,
                "-w" => read.apply("write-out", args.next())?,
                "-H" => read.apply("header", args.next())?,
                _ => match arg.strip_prefix("--") {
                    Some(name @ ("silent" | "show-error" | "globoff")) => read.apply(name, None)?,
                    Some(name) => read.apply(name, args.next())?,
                    None if arg.starts_with('-') => return None,
                    None => read.urls.push(arg.to_owned()),
                },
            }
        }
        (read.silent && !read.urls.is_empty()).then_some(read)
    }

    /// One option a line, with its value in quotes (`src/tool_parsecfg.c`).
    fn configure(&mut self, text: &str) -> Option<()> {
        for line in text.lines() {
            match line.split_once(" = ") {
                Some((name, value)) => {
                    let quoted = value.strip_prefix('"').map(|value| value.strip_suffix('"'));
                    self.apply(name, Some(&unslashed(quoted.unwrap_or(Some(value))?)?))?;
                }
                None => self.apply(line, None)?,
            }
        }
        Some(())
    }

    fn apply(&mut self, name: &str, value: Option<&str>) -> Option<()> {
        match (name, value) {
            ("silent", None) => self.silent = true,
            ("show-error", None) => self.show_error = true,
            ("globoff", None) | ("noproxy", Some("*")) => {}
            ("connect-timeout", Some(seconds)) => self.connect_timeout = Some(limit(seconds)?),
            ("max-time", Some(seconds)) => self.max_time = Some(limit(seconds)?),
            ("write-out", Some(format)) => self.write_out = written(format)?,
            ("header", Some(header)) => {
                let (name, value) = header.split_once(": ")?;
                self.headers.push((name.to_owned(), value.to_owned()));
            }
            ("url", Some(url)) => self.urls.push(url.to_owned()),
            _ => return None,
        }
        Some(())
    }
}

/// `src/tool_parsecfg.c`, `unslashquote`: a backslash keeps the letter behind it, except that `n` is an
/// end of line.
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

/// `src/tool_writeout.c`.
fn written(format: &str) -> Option<Vec<Written>> {
    let mut parts = format.split("%{");
    let text = |text: &str| {
        let text = text.replace("\\n", "\n");
        (!text.contains(['%', '\\'])).then_some(Written::Text(text))
    };
    let mut all = vec![text(parts.next()?)?];
    for part in parts {
        let (name, rest) = part.split_once('}')?;
        all.push(match name {
            "http_code" => Written::Status,
            "url_effective" => Written::Url,
            _ => return None,
        });
        all.push(text(rest)?);
    }
    Some(all)
}
