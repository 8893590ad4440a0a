//! `ping`: Windows' in English and in Japanese, and busybox's on Linux.
//!
//! Sources of Windows' texts: transcripts in acs-engine issue 572 and docker/for-win issue 6617, Microsoft's
//! page of `ping`; of the Japanese ones: public notes on ping's ERRORLEVEL.

mod busybox;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use super::{Ran, Started};
use crate::program::web::net::{Echo, Net};

pub(super) use busybox::linux;

/// The language of Windows' own programs, whose output is in the console's code page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) enum Language {
    /// Code page 437, of which the texts use only ASCII.
    #[default]
    English,
    /// Code page 932, Shift JIS.
    Japanese,
}

/// The address to ping, how often, and how long to wait for a reply.
struct Asked {
    target: IpAddr,
    /// `None` if it goes on until it is stopped.
    count: Option<u32>,
    wait: Duration,
}

/// Parses `-t TARGET`, `-n COUNT TARGET` and `-n COUNT -w MILLISECONDS TARGET`; the only name is `localhost`.
fn parse(args: &[String]) -> Option<Asked> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (count, wait, target) = match args[..] {
        ["-t", target] => (None, 4000, target),
        ["-n", count, target] => (Some(count.parse().ok()?), 4000, target),
        ["-n", count, "-w", wait, target] => {
            (Some(count.parse().ok()?), wait.parse().ok()?, target)
        }
        _ => return None,
    };
    Some(Asked {
        target: match target {
            "localhost" => Ipv4Addr::LOCALHOST.into(),
            address => address.parse().ok()?,
        },
        count,
        wait: Duration::from_millis(wait),
    })
}

/// The size of an echo request of Windows in bytes.
const BYTES: usize = 32;

/// Windows' `ping ARGS`: one request a second; with `-t` it stays.
pub(super) fn windows(args: &[String], net: &dyn Net, language: Language) -> Option<Started> {
    let parsed = parse(args)?;
    let (mut ran, words) = (Ran::default(), Words::in_language(language));
    let mut pinging = Windows {
        address: parsed.target,
        language,
        wait: parsed.wait,
        sent: 0,
        received: 0,
        answered: 0,
    };
    let head = filled(&words.pinging, parsed.target, &[("{bytes}", BYTES as u64)]);
    ran.say(language.encoded(&format!("\n{head}\n")));
    let Some(count) = parsed.count else {
        pinging.request(&mut ran, net);
        return Some(Started::stays().after(ran));
    };
    for number in 1..=count {
        let lost = pinging.request(&mut ran, net);
        if number < count && !lost {
            // Scripts wait by pinging localhost, so that time passes in real time
            let pause = match is_itself(parsed.target) {
                true => &mut ran.slept,
                false => &mut ran.took,
            };
            *pause += Duration::from_secs(1);
        }
    }
    pinging.end(&mut ran);
    Some(Started::Ended(ran))
}

/// Whether an address is the system's own loopback; the rest of 127.0.0.0/8 belongs to simulated nodes.
fn is_itself(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [127, 0, 0],
        IpAddr::V6(address) => address.is_loopback(),
    }
}

/// The state of a ping between two requests.
struct Windows {
    address: IpAddr,
    language: Language,
    /// How long it waits for each reply.
    wait: Duration,
    sent: u32,
    received: u32,
    /// How many of the received replies came from the pinged address.
    answered: u32,
}

impl Windows {
    /// Sends the next request and prints its reply; returns whether no reply came.
    fn request(&mut self, ran: &mut Ran, net: &dyn Net) -> bool {
        let (words, address) = (Words::in_language(self.language), self.address);
        let echo = match is_itself(address) {
            true => Echo::Reply(128),
            false => net.echo(address, BYTES),
        };
        self.sent += 1;
        let line = match echo {
            Echo::Reply(ttl) => {
                self.received += 1;
                self.answered += 1;
                let reply = match address.is_ipv4() {
                    true => &words.reply,
                    false => &words.reply6,
                };
                filled(
                    reply,
                    address,
                    &[("{bytes}", BYTES as u64), ("{ttl}", ttl.into())],
                )
            }
            // This counts as received: lost are only requests without any reply
            Echo::Unreachable(by) => {
                self.received += 1;
                filled(&words.unreachable, by, &[])
            }
            // The message for a request that `IcmpSendEcho` itself refuses
            Echo::NoWay => words.no_way.clone(),
            Echo::Lost => {
                ran.took += self.wait;
                words.lost.clone()
            }
        };
        ran.say(self.language.encoded(&format!("{line}\n")));
        echo == Echo::Lost
    }

    fn end(&self, ran: &mut Ran) {
        let words = Words::in_language(self.language);
        let lost = self.sent - self.received;
        let percent = (u64::from(lost) * 100).checked_div(u64::from(self.sent));
        let numbers = [
            ("{sent}", u64::from(self.sent)),
            ("{received}", u64::from(self.received)),
            ("{lost}", u64::from(lost)),
            ("{percent}", percent.unwrap_or(0)),
        ];
        let mut statistics = filled(&words.statistics, self.address, &numbers);
        if self.answered > 0 {
            statistics.push_str(&words.times);
        }
        ran.say(self.language.encoded(&statistics));
        // A reply that a host is unreachable also gives 0
        ran.code = u32::from(self.received == 0);
    }
}

