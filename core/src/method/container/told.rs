//! What commands tell of a Windows node. Windows says the words in its own language: only numbers, names of ours
//! and the order of lines count.

use std::net::IpAddr;

use crate::command::{Command, HEADING, ServiceName};
use crate::method::error::Result;
use crate::method::exchange::{ExecReply, ExitStatus};
use crate::text::{counted, printable};

impl Command {
    /// Whether it is sent to a node to learn something of it, which `told` reads.
    pub(crate) fn is_told(&self) -> bool {
        matches!(
            self,
            Self::FreeSpace(_)
                | Self::LoadBalancers
                | Self::ReachApiServer
                | Self::Services(_)
                | Self::CsiProxyPipes
                | Self::Ports
                | Self::PageFiles
                | Self::Encryption
        )
    }
}

/// What a command tells; `None` where it tells nothing but how it ended, as where its program is missing.
pub(super) fn told(command: &Command, reply: &ExecReply) -> Result<Option<String>> {
    let parts = parts(&reply.stdout);
    let words = match command {
        Command::ReachApiServer => return Ok(api_server(&reply.exit)),
        _ if !reply.stderr.is_empty() => return Ok(None),
        Command::Services(names) => services(names, &parts),
        Command::CsiProxyPipes => parts.first().map(|names| pipes(names)),
        Command::Ports => ports(&parts),
        _ if reply.exit != ExitStatus::Code(0) => return Ok(None),
        Command::FreeSpace(_) => free_space(&reply.stdout),
        Command::LoadBalancers => load_balancers(&parts),
        Command::PageFiles => parts.first().and_then(|lines| page_files(lines)),
        Command::Encryption => parts.first().and_then(|lines| encryption(lines)),
        _ => return Ok(None),
    };
    let words = words.ok_or_else(|| reply.unrecognised("an unknown form of output"))?;
    Ok(Some(printable(&words)))
}

/// curl's codes of connections that are refused, or take too long, and of an answer.
fn api_server(exit: &ExitStatus) -> Option<String> {
    let words = match exit {
        ExitStatus::Code(0) => "the API server answers",
        ExitStatus::Code(7 | 28) => "no connection to the API server",
        _ => return None,
    };
    Some(words.to_owned())
}

/// The lines behind each heading.
fn parts(output: &str) -> Vec<Vec<&str>> {
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for line in output.lines() {
        match parts.last_mut() {
            _ if line.starts_with(HEADING) => parts.push(Vec::new()),
            Some(part) => part.push(line),
            None => {}
        }
    }
    parts
}

fn services(names: &[ServiceName], parts: &[Vec<&str>]) -> Option<String> {
    if parts.len() != 3 * names.len() {
        return None;
    }
    let each = names.iter().zip(parts.chunks(3));
    let each =
        each.map(|(name, parts)| Some(format!("{name} {}", service(&name.to_string(), parts)?)));
    Some(each.collect::<Option<Vec<_>>>()?.join("; "))
}

/// What `queryex`, `qc` and `qfailure` print of a service: its name, and then a value on each line.
fn service(name: &str, parts: &[Vec<&str>]) -> Option<String> {
    // ERROR_SERVICE_DOES_NOT_EXIST
    let errors = parts[0].iter().filter(|line| line.starts_with("[SC]"));
    let mut words = errors.flat_map(|line| line.split_whitespace());
    if words.any(|word| word.trim_end_matches(':') == "1060") {
        return Some("is no service".to_owned());
    }
    let values = |part: &Vec<&str>| -> Option<Vec<String>> {
        let values = part.iter().filter_map(|line| line.split_once(':'));
        let values = values.map(|(_, value)| value.trim().to_owned());
        let values: Vec<_> = values.skip_while(|value| value != name).skip(1).collect();
        (!values.is_empty()).then_some(values)
    };
    let second = |part| -> Option<u32> {
        let values = values(part)?;
        values.get(1)?.split_whitespace().next()?.parse().ok()
    };
    let state = match second(&parts[0])? {
        1 => "is stopped",
        4 => "runs",
        _ => "neither runs nor is stopped",
    };
    let start = match second(&parts[1])? {
        ..=2 => "starts with the node",
        3 => "starts by hand",
        _ => "is disabled",
    };
    // After the period, the message and the command line
    let fails = match values(&parts[2])?.get(3) {
        Some(_) => "what follows its failure is set",
        None => "nothing is set to follow its failure",
    };
    Some(format!("{state}, {start}, {fails}"))
}

