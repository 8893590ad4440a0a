//! `ping`: that of Windows, in English and in Japanese, and busybox' on Linux.
//!
//! Texts of Windows: transcripts in acs-engine issue 572, docker/for-win issue 6617 and Microsoft's
//! page of `ping`; the Japanese ones from public notes on ping's ERRORLEVEL.

mod busybox;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::net::{Echo, Lookup, Net};
use super::script::number;
use super::{Ran, Started};
use crate::names::{Query, RecordType};

pub(super) use busybox::linux;

/// What Windows' own programs speak. Their output is in the console's code page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Language {
    /// Code page 437, of which only ASCII is used here.
    #[default]
    English,
    /// Code page 932, Shift JIS.
    Japanese,
}

struct Asked<'a> {
    target: Option<&'a String>,
    count: u32,
    for_ever: bool,
    wait: Duration,
    bytes: usize,
}

fn parse(args: &[String]) -> Asked<'_> {
    let mut asked = Asked {
        target: None,
        count: 4,
        for_ever: false,
        wait: Duration::from_secs(4),
        bytes: 32,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let flag = arg.replacen('/', "-", 1);
        let mut value = || number(args.next());
        match flag.as_str() {
            "-t" => asked.for_ever = true,
            "-n" => asked.count = value().unwrap_or(4),
            "-w" => {
                let wait = value().unwrap_or(4000);
                asked.wait = Duration::from_millis(u64::from(wait));
            }
            "-l" => asked.bytes = value().unwrap_or(32) as usize,
            _ if arg.starts_with('-') => {}
            _ => asked.target = Some(arg),
        }
    }
    asked
}

/// What `-4` or `-6` asks for.
fn family(args: &[String]) -> Family {
    let asks = |flag: &str| args.iter().any(|arg| arg.replacen('/', "-", 1) == flag);
    Family(match (asks("-4"), asks("-6")) {
        (true, _) => RecordType::A,
        (_, true) => RecordType::Aaaa,
        _ => RecordType::Host,
    })
}

struct Family(RecordType);

impl Family {
    fn of<'a>(&self, name: &'a str) -> Query<'a> {
        Query {
            record: self.0,
            ..Query::address(name)
        }
    }
}

/// How many requests are sent before others may do something.
const AT_ONCE: u32 = 4;

/// Windows' `ping ARGS`: four requests, a second apart; with `-t` it goes on until it is ended.
pub(super) fn windows(args: &[String], net: &dyn Net, language: Language) -> Started {
    let asked = parse(args);
    let Some(name) = asked.target else {
        // Its usage, of which the first line is enough to tell it by
        return Started::Ended(Ran {
            code: 1,
            ..Ran::prints(crlf(
                "\nUsage: ping [-t] [-a] [-n count] [-l size] [-f] [-i TTL] [-v TOS]\n",
            ))
        });
    };
    let words = Words::of(language);
    let (found, resolved) = net.find(&family(args).of(name));
    let Lookup::Address(address) = Lookup::from(found) else {
        return Started::Ended(Ran {
            code: 1,
            took: resolved,
            ..Ran::prints(words.encoded(&words.unknown.replace("{}", name)))
        });
    };
    let shown = if name.parse::<IpAddr>().is_ok() {
        address.to_string()
    } else {
        format!("{name} [{address}]")
    };
    let pinging = words
        .pinging
        .replace("{}", &shown)
        .replace("{bytes}", &asked.bytes.to_string());
    let mut ran = Ran {
        took: resolved,
        ..Ran::default()
    };
    ran.say(words.encoded(&format!("\n{pinging}\n")));
    let pinging = Pinging {
        address,
        count: (!asked.for_ever).then_some(asked.count),
        bytes: asked.bytes,
        sent: 0,
        received: 0,
        voice: Windows {
            language,
            wait: asked.wait,
            answered: 0,
        },
    };
    pinging.go_on(ran, net)
}

/// Whether an address is the system's own to itself; elsewhere in 127.0.0.0/8 simulated nodes have
/// theirs.
fn is_itself(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [127, 0, 0],
        IpAddr::V6(address) => address.is_loopback(),
    }
}

/// A ping between two requests.
#[derive(Clone, Debug)]
struct Pinging<V> {
    address: IpAddr,
    /// None for one that goes on until it is ended.
    count: Option<u32>,
    bytes: usize,
    sent: u32,
    received: u32,
    voice: V,
}