/// The texts of a language, from `ping/words.yaml`; `{}` is a name or an address.
#[derive(Deserialize)]
struct Words {
    pinging: String,
    reply: String,
    /// The reply over IPv6, which shows neither size nor hops.
    reply6: String,
    unreachable: String,
    lost: String,
    no_way: String,
    statistics: String,
    times: String,
}

impl Words {
    fn in_language(language: Language) -> &'static Self {
        static ALL: LazyLock<BTreeMap<Language, Words>> = LazyLock::new(|| {
            serde_saphyr::from_str(include_str!("words.yaml")).expect("texts of each language")
        });
        &ALL[&language]
    }
}

/// A text with the address and the numbers filled in for its placeholders.
fn filled(text: &str, address: IpAddr, numbers: &[(&str, u64)]) -> String {
    let text = text.replace("{}", &address.to_string());
    let fill = |text: String, (mark, number): &(&str, u64)| text.replace(mark, &number.to_string());
    numbers.iter().fold(text, fill)
}

impl Language {
    fn encoded(self, text: &str) -> Vec<u8> {
        let text = text.replace('\n', "\r\n");
        match self {
            Self::English => text.into_bytes(),
            Self::Japanese => encoding_rs::SHIFT_JIS.encode(&text).0.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::Stream;
    use crate::program::tests::argv;
    use crate::program::windows::network_table::Table;
    use crate::topology::Os;

    fn ping(args: &[&str], language: Language) -> Ran {
        let mut net = Table::new(Os::Windows);
        net.echoes.insert([10, 0, 0, 1].into(), Echo::Reply(128));
        net.echoes.insert(
            [10, 0, 0, 2].into(),
            Echo::Unreachable([10, 0, 0, 9].into()),
        );
        match windows(&argv(args), &net, language) {
            Some(Started::Ended(ran)) => ran,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn english() {
        let text = |args: &[&str]| {
            let ran = ping(args, Language::English);
            (
                ran.code,
                String::from_utf8(ran.all(Stream::Out)).expect("ASCII"),
            )
        };
        let (code, answered) = text(&["-n", "2", "10.0.0.1"]);
        assert_eq!(code, 0);
        assert!(
            answered.contains("Reply from 10.0.0.1: bytes=32 time<1ms TTL=128\r\n"),
            "{answered}"
        );
        assert!(
            answered.contains("Sent = 2, Received = 2, Lost = 0 (0% loss),\r\n"),
            "{answered}"
        );
        let (code, lost) = text(&["-n", "3", "-w", "1000", "10.0.0.3"]);
        assert_eq!(code, 1);
        assert!(lost.contains("Lost = 3 (100% loss)"), "{lost}");
        let (code, unreachable) = text(&["-n", "4", "10.0.0.2"]);
        assert_eq!(code, 0);
        assert!(unreachable.contains("Reply from 10.0.0.9: Destination host unreachable."));
    }

    #[test]
    fn japanese_in_its_code_page() {
        let ran = ping(&["-n", "1", "10.0.0.2"], Language::Japanese);
        assert_eq!(ran.code, 0, "in spite of what it says");
        let printed = ran.all(Stream::Out);
        let (text, _, _) = encoding_rs::SHIFT_JIS.decode(&printed);
        assert!(std::str::from_utf8(&printed).is_err());
        assert!(text.contains("宛先ホストに到達できません。"), "{text}");
    }

    #[test]
    fn each_line_comes_in_its_second() {
        let mut net = Table::new(Os::Windows);
        net.echoes.insert([10, 0, 0, 1].into(), Echo::Reply(128));
        let started = windows(&argv(&["-n", "4", "10.0.0.1"]), &net, Language::English);
        let Some(Started::Ended(ran)) = started else {
            panic!("it ends")
        };
        let at: Vec<u64> = ran
            .pieces
            .iter()
            .map(|piece| piece.took.as_secs())
            .collect();
        assert_eq!(
            at,
            [0, 0, 1, 1, 1, 0],
            "the head, four replies, and their numbers"
        );
        let Some(Started::Stays { prints }) =
            windows(&argv(&["-t", "127.0.0.1"]), &net, Language::English)
        else {
            panic!("it stays")
        };
        let line = "Reply from 127.0.0.1: bytes=32 time<1ms TTL=128\r\n";
        assert!(prints.ends_with(line), "{prints}");
        let all = ping(&["-n", "7", "127.0.0.1"], Language::English);
        assert_eq!(all.lasted().1.as_secs(), 6);
    }

    #[test]
    fn busybox_on_linux() {
        let mut net = Table::new(Os::Linux);
        net.echoes.insert([10, 0, 0, 1].into(), Echo::Reply(64));
        let told = |args: &[&str]| {
            let ran = linux(&argv(args), &net).expect("it is simulated");
            let text =
                String::from_utf8([Stream::Out, Stream::Error].map(|of| ran.all(of)).concat());
            (ran.code, ran.lasted().0.as_secs(), text.expect("text"))
        };
        let (code, _, text) = told(&["-c", "1", "-W", "2", "10.0.0.1"]);
        assert_eq!(code, 0);
        let line = "1 packets transmitted, 1 packets received, 0% packet loss";
        assert!(text.contains(line), "{text}");
        // It waits as long as the real one
        assert_eq!(told(&["-c", "1", "-W", "3", "10.0.0.2"]).1, 3);
        for args in [&["-c", "1", "-W", "3", "nowhere"][..], &["-A", "10.0.0.1"]] {
            assert_eq!(linux(&argv(args), &net), None);
            assert_eq!(windows(&argv(args), &net, Language::English), None);
        }
    }
}
