//! curl's options, from its command line and from a config file on its input.

use std::time::Duration;

use super::version::Build;
use crate::names::RecordType;
use crate::program;

/// What a whole command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Invocation {
    pub(super) mode: Mode,
    /// Options of the whole run; `--next` does not reset them.
    pub(super) global: Global,
    /// The parts between `--next`s.
    pub(super) operations: Vec<Operation>,
    /// What was warned about on the way.
    pub(super) warnings: Vec<String>,
}

/// Options of a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Global {
    pub(super) silent: bool,
    pub(super) show_error: bool,
    pub(super) no_meter: bool,
}

/// What kind of run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Transfer,
    Version,
}

/// The transfers and options of one part.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches of a command line, each of its own"
)]
pub(super) struct Operation {
    pub(super) urls: Vec<String>,
    /// One for each of the first URLs.
    pub(super) outputs: Vec<String>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) max_time: Option<Duration>,
    pub(super) write_out: Option<String>,
    pub(super) method: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) agent: Option<String>,
    pub(super) data: Option<String>,
    pub(super) fail: bool,
    pub(super) head: bool,
    pub(super) include: bool,
    pub(super) follow: bool,
    /// `-4` is A, `-6` AAAA.
    pub(super) family: Option<RecordType>,
}

/// A command line that curl does not take: what it prints, and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) text: String,
    pub(super) code: u32,
}

/// An option: its long name, its letter, whether it takes a value.
struct Known(&'static str, char, bool);

/// Letters of `\0` stand for none.
const KNOWN: &[Known] = &[
    Known("config", 'K', true),
    Known("connect-timeout", '\0', true),
    Known("data", 'd', true),
    Known("disable", 'q', false),
    Known("fail", 'f', false),
    Known("globoff", 'g', false),
    Known("head", 'I', false),
    Known("header", 'H', true),
    Known("http1.1", '\0', false),
    Known("include", 'i', false),
    Known("insecure", 'k', false),
    Known("ipv4", '4', false),
    Known("ipv6", '6', false),
    Known("location", 'L', false),
    Known("max-time", 'm', true),
    Known("next", ':', false),
    Known("no-keepalive", '\0', false),
    Known("no-progress-meter", '\0', false),
    Known("noproxy", '\0', true),
    Known("output", 'o', true),
    Known("request", 'X', true),
    Known("show-error", 'S', false),
    Known("silent", 's', false),
    Known("url", '\0', true),
    Known("user-agent", 'A', true),
    Known("version", 'V', false),
    Known("write-out", 'w', true),
];

/// Options that curl has and this simulator has not: refused as such, not called unknown.
const NOT_SIMULATED: &[(&str, char)] = &[
    ("compressed", '\0'),
    ("data-binary", '\0'),
    ("data-raw", '\0'),
    ("dump-header", 'D'),
    ("fail-early", '\0'),
    ("fail-with-body", '\0'),
    ("form", 'F'),
    ("get", 'G'),
    ("help", 'h'),
    ("interface", '\0'),
    ("local-port", '\0'),
    ("netrc", 'n'),
    ("parallel", 'Z'),
    ("parallel-immediate", '\0'),
    ("parallel-max", '\0'),
    ("proxy", 'x'),
    ("remote-name", 'O'),
    ("resolve", '\0'),
    ("retry", '\0'),
    ("trace", '\0'),
    ("upload-file", 'T'),
    ("user", 'u'),
    ("verbose", 'v'),
];

impl Invocation {
    /// Reads a command line, and the config on the input where the line names it.
    pub(super) fn parse(build: &Build, args: &[String], input: &[u8]) -> Result<Self, Usage> {
        let mut reader = Reader {
            build,
            input,
            read: Self {
                mode: Mode::Transfer,
                global: Global::default(),
                operations: vec![Operation::default()],
                warnings: Vec::new(),
            },
        };
        let mut args = args.iter();
        let mut options = true;
        while let Some(arg) = args.next() {
            if options && arg == "--" {
                options = false;
            } else if let Some(name) = arg.strip_prefix("--").filter(|_| options) {
                let option = reader.long(name).map_err(|error| error.usage(arg))?;
                let value = if option.2 { args.next() } else { None };
                reader
                    .apply(option, value)
                    .map_err(|error| error.usage(arg))?;
            } else if let Some(letters) = arg
                .strip_prefix('-')
                .filter(|rest| options && !rest.is_empty())
            {
                reader.letters(arg, letters, &mut args)?;
            } else {
                reader.operation().urls.push(arg.clone());
            }
        }
        Ok(reader.read)
    }
}

struct Reader<'a> {
    build: &'a Build,
    input: &'a [u8],
    read: Invocation,
}