/// How one of the programs goes about it and what it says.
trait Voice: Clone + Send + Sync + 'static {
    /// Sends the next request and tells of its answer.
    fn request(pinging: &mut Pinging<Self>, ran: &mut Ran, net: &dyn Net);

    /// Whether it ends though its count is not reached.
    fn has_enough(pinging: &Pinging<Self>) -> bool {
        let _ = pinging;
        false
    }

    /// Tells the numbers at the end.
    fn end(pinging: &Pinging<Self>, ran: &mut Ran);
}

impl<V: Voice> Pinging<V> {
    /// The next requests, and their numbers at the end.
    fn go_on(mut self, mut ran: Ran, net: &dyn Net) -> Started {
        for _ in 0..AT_ONCE {
            if !self.is_over() {
                V::request(&mut self, &mut ran, net);
            }
        }
        if self.is_over() {
            V::end(&self, &mut ran);
            return Started::Ended(ran);
        }
        let later = move |net: &dyn Net| self.clone().go_on(Ran::default(), net);
        Started::GoesOn {
            ran,
            rest: net.later(Arc::new(later)),
        }
    }

    fn has_sent_all(&self) -> bool {
        self.count.is_some_and(|count| self.sent >= count)
    }

    fn is_over(&self) -> bool {
        self.has_sent_all() || V::has_enough(self)
    }
}

/// That of Windows.
#[derive(Clone, Debug)]
struct Windows {
    language: Language,
    /// For each answer.
    wait: Duration,
    /// How many of what was received came from whom it was sent to.
    answered: u32,
}

impl Voice for Windows {
    fn request(pinging: &mut Pinging<Self>, ran: &mut Ran, net: &dyn Net) {
        let (words, address) = (Words::of(pinging.voice.language), pinging.address);
        let echo = match is_itself(address) {
            true => Echo::Reply(128),
            false => net.echo(address, pinging.bytes),
        };
        pinging.sent += 1;
        let line = match echo {
            Echo::Reply(ttl) => {
                pinging.received += 1;
                pinging.voice.answered += 1;
                words.replied(address, pinging.bytes, ttl)
            }
            // It counts as an answer: a lost one is what nobody answered at all
            Echo::Unreachable(by) => {
                pinging.received += 1;
                words.unreachable.replace("{}", &by.to_string())
            }
            // Its message for what `IcmpSendEcho` itself refuses
            Echo::NoWay => words.no_way.to_owned(),
            Echo::Lost => {
                ran.took += pinging.voice.wait;
                words.lost.to_owned()
            }
        };
        ran.say(words.encoded(&format!("{line}\n")));
        if pinging.is_over() || echo == Echo::Lost {
            return;
        }
        // Pinging oneself is how scripts wait, and that time passes as it does on the wall
        let pause = match is_itself(address) {
            true => &mut ran.slept,
            false => &mut ran.took,
        };
        *pause += Duration::from_secs(1);
    }

    fn end(pinging: &Pinging<Self>, ran: &mut Ran) {
        let words = Words::of(pinging.voice.language);
        let lost = pinging.sent - pinging.received;
        let percent = (u64::from(lost) * 100).checked_div(u64::from(pinging.sent));
        let numbers = [
            ("{sent}", u64::from(pinging.sent)),
            ("{received}", u64::from(pinging.received)),
            ("{lost}", u64::from(lost)),
            ("{percent}", percent.unwrap_or(0)),
        ];
        let mut statistics = words.statistics.replace("{}", &pinging.address.to_string());
        for (mark, number) in numbers {
            statistics = statistics.replace(mark, &number.to_string());
        }
        if pinging.voice.answered > 0 {
            statistics.push_str(words.times);
        }
        ran.say(words.encoded(&statistics));
        // An answer that somebody is unreachable leaves 0 too
        ran.code = u32::from(pinging.received == 0);
    }
}

/// The texts of a language; `{}` is a name or an address.
struct Words {
    language: Language,
    unknown: &'static str,
    pinging: &'static str,
    reply: &'static str,
    /// Over IPv6, which tells neither size nor hops.
    reply6: &'static str,
    unreachable: &'static str,
    lost: &'static str,
    no_way: &'static str,
    statistics: &'static str,
    times: &'static str,
}

