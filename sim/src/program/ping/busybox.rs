//! busybox' `ping`: networking/ping.c, with its options as musl's `getopt` reads them.

use std::time::Duration;

use super::{Family, Pinging, Voice};
use crate::names::RecordType;
use crate::program::net::{Echo, Lookup, Net};
use crate::program::{Ran, Refusal, Started};

/// What busybox' ping is asked.
#[derive(Debug)]
struct Line<'a> {
    target: &'a str,
    family: RecordType,
    quiet: bool,
    count: Option<u32>,
    bytes: u32,
    interval: Duration,
    /// For an answer to the last request, if there was none to any.
    wait: u32,
    deadline: Option<u32>,
}

/// The beginning of its usage, which is enough to tell it by.
const USAGE: &str = "Usage: ping [OPTIONS] HOST\n";

impl<'a> Line<'a> {
    /// As `getopt` reads it: letters without a value share a word, a letter's value stands behind it in
    /// its word or is the next word, and options may follow the host. Errors are in musl's words, and
    /// in those of libbb/xatonum.c.
    fn parse(args: &'a [String]) -> Result<Self, Ran> {
        let says = |words: String| Ran::complains(words, 1);
        let mut line = Self {
            target: "",
            family: RecordType::Host,
            quiet: false,
            count: None,
            bytes: 56,
            interval: Duration::from_secs(1),
            wait: 10,
            deadline: None,
        };
        let mut hosts = Vec::new();
        let mut words = args.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                hosts.extend(words.by_ref());
                break;
            }
            let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                hosts.push(word);
                continue;
            };
            for (at, letter) in letters.char_indices() {
                match letter {
                    '4' => line.family = RecordType::A,
                    '6' => line.family = RecordType::Aaaa,
                    'q' => line.quiet = true,
                    'v' | 'n' => {}
                    'A' => return Err(Refusal::instead_of("ping -A")),
                    'c' | 's' | 'i' | 't' | 'w' | 'W' | 'I' | 'p' => {
                        let rest = &letters[at + letter.len_utf8()..];
                        let value = match rest {
                            "" => words.next().map(String::as_str),
                            rest => Some(rest),
                        };
                        let Some(value) = value else {
                            let words = format!("ping: option requires an argument: {letter}\n");
                            return Err(says(words + USAGE));
                        };
                        line.take(letter, value)
                            .ok_or_else(|| says(format!("ping: invalid number '{value}'\n")))?;
                        break;
                    }
                    other => {
                        let words = format!("ping: unrecognized option: {other}\n");
                        return Err(says(words + USAGE));
                    }
                }
            }
        }
        match hosts.as_slice() {
            [host] => Ok(Self {
                target: host,
                ..line
            }),
            _ => Err(says(USAGE.to_owned())),
        }
    }

    fn take(&mut self, letter: char, value: &str) -> Option<()> {
        match letter {
            // 0 is none
            'c' => self.count = Some(value.parse().ok()?).filter(|count| *count > 0),
            's' => self.bytes = value.parse().ok()?,
            'W' => self.wait = value.parse().ok()?,
            'w' => self.deadline = Some(value.parse().ok()?).filter(|seconds| *seconds > 0),
            'i' => self.interval = Duration::try_from_secs_f64(value.parse().ok()?).ok()?,
            // Its TTL, its source and its pattern change nothing here
            _ => {}
        }
        Some(())
    }
}

/// busybox' `ping ARGS`: without `-c` and `-w` it goes on until it is ended.
pub(in crate::program) fn linux(args: &[String], net: &dyn Net) -> Started {
    let line = match Line::parse(args) {
        Ok(line) => line,
        Err(ran) => return Started::Ended(ran),
    };
    let name = line.target;
    let (found, resolved) = net.find(&Family(line.family).of(name));
    let Lookup::Address(address) = Lookup::from(found) else {
        return Started::Ended(Ran {
            took: resolved,
            ..Ran::complains(format!("ping: bad address '{name}'\n"), 1)
        });
    };
    let bytes = line.bytes as usize;
    let mut ran = Ran {
        took: resolved,
        ..Ran::default()
    };
    ran.say(format!("PING {name} ({address}): {bytes} data bytes\n"));
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
    let pinging = Pinging {
        address,
        count: line.count,
        bytes,
        sent: 0,
        received: 0,
        voice: Busybox {
            name: name.to_owned(),
            quiet: line.quiet,
            interval: line.interval,
            wait: seconds(line.wait),
            deadline: line.deadline.map(seconds),
        },
    };
    // busybox, networking/ping.c, `ping4` and `ping6`
    if net.echo(address, bytes) == Echo::NoWay {
        return Started::Ended(ran.then(Ran::complains("ping: sendto: Network unreachable\n", 1)));
    }
    pinging.go_on(ran, net)
}

/// busybox' own.
#[derive(Clone, Debug)]
struct Busybox {
    name: String,
    quiet: bool,
    interval: Duration,
    wait: Duration,
    deadline: Option<Duration>,
}

impl Voice for Busybox {
    fn request(pinging: &mut Pinging<Self>, ran: &mut Ran, net: &dyn Net) {
        if let Echo::Reply(ttl) = net.echo(pinging.address, pinging.bytes) {
            pinging.received += 1;
            let (whole, address) = (pinging.bytes + 8, pinging.address);
            let sequence = pinging.sent;
            if !pinging.voice.quiet {
                ran.say(format!(
                    "{whole} bytes from {address}: seq={sequence} ttl={ttl} time=0.085 ms\n"
                ));
            }
        }
        pinging.sent += 1;
        if !pinging.has_sent_all() {
            ran.took += pinging.voice.interval;
        }
    }

    fn has_enough(pinging: &Pinging<Self>) -> bool {
        let Self {
            interval, deadline, ..
        } = pinging.voice;
        deadline.is_some_and(|deadline| interval * pinging.sent >= deadline)
    }

    fn end(pinging: &Pinging<Self>, ran: &mut Ran) {
        let Pinging { sent, received, .. } = *pinging;
        let Self {
            name,
            interval,
            wait,
            deadline,
            ..
        } = &pinging.voice;
        if pinging.has_sent_all() && received < sent {
            // `sendping_tail`: twice the longest round trip so far, a second at the least
            let more = if received == 0 {
                *wait
            } else {
                Duration::from_secs(1)
            };
            let passed = *interval * (sent - 1);
            ran.took += deadline.map_or(more, |deadline| more.min(deadline.saturating_sub(passed)));
        }
        let lost = u64::from(sent - received) * 100 / u64::from(sent).max(1);
        let times = match received {
            0 => "",
            _ => "round-trip min/avg/max = 0.085/0.085/0.085 ms\n",
        };
        ran.say(format!(
            "\n--- {name} ping statistics ---\n{sent} packets transmitted, {received} packets received, \
             {lost}% packet loss\n{times}"
        ));
        ran.code = u32::from(received == 0);
    }
}
