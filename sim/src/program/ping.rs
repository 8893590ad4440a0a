//! `ping`: that of Windows, in English and in Japanese, and busybox' on Linux.
//!
//! Texts of Windows: transcripts in acs-engine issue 572, docker/for-win issue 6617 and Microsoft's
//! page of `ping`; the Japanese ones from public notes on ping's ERRORLEVEL. busybox:
//! networking/ping.c.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::net::{Echo, Lookup, Net};
use super::script::number;
use super::{Ran, Started};
use crate::names::{Query, RecordType};

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

fn parse<'a>(args: &'a [String], count: u32, letters: [&str; 3]) -> Asked<'a> {
    let mut asked = Asked {
        target: None,
        count,
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
            flag if flag == letters[0] => asked.count = value().unwrap_or(count),
            flag if flag == letters[1] => {
                let wait = value().unwrap_or(4000);
                asked.wait = Duration::from_millis(u64::from(wait));
            }
            flag if flag == letters[2] => asked.bytes = value().unwrap_or(32) as usize,
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
    let asked = parse(args, 4, ["-n", "-w", "-l"]);
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
            stdout: words.encoded(&words.unknown.replace("{}", name)),
            ..Ran::default()
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
        language,
        count: (!asked.for_ever).then_some(asked.count),
        wait: asked.wait,
        bytes: asked.bytes,
        ..Pinging::default()
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
struct Pinging {
    address: IpAddr,
    language: Language,
    /// None with `-t`.
    count: Option<u32>,
    wait: Duration,
    bytes: usize,
    sent: u32,
    received: u32,
    answered: u32,
}

impl Default for Pinging {
    fn default() -> Self {
        Self {
            address: IpAddr::from([0, 0, 0, 0]),
            language: Language::English,
            count: None,
            wait: Duration::ZERO,
            bytes: 0,
            sent: 0,
            received: 0,
            answered: 0,
        }
    }
}

impl Pinging {
    /// The next requests, and their numbers at the end.
    fn go_on(mut self, mut ran: Ran, net: &dyn Net) -> Started {
        for _ in 0..AT_ONCE {
            if !self.is_over() {
                self.request(&mut ran, net);
            }
        }
        if self.is_over() {
            return self.ended(ran);
        }
        let later = move |net: &dyn Net| self.clone().go_on(Ran::default(), net);
        Started::GoesOn {
            ran,
            rest: net.later(Arc::new(later)),
        }
    }

    fn is_over(&self) -> bool {
        self.count.is_some_and(|count| self.sent >= count)
    }

    fn request(&mut self, ran: &mut Ran, net: &dyn Net) {
        let (words, address) = (Words::of(self.language), self.address);
        let echo = match is_itself(address) {
            true => Echo::Reply(128),
            false => net.echo(address, self.bytes),
        };
        self.sent += 1;
        let line = match echo {
            Echo::Reply(ttl) => {
                self.received += 1;
                self.answered += 1;
                words.replied(address, self.bytes, ttl)
            }
            // It counts as an answer: a lost one is what nobody answered at all
            Echo::Unreachable(by) => {
                self.received += 1;
                words.unreachable.replace("{}", &by.to_string())
            }
            // Its message for what `IcmpSendEcho` itself refuses
            Echo::NoWay => words.no_way.to_owned(),
            Echo::Lost => {
                ran.took += self.wait;
                words.lost.to_owned()
            }
        };
        ran.say(words.encoded(&format!("{line}\n")));
        if self.is_over() || echo == Echo::Lost {
            return;
        }
        // Pinging oneself is how scripts wait, and that time passes as it does on the wall
        let pause = match is_itself(address) {
            true => &mut ran.slept,
            false => &mut ran.took,
        };
        *pause += Duration::from_secs(1);
    }

    fn ended(&self, mut ran: Ran) -> Started {
        let words = Words::of(self.language);
        let lost = self.sent - self.received;
        let percent = (u64::from(lost) * 100).checked_div(u64::from(self.sent));
        let numbers = [
            ("{sent}", u64::from(self.sent)),
            ("{received}", u64::from(self.received)),
            ("{lost}", u64::from(lost)),
            ("{percent}", percent.unwrap_or(0)),
        ];
        let mut statistics = words.statistics.replace("{}", &self.address.to_string());
        for (mark, number) in numbers {
            statistics = statistics.replace(mark, &number.to_string());
        }
        if self.answered > 0 {
            statistics.push_str(words.times);
        }
        ran.say(words.encoded(&statistics));
        // An answer that somebody is unreachable leaves 0 too
        ran.code = u32::from(self.received == 0);
        Started::Ended(ran)
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

/// busybox' `ping ARGS`: without `-c` it goes on until it is ended.
pub(super) fn linux(args: &[String], net: &dyn Net) -> Started {
    let asked = parse(args, 0, ["-c", "\0", "-s"]);
    let value = |flag: &str| {
        let at = args.iter().position(|arg| arg == flag)?;
        number(args.get(at + 1))
    };
    let Some(name) = asked.target else {
        return Started::Ended(Ran::complains("ping: missing operand\n", 1));
    };
    let (found, resolved) = net.find(&family(args).of(name));
    let Lookup::Address(address) = Lookup::from(found) else {
        return Started::Ended(Ran {
            took: resolved,
            ..Ran::complains(format!("ping: bad address '{name}'\n"), 1)
        });
    };
    let bytes = value("-s").map_or(56, |_| asked.bytes);
    let mut ran = Ran {
        took: resolved,
        ..Ran::default()
    };
    ran.say(format!("PING {name} ({address}): {bytes} data bytes\n"));
    let pinging = Busybox {
        name: name.clone(),
        address,
        count: (asked.count > 0).then_some(asked.count),
        wait: Duration::from_secs(u64::from(value("-W").unwrap_or(10))),
        bytes,
        sent: 0,
        received: 0,
    };
    // busybox, networking/ping.c, `ping4` and `ping6`
    if net.echo(address, bytes) == Echo::NoWay {
        return Started::Ended(ran.then(Ran::complains("ping: sendto: Network unreachable\n", 1)));
    }
    pinging.go_on(ran, net)
}

/// busybox' ping between two requests.
#[derive(Clone, Debug)]
struct Busybox {
    name: String,
    address: IpAddr,
    count: Option<u32>,
    wait: Duration,
    bytes: usize,
    sent: u32,
    received: u32,
}

impl Busybox {
    fn go_on(mut self, mut ran: Ran, net: &dyn Net) -> Started {
        for _ in 0..AT_ONCE {
            if self.is_over() {
                break;
            }
            if let Echo::Reply(ttl) = net.echo(self.address, self.bytes) {
                self.received += 1;
                let (whole, address, sequence) = (self.bytes + 8, self.address, self.sent);
                ran.say(format!(
                    "{whole} bytes from {address}: seq={sequence} ttl={ttl} time=0.085 ms\n"
                ));
            }
            self.sent += 1;
            ran.took += Duration::from_secs(1);
        }
        if self.is_over() {
            return self.ended(ran);
        }
        let later = move |net: &dyn Net| self.clone().go_on(Ran::default(), net);
        Started::GoesOn {
            ran,
            rest: net.later(Arc::new(later)),
        }
    }

    fn is_over(&self) -> bool {
        self.count.is_some_and(|count| self.sent >= count)
    }

    fn ended(&self, mut ran: Ran) -> Started {
        let Self {
            name,
            sent,
            received,
            ..
        } = self;
        if *received == 0 {
            ran.took += self.wait;
        }
        let lost = u64::from(sent - received) * 100 / u64::from(*sent).max(1);
        let times = match received {
            0 => "",
            _ => "round-trip min/avg/max = 0.085/0.085/0.085 ms\n",
        };
        ran.say(format!(
            "\n--- {name} ping statistics ---\n{sent} packets transmitted, {received} packets received, \
             {lost}% packet loss\n{times}"
        ));
        ran.code = u32::from(*received == 0);
        Started::Ended(ran)
    }
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
        // `-c1` in one word is not taken apart: it goes on for ever
        let started = linux(&argv(&["-c1", "10.0.0.1"]), &net);
        assert!(matches!(started, Started::GoesOn { .. }), "{started:?}");
        let started = linux(&argv(&["nowhere"]), &net);
        let unknown = "ping: bad address 'nowhere'\n";
        assert_eq!(started, Started::Ended(Ran::complains(unknown, 1)));
    }
}
