//! `ping`: that of Windows, in English and in Japanese, and busybox' on Linux.
//!
//! Texts of Windows: transcripts in acs-engine issue 572, docker/for-win issue 6617 and Microsoft's
//! page of `ping`; the Japanese ones from public notes on ping's ERRORLEVEL. busybox:
//! networking/ping.c.

use std::net::IpAddr;
use std::time::Duration;

use super::net::{Echo, Lookup, Net};
use super::script::number;
use super::{Ran, Refusal, Started};
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

/// Their lines are written at once, and scripts that wait for long take `-t`.
const COUNT: u32 = 10_000;

fn too_many() -> Started {
    Refusal::not_simulated(&format!("ping with more than {COUNT} requests"))
}

/// Windows' `ping ARGS`: four requests, a second apart.
pub(super) fn windows(args: &[String], net: &dyn Net, language: Language) -> Started {
    let asked = parse(args, 4, ["-n", "-w", "-l"]);
    if asked.for_ever {
        return Started::stays();
    }
    if asked.count > COUNT {
        return too_many();
    }
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
            ..words.prints(&words.unknown.replace("{}", name))
        });
    };
    let local = address.is_loopback().then_some(address);
    let shown = if name.parse::<IpAddr>().is_ok() {
        address.to_string()
    } else {
        format!("{name} [{address}]")
    };
    let mut out = format!(
        "\n{}\n",
        words
            .pinging
            .replace("{}", &shown)
            .replace("{bytes}", &asked.bytes.to_string())
    );
    let (mut received, mut answered, mut took, mut slept) = (0, 0, resolved, Duration::ZERO);
    for sent in 1..=asked.count {
        let echo = match local {
            Some(_) => Echo::Reply(128),
            None => net.echo(address, asked.bytes),
        };
        let line = match echo {
            Echo::Reply(ttl) => {
                received += 1;
                answered += 1;
                words.replied(address, asked.bytes, ttl)
            }
            // It counts as an answer: a lost one is what nobody answered at all
            Echo::Unreachable(by) => {
                received += 1;
                words.unreachable.replace("{}", &by.to_string())
            }
            // Its message for what `IcmpSendEcho` itself refuses
            Echo::NoWay => words.no_way.to_owned(),
            Echo::Lost => {
                took += asked.wait;
                words.lost.to_owned()
            }
        };
        out.push_str(&line);
        out.push('\n');
        // Pinging oneself is how scripts wait, and that time passes as it does on the wall
        let pause = if local.is_some() {
            &mut slept
        } else {
            &mut took
        };
        if sent < asked.count && echo != Echo::Lost {
            *pause += Duration::from_secs(1);
        }
    }
    let lost = asked.count - received;
    let percent = (lost * 100).checked_div(asked.count).unwrap_or(0);
    let numbers = [
        ("{sent}", asked.count),
        ("{received}", received),
        ("{lost}", lost),
        ("{percent}", percent),
    ];
    let mut statistics = words.statistics.replace("{}", &address.to_string());
    for (mark, number) in numbers {
        statistics = statistics.replace(mark, &number.to_string());
    }
    out.push_str(&statistics);
    if answered > 0 {
        out.push_str(words.times);
    }
    Started::Ended(Ran {
        // An answer that somebody is unreachable leaves 0 too
        code: u32::from(received == 0),
        took,
        slept,
        ..words.prints(&out)
    })
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

    fn prints(&self, text: &str) -> Ran {
        let text = crlf(text);
        Ran {
            stdout: match self.language {
                Language::English => text.into_bytes(),
                Language::Japanese => encoding_rs::SHIFT_JIS.encode(&text).0.into_owned(),
            },
            ..Ran::default()
        }
    }
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// busybox' `ping ARGS`.
pub(super) fn linux(args: &[String], net: &dyn Net) -> Started {
    let asked = parse(args, 0, ["-c", "\0", "-s"]);
    let wait = args
        .iter()
        .position(|arg| arg == "-W")
        .and_then(|at| number(args.get(at + 1)));
    let wait = Duration::from_secs(u64::from(wait.unwrap_or(10)));
    if asked.count == 0 {
        return Started::stays();
    }
    if asked.count > COUNT {
        return too_many();
    }
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
    let bytes = if args.iter().any(|arg| arg == "-s") {
        asked.bytes
    } else {
        56
    };
    let mut out = format!("PING {name} ({address}): {bytes} data bytes\n");
    // busybox, networking/ping.c, `ping4` and `ping6`
    if net.echo(address, bytes) == Echo::NoWay {
        return Started::Ended(Ran {
            code: 1,
            stdout: out.into_bytes(),
            ..Ran::complains("ping: sendto: Network unreachable\n", 1)
        });
    }
    let (mut received, mut took) = (0, resolved);
    for sequence in 0..asked.count {
        if let Echo::Reply(ttl) = net.echo(address, bytes) {
            received += 1;
            let whole = bytes + 8;
            out.push_str(&format!(
                "{whole} bytes from {address}: seq={sequence} ttl={ttl} time=0.085 ms\n"
            ));
        }
        took += Duration::from_secs(1);
    }
    let lost = (asked.count - received) * 100 / asked.count;
    out.push_str(&format!(
        "\n--- {name} ping statistics ---\n{} packets transmitted, {received} packets received, {lost}% packet loss\n",
        asked.count
    ));
    if received > 0 {
        out.push_str("round-trip min/avg/max = 0.085/0.085/0.085 ms\n");
    } else {
        took += wait;
    }
    Started::Ended(Ran {
        code: u32::from(received == 0),
        took,
        ..Ran::prints(out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::table::Table;
    use crate::program::tests::argv;
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
    fn too_many_requests_are_refused() {
        let refused = Refusal::not_simulated("ping with more than 10000 requests");
        for count in ["10001", "4294967295", "-1"] {
            let net = Table::new(Os::Windows);
            let args = argv(&["-n", count, "127.0.0.1"]);
            assert_eq!(windows(&args, &net, Language::English), refused, "{count}");
            let net = Table::new(Os::Linux);
            let args = argv(&["-c", count, "10.0.0.1"]);
            assert_eq!(linux(&args, &net), refused, "{count}");
        }
        assert_eq!(
            ping(&["-n", "10000", "10.0.0.1"], Language::English).took,
            Duration::from_secs(9_999)
        );
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
        let Started::Ended(ran) = linux(&argv(&["-c1", "nowhere"]), &net) else {
            // `-c1` in one word is not taken apart: it goes on for ever
            return;
        };
        panic!("{ran:?}");
    }
}
