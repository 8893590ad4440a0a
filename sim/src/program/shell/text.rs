//! `head`, `tail`, `wc`, `seq`, `date`, `uname` and `sleep` of busybox.

use std::time::Duration;

use super::super::script::path;
use super::super::seat::Seat;
use super::super::{Place, Ran, Refusal, Rest, Started};

/// A text with its escapes read, as `echo -e` and `printf` have them; `None` for those that are not
/// known here.
pub(super) fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('\\') => '\\',
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(out)
}

/// `sleep N`: the time passes as it does on the wall.
pub(super) fn sleep(args: &[String]) -> Started {
    let one = |text: &String| -> Option<Duration> {
        let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
            Some(number) => (number, &text[number.len()..]),
            None => (text.as_str(), "s"),
        };
        let seconds = match unit {
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => 1.0,
        };
        Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
    };
    if args.iter().any(|arg| arg == "infinity" || arg == "inf") {
        return Started::stays();
    }
    if args.is_empty() || args.iter().any(|arg| arg.starts_with('-')) {
        return Refusal::not_simulated("sleep of this kind");
    }
    let mut slept = Duration::ZERO;
    for arg in args {
        slept = match one(arg).and_then(|one| slept.checked_add(one)) {
            Some(slept) => slept,
            None => {
                let text = format!("sleep: invalid number '{arg}'\n");
                return Started::Ended(Ran::complains(text, 1));
            }
        };
    }
    Started::Ended(Ran::sleeps(slept))
}

/// `seq [FROM [STEP]] TO`.
pub(super) fn seq(args: &[String]) -> Started {
    /// As many as a script loops over.
    const MOST: usize = 100_000;
    let numbers: Option<Vec<i64>> = args.iter().map(|arg| arg.parse().ok()).collect();
    let (from, step, to) = match numbers.as_deref() {
        Some(&[to]) => (1, 1, to),
        Some(&[from, to]) => (from, 1, to),
        Some(&[from, step, to]) if step != 0 => (from, step, to),
        _ => return Refusal::not_simulated("seq of this kind"),
    };
    let within = |at: &i64| if step > 0 { *at <= to } else { *at >= to };
    let next = |at: &i64| at.checked_add(step);
    let all = std::iter::successors(Some(from), next).take_while(within);
    let lines: Vec<String> = all.take(MOST + 1).map(|at| format!("{at}\n")).collect();
    match lines.len() > MOST {
        true => Refusal::not_simulated("seq of so many"),
        false => Started::Ended(Ran::prints(lines.concat())),
    }
}

/// `date [-u] [+FORMAT]`, in UTC as a container is.
pub(super) fn date(args: &[String], seat: &Seat<'_>) -> Started {
    let now = seat.now().to_zoned(jiff::tz::TimeZone::UTC);
    let args: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| *arg != "-u")
        .collect();
    let format = match args.as_slice() {
        [] => "%a %b %e %H:%M:%S UTC %Y",
        ["-Iseconds"] => "%Y-%m-%dT%H:%M:%S+00:00",
        [format] if format.starts_with('+') => &format[1..],
        _ => return Refusal::not_simulated("date of this kind"),
    };
    match jiff::fmt::strtime::format(format, &now) {
        Ok(text) => Started::Ended(Ran::prints(text + "\n")),
        Err(_) => Refusal::not_simulated(&format!("date +{format}")),
    }
}

/// `uname`: the kernel is the node's.
pub(super) fn uname(args: &[String], seat: &Seat<'_>) -> Started {
    let word = |letter| match letter {
        's' | 'o' => Some("Linux".to_owned()),
        'n' => Some(seat.place.hostname.clone()),
        'r' => Some(crate::topology::LINUX_KERNEL.to_owned()),
        'm' => Some("x86_64".to_owned()),
        // Of the version nothing is known but how it begins
        _ => None,
    };
    let letters = match args {
        [] => "s",
        [flag] if flag.starts_with('-') => &flag[1..],
        _ => return Refusal::not_simulated("uname of this kind"),
    };
    let letters = if letters == "a" { "snrmo" } else { letters };
    match letters.chars().map(word).collect::<Option<Vec<_>>>() {
        Some(words) => Started::Ended(Ran::prints(words.join(" ") + "\n")),
        None => Refusal::not_simulated("uname of this kind"),
    }
}