impl Words {
    fn of(language: Language) -> Self {
        match language {
            Language::English => Self {
                language,
                unknown: "Ping request could not find host {}. Please check the name and try again.\n",
                pinging: "Pinging {} with {bytes} bytes of data:",
                reply: "Reply from {}: bytes={bytes} time<1ms TTL={ttl}",
                reply6: "Reply from {}: time<1ms",
                unreachable: "Reply from {}: Destination host unreachable.",
                lost: "Request timed out.",
                no_way: "PING: transmit failed. General failure.",
                statistics: "\nPing statistics for {}:\n    Packets: Sent = {sent}, Received = {received}, \
                             Lost = {lost} ({percent}% loss),\n",
                times: "Approximate round trip times in milli-seconds:\n    \
                        Minimum = 0ms, Maximum = 0ms, Average = 0ms\n",
            },
            Language::Japanese => Self {
                language,
                unknown: "ping 要求ではホスト {} が見つかりませんでした。ホスト名を確認してもう一度実行してください。\n",
                pinging: "{} に ping を送信しています {bytes} バイトのデータ:",
                reply: "{} からの応答: バイト数 ={bytes} 時間 <1ms TTL={ttl}",
                reply6: "{} からの応答: 時間 <1ms",
                unreachable: "{} からの応答: 宛先ホストに到達できません。",
                lost: "要求がタイムアウトしました。",
                no_way: "PING: 転送に失敗しました。一般エラーです。",
                statistics: "\n{} の ping 統計:\n    パケット数: 送信 = {sent}、受信 = {received}、\
                             損失 = {lost} ({percent}% の損失)、\n",
                times: "ラウンド トリップの概算時間 (ミリ秒):\n    最小 = 0ms、最大 = 0ms、平均 = 0ms\n",
            },
        }
    }

    fn replied(&self, by: IpAddr, bytes: usize, ttl: u8) -> String {
        let reply = if by.is_ipv4() {
            self.reply
        } else {
            self.reply6
        };
        reply
            .replace("{}", &by.to_string())
            .replace("{bytes}", &bytes.to_string())
            .replace("{ttl}", &ttl.to_string())
    }

    fn encoded(&self, text: &str) -> Vec<u8> {
        let text = crlf(text);
        match self.language {
            Language::English => text.into_bytes(),
            Language::Japanese => encoding_rs::SHIFT_JIS.encode(&text).0.into_owned(),
        }
    }
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::table::Table;
    use crate::program::tests::{Empty, argv, place, run};
    use crate::topology::Os;