impl Reader<'_> {
    fn letters(
        &mut self,
        arg: &str,
        letters: &str,
        args: &mut std::slice::Iter<'_, String>,
    ) -> Result<(), Usage> {
        for (at, letter) in letters.char_indices() {
            let option = self.letter(letter).map_err(|error| error.usage(arg))?;
            let attached = &letters[at + letter.len_utf8()..];
            let attached = (!attached.is_empty()).then(|| attached.to_owned());
            let value = if option.2 {
                attached.as_ref().or_else(|| args.next())
            } else {
                None
            };
            self.apply(option, value)
                .map_err(|error| error.usage(arg))?;
            if option.2 {
                break;
            }
        }
        Ok(())
    }

    fn long(&self, name: &str) -> Result<&'static Known, Refused> {
        let simulated = KNOWN.iter().find(|known| known.0 == name);
        match simulated {
            Some(known) if self.has(known) => Ok(known),
            None if NOT_SIMULATED.iter().any(|(known, _)| *known == name) => {
                Err(Refused::Option(NOT))
            }
            _ => Err(Refused::Option("is unknown")),
        }
    }

    fn letter(&self, letter: char) -> Result<&'static Known, Refused> {
        let simulated = KNOWN
            .iter()
            .find(|known| known.1 == letter && letter != '\0');
        match simulated {
            Some(known) if self.has(known) => Ok(known),
            None if NOT_SIMULATED.iter().any(|(_, known)| *known == letter) => {
                Err(Refused::Option(NOT))
            }
            _ => Err(Refused::Option("is unknown")),
        }
    }

    fn has(&self, option: &Known) -> bool {
        match option.0 {
            // docs/cmdline-opts/no-progress-meter.d
            "no-progress-meter" => self.build.since(7, 67),
            _ => true,
        }
    }

    fn operation(&mut self) -> &mut Operation {
        let operations = &mut self.read.operations;
        if operations.is_empty() {
            operations.push(Operation::default());
        }
        operations.last_mut().expect("one was just made sure of")
    }

    fn apply(&mut self, option: &Known, value: Option<&String>) -> Result<(), Refused> {
        if option.2 && value.is_none() {
            return Err(Refused::Option("requires parameter"));
        }
        let text = value.cloned().unwrap_or_default();
        match option.0 {
            "config" if text == "-" => {
                // A second time there is nothing left of it
                let input = std::mem::take(&mut self.input);
                return self.read_config(&String::from_utf8_lossy(input));
            }
            "config" => return Err(Refused::Config(text, String::new())),
            "connect-timeout" => self.operation().connect_timeout = seconds(&text)?,
            "max-time" => self.operation().max_time = seconds(&text)?,
            "write-out" => self.operation().write_out = Some(text),
            "output" => self.operation().outputs.push(text),
            "url" => self.operation().urls.push(text),
            "fail" => self.operation().fail = true,
            "head" => self.operation().head = true,
            "include" => self.operation().include = true,
            "location" => self.operation().follow = true,
            "ipv4" => self.operation().family = Some(RecordType::A),
            "ipv6" => self.operation().family = Some(RecordType::Aaaa),
            "request" => self.operation().method = Some(text),
            "user-agent" => self.operation().agent = Some(text),
            "header" => {
                if let Some((name, value)) = text.split_once(':') {
                    let header = (name.to_owned(), value.trim().to_owned());
                    self.operation().headers.push(header);
                }
            }
            "data" if text.starts_with('@') => return Err(Refused::Option(NOT)),
            "data" => {
                // src/tool_getparam.c, `set_data`: several are one, joined with `&`
                let data = &mut self.operation().data;
                *data = Some(match data.take() {
                    Some(before) => format!("{before}&{text}"),
                    None => text,
                });
            }
            "silent" => self.read.global.silent = true,
            "show-error" => self.read.global.show_error = true,
            "no-progress-meter" => self.read.global.no_meter = true,
            "version" => self.read.mode = Mode::Version,
            // src/tool_parsecfg.c: a `next` without a URL before it makes no new part
            "next" if !self.operation().urls.is_empty() => {
                self.read.operations.push(Operation::default());
            }
            // The rest changes nothing where there is no proxy and no TLS
            _ => {}
        }
        Ok(())
    }

    /// `src/tool_parsecfg.c`: one option a line, the value behind blanks, `=` or `:`, quoted or a
    /// single word.
    fn read_config(&mut self, text: &str) -> Result<(), Refused> {
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim_start_matches([' ', '\t']);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let dashed = line.starts_with('-');
            let separator = |letter: char| {
                letter == ' ' || letter == '\t' || (!dashed && (letter == '=' || letter == ':'))
            };
            let (name, rest) = line.split_at(line.find(separator).unwrap_or(line.len()));
            let rest = rest.trim_start_matches(separator);
            let value = match rest.strip_prefix('"') {
                Some(quoted) => Some(unslashed(quoted)),
                None => rest.split_whitespace().next().map(str::to_owned),
            };
            let letter = name
                .strip_prefix('-')
                .filter(|rest| rest.chars().count() == 1);
            let option = match letter.and_then(|rest| rest.chars().next()) {
                Some(letter) => self.letter(letter),
                None => self.long(name.trim_start_matches('-')),
            };
            let Err(refused) = option.and_then(|known| self.apply(known, value.as_ref())) else {
                continue;
            };
            let Refused::Option(why) = refused else {
                continue;
            };
            if why == NOT {
                return Err(Refused::Line(name.to_owned()));
            }
            if self.build.stops_at_unknown_lines() {
                let line = format!("curl: <stdin>:{number}: '{name}' {why}\n");
                return Err(Refused::Config("-".to_owned(), line));
            }
            // `warnf`: nothing where curl is silent
            if !self.read.global.silent {
                let warning = format!("<stdin>:{number}: warning: '{name}' {why}");
                self.read.warnings.push(wrapped(&warning));
            }
        }
        Ok(())
    }
}