/// `wc -l`, `-c` and `-w` of the input.
pub(super) fn wc(args: &[String], input: &[u8]) -> Started {
    let count = match args {
        [flag] if flag == "-l" => input.split(|byte| *byte == b'\n').count() - 1,
        [flag] if flag == "-c" => input.len(),
        [flag] if flag == "-w" => String::from_utf8_lossy(input).split_whitespace().count(),
        _ => return Refusal::not_simulated("wc of this kind"),
    };
    Started::Ended(Ran::prints(format!("{count}\n")))
}

/// What `head` and `tail` are asked for.
struct Lines<'a> {
    count: usize,
    /// `+N`: from that line on.
    from: bool,
    follow: bool,
    file: Option<&'a String>,
}

impl<'a> Lines<'a> {
    fn read(args: &'a [String]) -> Option<Self> {
        let mut lines = Self {
            count: 10,
            from: false,
            follow: false,
            file: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "-n" => lines.counts(args.next()?)?,
                "-f" | "-F" => lines.follow = true,
                flag if flag.starts_with("-n") => lines.counts(&flag[2..])?,
                "-" => {}
                operand if operand.starts_with('+') => return None,
                flag if flag.starts_with('-') => lines.count = flag[1..].parse().ok()?,
                _ if lines.file.is_none() => lines.file = Some(arg),
                _ => return None,
            }
        }
        Some(lines)
    }

    fn counts(&mut self, number: &str) -> Option<()> {
        self.from = number.starts_with('+');
        // Which takes a sign before it
        self.count = number.parse().ok()?;
        Some(())
    }

    fn bytes(&self, name: &str, place: &Place, input: &[u8]) -> Result<Vec<u8>, Ran> {
        let Some(file) = self.file else {
            return Ok(input.to_vec());
        };
        if file == "/dev/null" {
            return Ok(Vec::new());
        }
        place.files.read(&path(place, file)).map_err(|error| {
            let why = error.text(place.os);
            let text = match name {
                // coreutils/tail.c says more than others
                "tail" => format!("tail: can't open '{file}': {why}\ntail: no files\n"),
                _ => format!("{name}: {file}: {why}\n"),
            };
            Ran::complains(text, 1)
        })
    }
}

/// `head [-n N] [FILE]`.
pub(super) fn head(args: &[String], place: &Place, input: &[u8]) -> Started {
    let Some(lines) = Lines::read(args).filter(|lines| !lines.follow && !lines.from) else {
        return Refusal::not_simulated("head of this kind");
    };
    let bytes = match lines.bytes("head", place, input) {
        Ok(bytes) => bytes,
        Err(failed) => return Started::Ended(failed),
    };
    let first = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .take(lines.count);
    Started::Ended(Ran::prints(first.collect::<Vec<_>>().concat()))
}

/// `tail [-n N] [-f] [FILE]`.
pub(super) fn tail(args: &[String], place: &Place, input: &[u8]) -> Started {
    let Some(lines) = Lines::read(args) else {
        return Refusal::not_simulated("tail of this kind");
    };
    let bytes = match lines.bytes("tail", place, input) {
        Ok(bytes) => bytes,
        Err(failed) => return Started::Ended(failed),
    };
    let all: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let first = match lines.from {
        true => lines.count.saturating_sub(1).min(all.len()),
        false => all.len().saturating_sub(lines.count),
    };
    let last = all[first..].concat();
    let ran = Ran::prints(last);
    match lines.file {
        Some(file) if file == "/dev/null" && lines.follow => Started::stays(),
        Some(file) if lines.follow => {
            grown(place.clone(), path(place, file), bytes.len()).after(ran)
        }
        _ => Started::Ended(ran),
    }
}

/// What comes to a file from now on: busybox looks once a second (coreutils/tail.c).
fn grown(place: Place, file: String, seen: usize) -> Started {
    Started::GoesOn {
        ran: Ran::sleeps(Duration::from_secs(1)),
        rest: Rest::new(move |_| {
            let bytes = place.files.read(&file).unwrap_or_default();
            // One that was cut is read from its start
            let ran = Ran::prints(bytes.get(seen..).unwrap_or(&bytes));
            grown(place.clone(), file.clone(), bytes.len()).after(ran)
        }),
    }
}