fn pipes(names: &[&str]) -> String {
    match names {
        [] => "no pipe of a CSI proxy".to_owned(),
        names => names.join(", "),
    }
}

/// The numbers of a line whose words all are numbers, but for the mark of excluded ports that someone set.
fn numbers(line: &str) -> Vec<u16> {
    let words = line.split_whitespace().filter(|word| *word != "*");
    let numbers: Option<Vec<u16>> = words.map(|word| word.parse().ok()).collect();
    numbers.unwrap_or_default()
}

fn ports(parts: &[Vec<&str>]) -> Option<String> {
    let [tcp, tcp_excluded, udp, udp_excluded] = parts else {
        return None;
    };
    let of = |protocol, dynamic: &[&str], excluded: &[&str]| -> Option<String> {
        let last = |line: &&str| line.split_whitespace().last()?.parse::<u16>().ok();
        let dynamic: Vec<_> = dynamic.iter().filter_map(last).collect();
        let [first, count] = dynamic[..] else {
            return None;
        };
        let (first, count) = (u32::from(first), u32::from(count));
        let end = first + count;
        let rows = excluded.iter().map(|line| numbers(line));
        let inside = rows.filter_map(|row| match row[..] {
            [from, to] => {
                let (from, to) = (u32::from(from), u32::from(to));
                Some((to + 1).min(end).saturating_sub(from.max(first)))
            }
            _ => None,
        });
        let inside = inside.fold(0_u32, u32::saturating_add);
        Some(format!(
            "{protocol}: {inside} of {count} dynamic ports from {first} on are excluded"
        ))
    };
    let (tcp, udp) = (of("TCP", tcp, tcp_excluded)?, of("UDP", udp, udp_excluded)?);
    Some(format!("{tcp}; {udp}"))
}

/// The first two numbers are what is free and what there is, in bytes; each language groups digits in its way.
fn free_space(output: &str) -> Option<String> {
    let bytes = output.lines().filter_map(|line| {
        let (_, value) = line.split_once(':')?;
        let value = value.split('(').next()?;
        let digits: String = value.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    });
    let [free, all] = bytes.take(2).collect::<Vec<_>>()[..] else {
        return None;
    };
    let tenths = |bytes: u64| bytes / ((1 << 30) / 10);
    let words = |bytes| format!("{}.{}", tenths(bytes) / 10, tenths(bytes) % 10);
    Some(format!("{} of {} GiB are free", words(free), words(all)))
}

fn page_files(lines: &[&str]) -> Option<String> {
    let sizes = lines.iter().map(|line| line.trim().parse::<u32>().ok());
    let sizes: Vec<_> = sizes.collect::<Option<_>>()?;
    Some(match sizes[..] {
        [] => "no page file".to_owned(),
        [size] => format!("a page file of {size} MiB"),
        _ => {
            let each: Vec<_> = sizes.iter().map(u32::to_string).collect();
            format!("page files of {} MiB", each.join(" and "))
        }
    })
}

/// Each line has a drive, or a blank in place of its letter, and 0 where BitLocker is off, 1 where it protects
/// the volume, 2 where that is unknown, as of one that is locked (Microsoft, `GetProtectionStatus`).
fn encryption(lines: &[&str]) -> Option<String> {
    let each = lines.iter().map(|line| {
        let (drive, status) = line.rsplit_once(' ')?;
        let is = match status {
            "0" => "is not protected",
            "1" => "is protected",
            "2" => "may be locked",
            _ => return None,
        };
        let drive = match drive.trim() {
            "" => "a volume without a letter",
            letter => letter,
        };
        Some(format!("{drive} {is}"))
    });
    let each: Vec<_> = each.collect::<Option<_>>()?;
    Some(match each[..] {
        [] => "no volume that BitLocker knows".to_owned(),
        _ => each.join(", "),
    })
}