/// `src/tool_msgs.c`: a warning, broken at blanks before column 79.
fn wrapped(warning: &str) -> String {
    const WIDTH: usize = 79 - "Warning: ".len();
    let mut out = String::new();
    let mut rest = warning;
    while rest.len() > WIDTH {
        let Some(cut) = rest.get(..WIDTH).and_then(|line| line.rfind(' ')) else {
            break;
        };
        // The blank stays on the line that it ends
        out.push_str(&format!("Warning: {}\n", &rest[..=cut]));
        rest = &rest[cut + 1..];
    }
    format!("{out}Warning: {rest}\n")
}

/// `src/tool_parsecfg.c`, `unslashquote`: up to the next bare quote; a backslash keeps the letter
/// behind it, except that `t n r v` mean what they mean in C.
fn unslashed(quoted: &str) -> String {
    let mut out = String::new();
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => match letters.next() {
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('v') => out.push('\u{b}'),
                Some(other) => out.push(other),
                None => break,
            },
            other => out.push(other),
        }
    }
    out
}

/// A limit; 0 stands for none.
fn seconds(text: &str) -> Result<Option<Duration>, Refused> {
    let seconds = text
        .parse()
        .map_err(|_| Refused::Option("expected a proper numerical parameter"))?;
    let limit = Duration::try_from_secs_f64(seconds)
        .map_err(|_| Refused::Option("expected a positive numerical parameter"))?;
    Ok(Some(limit).filter(|limit| !limit.is_zero()))
}

const NOT: &str = "is not simulated";

/// Why an option is not taken, as `src/tool_helpers.c` words it.
enum Refused {
    Option(&'static str),
    /// A config that is not taken, and what is said of the line at fault.
    Config(String, String),
    /// The option of a line of a config that is not simulated.
    Line(String),
}

impl Refused {
    fn usage(self, option: &str) -> Usage {
        match self {
            Self::Option(NOT) => not_simulated(option),
            Self::Line(option) => not_simulated(&option),
            Self::Option(why) => refused(option, why),
            // src/tool_getparam.c, `C_CONFIG`, and the exit code of `PARAM_READ_ERROR`
            Self::Config(file, line) => {
                let read = refused(option, "error encountered when reading a file");
                let text = format!(
                    "{line}curl: cannot read config from '{file}'\n{}",
                    read.text
                );
                Usage { text, code: 26 }
            }
        }
    }
}

fn not_simulated(option: &str) -> Usage {
    Usage {
        text: format!("hybrid-sim does not simulate `curl {option}`\n"),
        code: program::NOT_SIMULATED,
    }
}

fn refused(option: &str, why: &str) -> Usage {
    let text = format!(
        "curl: option {option}: {why}\ncurl: try 'curl --help' or 'curl --manual' for more information\n"
    );
    Usage { text, code: 2 }
}