    fn ping(args: &[&str], language: Language) -> Ran {
        let mut net = Table::new(Os::Windows);
        net.echoes.insert([10, 0, 0, 1].into(), Echo::Reply(128));
        net.echoes.insert(
            [10, 0, 0, 2].into(),
            Echo::Unreachable([10, 0, 0, 9].into()),
        );
        match windows(&argv(args), &net, language) {
            Started::Ended(ran) => ran,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn english() {
        let text = |args: &[&str]| {
            let ran = ping(args, Language::English);
            (ran.code, String::from_utf8(ran.stdout).expect("ASCII"))
        };
        let (code, answered) = text(&["10.0.0.1", "-n", "2"]);
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
        let (code, unreachable) = text(&["10.0.0.2"]);
        assert_eq!(code, 0);
        assert!(unreachable.contains("Reply from 10.0.0.9: Destination host unreachable."));
        assert_eq!(
            text(&["nowhere"]),
            (1, "Ping request could not find host nowhere. Please check the name and try again.\r\n".to_owned())
        );
    }

    #[test]
    fn japanese_in_its_code_page() {
        let ran = ping(&["10.0.0.2", "-n", "1"], Language::Japanese);
        assert_eq!(ran.code, 0, "in spite of what it says");
        assert!(String::from_utf8(ran.stdout.clone()).is_err());
        let (text, _, _) = encoding_rs::SHIFT_JIS.decode(&ran.stdout);
        assert!(text.contains("宛先ホストに到達できません。"), "{text}");
    }

    #[test]
    fn each_line_comes_in_its_second() {
        let mut net = Table::new(Os::Windows);
        net.echoes.insert([10, 0, 0, 1].into(), Echo::Reply(128));
        let Started::Ended(ran) = windows(&argv(&["10.0.0.1"]), &net, Language::English) else {
            panic!("it ends")
        };
        let (pieces, ..) = ran.pieces();
        let at: Vec<u64> = pieces.iter().map(|piece| piece.took.as_secs()).collect();
        assert_eq!(
            at,
            [0, 0, 1, 1, 1, 0],
            "the head, four replies, and their numbers"
        );
        let place = place(Os::Windows, crate::image::Family::Servercore);
        let started = run(&place, &["ping", "-t", "127.0.0.1"]);
        let Started::GoesOn { ran, rest } = started else {
            panic!("it goes on")
        };
        assert_eq!(ran.slept.as_secs(), u64::from(AT_ONCE));
        let Started::GoesOn { ran, .. } = rest.start(&Empty::default().view()) else {
            panic!("it goes on")
        };
        let text = String::from_utf8(ran.stdout).expect("ASCII");
        let line = "Reply from 127.0.0.1: bytes=32 time<1ms TTL=128\r\n";
        assert_eq!(text, line.repeat(AT_ONCE as usize));
        let all = run(&place, &["ping", "-n", "7", "127.0.0.1"]).follow(&Empty::default().view());
        let text = String::from_utf8(all.ran.stdout).expect("ASCII");
        assert!(
            text.contains("Sent = 7, Received = 7, Lost = 0 (0% loss)"),
            "{text}"
        );
        assert_eq!(all.ran.slept.as_secs(), 6);
    }

    #[test]
    fn busybox_on_linux() {
        let mut net = Table::new(Os::Linux);
        net.echoes.insert([10, 0, 0, 1].into(), Echo::Reply(64));
        let Started::Ended(ran) = linux(&argv(&["-c", "1", "-W", "2", "10.0.0.1"]), &net) else {
            panic!("it ends")
        };
        let text = String::from_utf8_lossy(&ran.stdout);
        assert!(
            text.contains("1 packets transmitted, 1 packets received, 0% packet loss"),
            "{text}"
        );
        let started = linux(&argv(&["10.0.0.1"]), &net);
        assert!(matches!(started, Started::GoesOn { .. }), "{started:?}");
        let started = linux(&argv(&["nowhere"]), &net);
        let unknown = "ping: bad address 'nowhere'\n";
        assert_eq!(started, Started::Ended(Ran::complains(unknown, 1)));
    }

    #[test]
    fn busybox_reads_its_options_as_getopt_does() {
        let mut net = Table::new(Os::Linux);
        net.echoes.insert([10, 0, 0, 1].into(), Echo::Reply(64));
        let told = |args: &[&str]| match linux(&argv(args), &net) {
            Started::Ended(ran) => {
                let text = [ran.stdout.clone(), ran.stderr.clone()].concat();
                (
                    ran.code,
                    ran.took.as_secs(),
                    String::from_utf8(text).expect("text"),
                )
            }
            other => panic!("{other:?}"),
        };
        for args in [
            &["-c1", "-s100", "10.0.0.1"][..],
            &["-qc1", "-s", "100", "10.0.0.1"],
            &["10.0.0.1", "-nc", "1", "-s100"],
            &["-w1", "-s100", "10.0.0.1"],
            &["-W1", "-c1", "-s100", "--", "10.0.0.1"],
        ] {
            let (code, _, text) = told(args);
            assert_eq!(code, 0, "{args:?}");
            assert!(text.contains("): 100 data bytes\n"), "{text}");
            let quiet = args[0].starts_with("-q");
            assert_eq!(text.contains("\n108 bytes from "), !quiet, "{text}");
            assert!(
                text.contains("\n1 packets transmitted, 1 packets"),
                "{text}"
            );
        }
        // As long as the real one
        for (args, seconds) in [
            (&["-c1", "10.0.0.1"][..], 0),
            (&["-c3", "10.0.0.1"], 2),
            (&["-w2", "10.0.0.1"], 2),
            (&["-c3", "-i2", "10.0.0.1"], 4),
            (&["-c1", "-W3", "10.0.0.2"], 3),
            (&["-c2", "10.0.0.2"], 1 + 10),
            (&["-c1", "-w2", "10.0.0.2"], 2),
            (&["-w2", "10.0.0.2"], 2),
        ] {
            assert_eq!(told(args).1, seconds, "{args:?}");
        }
        let invalid = "ping: invalid number '-1'\n".to_owned();
        assert_eq!(told(&["-c", "-1", "10.0.0.1"]), (1, 0, invalid));
        for (args, words) in [
            (
                &["-c"][..],
                "ping: option requires an argument: c\nUsage: ping ",
            ),
            (
                &["-Z", "10.0.0.1"],
                "ping: unrecognized option: Z\nUsage: ping ",
            ),
            (&["-c1"], "Usage: ping "),
            (&["-c1", "10.0.0.1", "10.0.0.2"], "Usage: ping "),
        ] {
            let (code, _, text) = told(args);
            assert_eq!(
                (code, text.starts_with(words)),
                (1, true),
                "{args:?}: {text}"
            );
        }
    }
}