/// A load balancer begins with a line that is not indented, and has its identifier; below it are its addresses.
fn load_balancers(parts: &[Vec<&str>]) -> Option<String> {
    let [service, lines] = parts else {
        return None;
    };
    let is_id = |word: &str| {
        let groups: Vec<_> = word.split('-').map(str::len).collect();
        groups == [8, 4, 4, 4, 12] && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
    };
    let begins = |line: &&&str| !line.starts_with(' ') && line.split_whitespace().any(is_id);
    let count = match lines.iter().filter(begins).count() {
        0 => return Some("no load balancer".to_owned()),
        count => counted(count, "load balancer"),
    };
    // A cluster may give its containers a name in its place
    let mut addresses = service
        .iter()
        .filter_map(|line| line.trim().parse::<IpAddr>().ok());
    let Some(address) = addresses.next() else {
        return Some(count);
    };
    let words = lines
        .iter()
        .flat_map(|line| line.split([' ', ',', ';', '|']));
    let has_it = words
        .filter_map(|word| word.parse().ok())
        .any(|it: IpAddr| it == address);
    let with = if has_it { "with" } else { "without" };
    Some(format!(
        "{count}, {with} one for Service kubernetes ({address})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(code: i64, stdout: &str, stderr: &str) -> ExecReply {
        ExecReply {
            stdout: stdout.replace('\n', "\r\n"),
            stderr: stderr.to_owned(),
            exit: ExitStatus::Code(code),
        }
    }

    fn says(command: &Command, code: i64, stdout: &str) -> String {
        let told = told(command, &reply(code, stdout, "")).expect("a known form");
        told.expect("it tells something")
    }

    /// A German Windows says of itself in these words.
    const SERVICES: &str = "@@ queryex kubelet\n\nSERVICE_NAME: kubelet \n        TYP                : 10  \
        WIN32_OWN_PROCESS\n        STATUS             : 1  STOPPED\n        WIN32_BEENDIGUNGSCODE: 0  (0x0)\n\
        @@ qc kubelet\n[SC] QueryServiceConfig ERFOLG\n\nSERVICE_NAME: kubelet\n        TYP                : 10  \
        WIN32_OWN_PROCESS\n        STARTTYP           : 3   DEMAND_START\n        FEHLERSTEUERUNG    : 1   NORMAL\n\
        @@ qfailure kubelet\n[SC] QueryServiceConfig2 ERFOLG\n\nSERVICE_NAME: kubelet\n        RESET_PERIOD (in \
        Sekunden)    : 0\n        REBOOT_MESSAGE               : \n        COMMAND_LINE                 : \n\
        @@ queryex kube-proxy\n[SC] EnumQueryServicesStatus:OpenService FEHLER 1060:\n\nDer angegebene Dienst ist \
        kein installierter Dienst.\n\n@@ qc kube-proxy\n[SC] OpenService FEHLER 1060:\n\n@@ qfailure kube-proxy\n\
        [SC] OpenService FEHLER 1060:\n\n";

    #[test]
    fn services_are_read_in_any_language() {
        let names = ["kubelet", "kube-proxy"].map(|name| ServiceName::parse(name).expect(name));
        let command = Command::Services(names.into());
        assert_eq!(
            says(&command, 1060, SERVICES),
            "kubelet is stopped, starts by hand, nothing is set to follow its failure; kube-proxy is no service"
        );
        let set = "COMMAND_LINE                 : \n        FEHLERAKTIONEN : NEUSTART\n";
        let failing = SERVICES.replace("COMMAND_LINE                 : \n", set);
        assert!(says(&command, 1060, &failing).contains("what follows its failure is set"));
        for unknown in [
            "",
            "@@ queryex kubelet\n",
            &SERVICES.replace("1  STOPPED", "?"),
        ] {
            assert!(told(&command, &reply(0, unknown, "")).is_err(), "{unknown}");
        }
    }

    #[test]
    fn ports_are_counted_where_they_are_dynamic() {
        let of = |protocol: &str| {
            format!(
                "@@ int ipv4 show dynamicport {protocol}\n\n协议 {protocol} 动态端口范围\n\
                 ---------------------------------\n启动端口        : 49152\n端口数          : 16384\n\n\
                 @@ int ipv4 show excludedportrange protocol={protocol}\n\n开始端口    结束端口\n\
                 ----------    --------\n      5985        5985\n     49100       49200\n     \
                 50000       50059     *\n\n* - 管理的端口排除。\n"
            )
        };
        let both = [of("tcp"), of("udp")].concat();
        let each = "109 of 16384 dynamic ports from 49152 on are excluded";
        assert_eq!(
            says(&Command::Ports, 0, &both),
            format!("TCP: {each}; UDP: {each}")
        );
        assert!(told(&Command::Ports, &reply(0, &of("tcp"), "")).is_err());
    }

    #[test]
    fn space_is_read_with_any_separator() {
        let path = crate::command::FilePath::parse(crate::facts::Os::Windows, "C:\\Windows");
        let command = Command::FreeSpace(path.expect("a path"));
        for output in [
            "Total # of free bytes        : 21296336896\nTotal # of bytes             : 42949672960\n",
            "Freie Bytes insgesamt : 21.296.336.896 ( 19,8 GB)\nBytes insgesamt : 42.949.672.960 ( 40,0 GB)\n",
        ] {
            assert_eq!(says(&command, 0, output), "19.8 of 40.0 GiB are free");
        }
        let missing = reply(1, "", "'fsutil' is not recognized");
        assert_eq!(told(&command, &missing), Ok(None));
        assert!(told(&command, &reply(0, "?", "")).is_err());
    }

    #[test]
    fn load_balancers_and_pipes_are_counted() {
        let one = "Load Balancer    : 3599612c-54b4-4b9d-9258-4fc5e2100549\n  Virtual IPs      : 172.30.0.1\n  \
            Direct IP IDs    : 78c19c4d-7edf-43bd-ab2a-5ccf97f214fe\n\n";
        let of =
            |address: &str, rest: &str| format!("@@ Service\n{address}\n@@ load balancers\n{rest}");
        let two = format!("{one}{one}");
        for (address, rest, expected) in [
            (
                "172.30.0.1",
                two.as_str(),
                "2 load balancers, with one for Service kubernetes (172.30.0.1)",
            ),
            (
                "172.30.0.10",
                one,
                "1 load balancer, without one for Service kubernetes (172.30.0.10)",
            ),
            ("api.example", two.as_str(), "2 load balancers"),
            ("%KUBERNETES_SERVICE_HOST%", one, "1 load balancer"),
            ("172.30.0.1", "", "no load balancer"),
        ] {
            assert_eq!(
                says(&Command::LoadBalancers, 0, &of(address, rest)),
                expected
            );
        }
        assert!(told(&Command::LoadBalancers, &reply(0, "", "")).is_err());
        let pipes = "@@ pipes\ncsi-proxy-disk-v1\n";
        assert_eq!(says(&Command::CsiProxyPipes, 0, pipes), "csi-proxy-disk-v1");
        assert_eq!(
            says(&Command::CsiProxyPipes, 1, "@@ pipes\n"),
            "no pipe of a CSI proxy"
        );
    }

    #[test]
    fn the_api_server_is_reached_whatever_it_answers() {
        let of = |code, stderr| told(&Command::ReachApiServer, &reply(code, "", stderr));
        let words = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(of(0, ""), words("the API server answers"));
        let timed_out = "curl: (28) Connection timed out";
        assert_eq!(of(28, timed_out), words("no connection to the API server"));
        assert_eq!(of(3, "curl: (3) URL using bad/illegal format"), Ok(None));
    }

    #[test]
    fn page_files_and_protected_volumes_are_read() {
        for (lines, expected) in [
            ("", "no page file"),
            ("1280\n", "a page file of 1280 MiB"),
            ("1280\n4096\n", "page files of 1280 and 4096 MiB"),
        ] {
            let output = format!("@@ page files\n{lines}");
            assert_eq!(says(&Command::PageFiles, 0, &output), expected);
        }
        for (lines, expected) in [
            ("", "no volume that BitLocker knows"),
            (
                "C: 1\nD: 0\n 0\nE: 2\n",
                "C: is protected, D: is not protected, a volume without a letter is not protected, E: may be locked",
            ),
        ] {
            let output = format!("@@ volumes\n{lines}");
            assert_eq!(says(&Command::Encryption, 0, &output), expected);
        }
        for command in [Command::PageFiles, Command::Encryption] {
            for unknown in ["", "@@ x\nnone\n"] {
                assert!(told(&command, &reply(0, unknown, "")).is_err());
            }
            assert_eq!(told(&command, &reply(1, "", "Get-CimInstance")), Ok(None));
        }
    }
}
