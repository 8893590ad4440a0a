//! curl's options, from its command line and from a config file on its input.

use std::time::Duration;

/// What a whole command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Invocation {
    pub(super) mode: Mode,
    /// Options of the whole run; `--next` does not reset them.
    pub(super) silent: bool,
    pub(super) show_error: bool,
    /// The parts between `--next`s.
    pub(super) operations: Vec<Operation>,
}

/// What kind of run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Transfer,
    Version,
}

/// The transfers and options of one part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Operation {
    pub(super) urls: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) max_time: Option<Duration>,
    pub(super) write_out: Option<String>,
    pub(super) fail: bool,
    pub(super) head: bool,
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
    Known("disable", 'q', false),
    Known("fail", 'f', false),
    Known("globoff", 'g', false),
    Known("head", 'I', false),
    Known("header", 'H', true),
    Known("http1.1", '\0', false),
    Known("insecure", 'k', false),
    Known("ipv4", '4', false),
    Known("location", 'L', false),
    Known("max-time", 'm', true),
    Known("next", ':', false),
    Known("no-keepalive", '\0', false),
    Known("no-progress-meter", '\0', false),
    Known("noproxy", '\0', true),
    Known("output", 'o', true),
    Known("parallel", 'Z', false),
    Known("request", 'X', true),
    Known("show-error", 'S', false),
    Known("silent", 's', false),
    Known("url", '\0', true),
    Known("user-agent", 'A', true),
    Known("version", 'V', false),
    Known("write-out", 'w', true),
];

impl Invocation {
    /// Reads a command line, and the config on the input where the line names it.
    pub(super) fn parse(args: &[String], input: &[u8]) -> Result<Self, Usage> {
        let mut invocation = Self {
            mode: Mode::Transfer,
            silent: false,
            show_error: false,
            operations: vec![Operation::default()],
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if let Some(name) = arg.strip_prefix("--") {
                let option = long(name).ok_or_else(|| refused(arg, "is unknown"))?;
                let value = if option.2 { args.next() } else { None };
                invocation
                    .apply(option, value, input)
                    .map_err(|error| error.usage(arg))?;
            } else if let Some(letters) =
                arg.strip_prefix('-').filter(|letters| !letters.is_empty())
            {
                for (at, letter) in letters.char_indices() {
                    let option = KNOWN
                        .iter()
                        .find(|known| known.1 == letter && letter != '\0')
                        .ok_or_else(|| refused(arg, "is unknown"))?;
                    let attached = &letters[at + letter.len_utf8()..];
                    let attached = (!attached.is_empty()).then(|| attached.to_owned());
                    let value = if option.2 {
                        attached.as_ref().or_else(|| args.next())
                    } else {
                        None
                    };
                    invocation
                        .apply(option, value, input)
                        .map_err(|error| error.usage(arg))?;
                    if option.2 {
                        break;
                    }
                }
            } else {
                invocation.operation().urls.push(arg.clone());
            }
        }
        Ok(invocation)
    }

    fn operation(&mut self) -> &mut Operation {
        if self.operations.is_empty() {
            self.operations.push(Operation::default());
        }
        self.operations
            .last_mut()
            .expect("one was just made sure of")
    }

    fn apply(
        &mut self,
        option: &Known,
        value: Option<&String>,
        input: &[u8],
    ) -> Result<(), Refused> {
        if option.2 && value.is_none() {
            return Err(Refused::Option("requires parameter"));
        }
        let text = value.cloned().unwrap_or_default();
        match option.0 {
            "config" if text == "-" => return self.read_config(&String::from_utf8_lossy(input)),
            "config" => return Err(Refused::Config(String::new())),
            "connect-timeout" => self.operation().connect_timeout = Some(seconds(&text)?),
            "max-time" => self.operation().max_time = Some(seconds(&text)?),
            "write-out" => self.operation().write_out = Some(text),
            "output" => self.operation().outputs.push(text),
            "url" => self.operation().urls.push(text),
            "fail" => self.operation().fail = true,
            "head" => self.operation().head = true,
            "request" if text != "GET" => {
                return Err(Refused::Option("is simulated for GET alone"));
            }
            "parallel" => return Err(Refused::Option("is not simulated")),
            "silent" => self.silent = true,
            "show-error" => self.show_error = true,
            "version" => self.mode = Mode::Version,
            // src/tool_parsecfg.c: a `next` without a URL before it makes no new part
            "next" if !self.operation().urls.is_empty() => {
                self.operations.push(Operation::default());
            }
            // The rest changes nothing where there is no proxy, no TLS and no redirect
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
                Some(letter) => KNOWN.iter().find(|known| known.1 == letter),
                None => long(name.trim_start_matches('-')),
            };
            let applied = match option {
                Some(Known("config", ..)) => Err(Refused::Option("is not simulated here")),
                Some(option) => self.apply(option, value.as_ref(), b""),
                None => Err(Refused::Option("is unknown")),
            };
            if let Err(Refused::Option(why)) = applied {
                let line = format!("curl: <stdin>:{number}: '{name}' {why}\n");
                return Err(Refused::Config(line));
            }
        }
        Ok(())
    }
}

fn long(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.0 == name)
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

fn seconds(text: &str) -> Result<Duration, Refused> {
    let seconds = text
        .parse()
        .map_err(|_| Refused::Option("expected a proper numerical parameter"))?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Refused::Option("expected a positive numerical parameter"))
}

/// Why an option is not taken, as `src/tool_helpers.c` words it.
enum Refused {
    Option(&'static str),
    /// A config with a line that is not taken, and what is said of that line.
    Config(String),
}

impl Refused {
    fn usage(self, option: &str) -> Usage {
        match self {
            Self::Option(why) => refused(option, why),
            // src/tool_getparam.c, `C_CONFIG`, and the exit code of `PARAM_READ_ERROR`
            Self::Config(line) => {
                let read = refused(option, "error encountered when reading a file");
                let text = format!("{line}curl: cannot read config from '-'\n{}", read.text);
                Usage { text, code: 26 }
            }
        }
    }
}

fn refused(option: &str, why: &str) -> Usage {
    let text = format!(
        "curl: option {option}: {why}\ncurl: try 'curl --help' or 'curl --manual' for more information\n"
    );
    Usage { text, code: 2 }
}
