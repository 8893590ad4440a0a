//! `nslookup`: that of Windows, and BIND's, which agnhost's images carry on both systems.
//!
//! Texts of Windows: transcripts in acs-engine issue 2027 and AKS issue 2161; of BIND: bin/dig/nslookup.c
//! and dighost.c of 9.16 to 9.18.

use std::net::IpAddr;
use std::time::Duration;

use super::net::Net;
use super::{Ran, Started};
use crate::names::{Answer, Data, Lookup, Query, RecordType, Resolver};
use crate::topology::Os;

/// Name, server and type out of the arguments.
struct Asked {
    name: String,
    server: Option<String>,
    record: RecordType,
}

fn parse(args: &[String]) -> Option<Asked> {
    let mut record = RecordType::Host;
    let mut plain = Vec::new();
    for arg in args {
        match arg.strip_prefix('-') {
            Some(option) => {
                let kind = option.split_once('=').filter(|(key, _)| {
                    matches!(
                        key.to_ascii_lowercase().as_str(),
                        "type" | "querytype" | "q" | "ty"
                    )
                });
                record = match kind.map(|(_, kind)| kind.to_ascii_uppercase()).as_deref() {
                    Some("A") => RecordType::A,
                    Some("AAAA") => RecordType::Aaaa,
                    Some("SRV") => RecordType::Srv,
                    Some("PTR") => RecordType::Ptr,
                    _ => record,
                };
            }
            None => plain.push(arg.clone()),
        }
    }
    let mut plain = plain.into_iter();
    Some(Asked {
        name: plain.next()?,
        server: plain.next(),
        record,
    })
}

fn ask(asked: &Asked, by: Resolver, net: &dyn Net) -> Lookup {
    let reverse = asked.name.parse::<IpAddr>().is_ok();
    net.query(&Query {
        name: &asked.name,
        record: if reverse {
            RecordType::Ptr
        } else {
            asked.record
        },
        by,
        server: asked
            .server
            .as_deref()
            .and_then(|server| server.parse().ok()),
        turn: 0,
    })
}

/// As long it waits for the name of its own server.
const OWN_SERVER: Duration = Duration::from_secs(2);

/// Windows' own.
pub(super) fn windows(args: &[String], net: &dyn Net) -> Started {
    let Some(asked) = parse(args) else {
        // Interactive, and its input is at its end
        return Started::Ended(Ran::prints(
            "Default Server:  UnKnown\r\nAddress:  \r\n\r\n> ",
        ));
    };
    let found = ask(&asked, Resolver::WindowsNslookup, net);
    let server = found
        .server
        .map(|server| server.to_string())
        .unwrap_or_default();
    // The reverse zone has no name for the cluster's DNS unless its Service is asked for
    let head = format!("Server:  UnKnown\nAddress:  {server}\n\n");
    let name = found
        .asked
        .last()
        .cloned()
        .unwrap_or_else(|| asked.name.clone());
    let (out, err) = match &found.answer {
        Answer::Found(data) => (
            format!("{head}{}\n", records(&name, data, true)),
            String::new(),
        ),
        Answer::NoSuchName => (
            head,
            format!(
                "*** UnKnown can't find {}: Non-existent domain\n",
                asked.name
            ),
        ),
        Answer::NoData => (format!("{head}Name:    {name}\n\n"), String::new()),
        // First its own server's name is looked for, then the name itself; each twice
        Answer::TimedOut => {
            let timed_out = "DNS request timed out.\n    timeout was 2 seconds.\n";
            (
                format!("{timed_out}{head}{timed_out}{timed_out}"),
                "*** Request to UnKnown timed-out\n".to_owned(),
            )
        }
    };
    let took = match found.answer {
        Answer::TimedOut => found.took + OWN_SERVER,
        _ => found.took,
    };
    Started::Ended(Ran {
        stdout: crlf(&out).into_bytes(),
        stderr: crlf(&err).into_bytes(),
        // It leaves 0 whatever it finds, but 1 where nobody answers
        code: u32::from(found.answer == Answer::TimedOut),
        took,
        ..Ran::default()
    })
}

/// As Windows shows them: AAAA before A.
fn second_family_first(data: &[Data]) -> Vec<&Data> {
    let first = |data: &&Data| matches!(data, Data::Address(address) if address.is_ipv4());
    let mut all: Vec<&Data> = data.iter().collect();
    all.sort_by_key(first);
    all
}

fn records(name: &str, data: &[Data], windows: bool) -> String {
    let mut addresses = Vec::new();
    let mut out = String::new();
    let data = match windows {
        true => second_family_first(data),
        false => data.iter().collect(),
    };
    for record in data {
        match record {
            Data::Address(address) => addresses.push(address.to_string()),
            Data::Name(target) if windows => out.push_str(&format!("Name:    {target}\n")),
            Data::Name(target) => out.push_str(&format!("{name}\tname = {target}.\n")),
            Data::Srv {
                weight,
                port,
                target,
            } if windows => out.push_str(&format!(
                "{name}\tSRV service location:\n\t  priority       = 0\n\t  weight         = {weight}\n\t  \
                 port           = {port}\n\t  svr hostname   = {target}\n"
            )),
            Data::Srv {
                weight,
                port,
                target,
            } => out.push_str(&format!("{name}\tservice = 0 {weight} {port} {target}.\n")),
        }
    }
    if windows && !addresses.is_empty() {
        let title = if addresses.len() > 1 {
            "Addresses:  "
        } else {
            "Address:  "
        };
        let between = format!("\n{}", " ".repeat(title.len()));
        out.push_str(&format!(
            "Name:    {name}\n{title}{}\n",
            addresses.join(&between)
        ));
    }
    if !windows {
        for address in addresses {
            out.push_str(&format!("Name:\t{name}\nAddress: {address}\n"));
        }
    }
    out
}

/// BIND's.
pub(super) fn bind(args: &[String], net: &dyn Net) -> Started {
    let lines = |text: &str| match net.os() {
        Os::Linux => text.to_owned(),
        Os::Windows => crlf(text),
    };
    let Some(asked) = parse(args) else {
        return Started::Ended(Ran::prints(lines("> ")));
    };
    let found = ask(&asked, Resolver::Bind, net);
    let Some(server) = found.server else {
        return Started::Ended(Ran::complains(
            lines("nslookup: couldn't get address for '': not found\n"),
            1,
        ));
    };
    let head = format!("Server:\t\t{server}\nAddress:\t{server}#53\n\n");
    let name = found
        .asked
        .last()
        .cloned()
        .unwrap_or_else(|| asked.name.clone());
    let missing = |code: &str| format!("{head}** server can't find {name}: {code}\n\n");
    let (out, code) = match &found.answer {
        Answer::Found(data) => (format!("{head}{}\n", records(&name, data, false)), 0),
        Answer::NoSuchName => (missing("NXDOMAIN"), 1),
        Answer::NoData => (format!("{head}*** Can't find {name}: No answer\n\n"), 1),
        Answer::TimedOut => (
            ";; connection timed out; no servers could be reached\n\n".to_owned(),
            1,
        ),
    };
    Started::Ended(Ran {
        code,
        took: found.took,
        ..Ran::prints(lines(&out))
    })
}

/// PowerShell's `Resolve-DnsName`.
pub(super) fn resolve_dns_name(args: &[String], net: &dyn Net) -> Ran {
    let mut name = None;
    // `-Type`: "The default value is A_AAAA"
    let (mut record, mut server) = (RecordType::Host, None);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.to_ascii_lowercase().as_str() {
            "-name" => name = rest.next().cloned(),
            "-server" => server = rest.next().and_then(|server| server.parse().ok()),
            "-type" => {
                record = match rest.next().map(|kind| kind.to_ascii_uppercase()).as_deref() {
                    Some("A") => RecordType::A,
                    Some("AAAA") => RecordType::Aaaa,
                    Some("SRV") => RecordType::Srv,
                    Some("PTR") => RecordType::Ptr,
                    _ => RecordType::Host,
                };
            }
            _ if arg.starts_with('-') => {}
            _ => name = Some(arg.clone()),
        }
    }
    let Some(name) = name else {
        return Ran::complains(
            "Resolve-DnsName : Cannot bind argument to parameter 'Name'.\r\n",
            1,
        );
    };
    let found = net.query(&Query {
        name: &name,
        record,
        by: Resolver::System,
        server,
        turn: 0,
    });
    let complains = |why: &str, category: &str, code: &str| Ran {
        took: found.took,
        ..Ran::complains(
            crlf(&format!(
                "Resolve-DnsName : {name} : {why}\nAt line:1 char:1\n+ Resolve-DnsName {name}\n+ ~~~~~~~~~~~~~~~~\n    \
                 + CategoryInfo          : {category}: ({name}:String) [Resolve-DnsName], Win32Exception\n    \
                 + FullyQualifiedErrorId : {code},Microsoft.DnsClient.Commands.ResolveDnsName\n \n"
            )),
            1,
        )
    };
    match &found.answer {
        Answer::Found(data) => {
            let full = found.asked.last().cloned().unwrap_or(name);
            // The first column of DnsClient.Types.ps1xml
            let width = (full.len() + 1).max(47);
            let mut out = format!(
                "\n{:width$}Type   TTL   Section    IPAddress\n{:width$}----   ---   -------    ---------\n",
                "Name", "----"
            );
            for record in second_family_first(data) {
                let (kind, value) = match record {
                    Data::Address(address) if address.is_ipv4() => ("A", address.to_string()),
                    Data::Address(address) => ("AAAA", address.to_string()),
                    Data::Name(target) => ("CNAME", target.clone()),
                    Data::Srv { target, .. } => ("SRV", target.clone()),
                };
                out.push_str(&format!(
                    "{full:width$}{kind:<7}{:<6}Answer     {value}\n",
                    30
                ));
            }
            Ran {
                took: found.took,
                ..Ran::prints(crlf(&format!("{out}\n\n")))
            }
        }
        Answer::TimedOut => complains(
            "This operation returned because the timeout period expired",
            "OperationTimeout",
            "System.ComponentModel.Win32Exception",
        ),
        Answer::NoSuchName | Answer::NoData => complains(
            "DNS name does not exist",
            "ResourceUnavailable",
            "DNS_ERROR_RCODE_NAME_ERROR",
        ),
    }
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::net::Lookup as Found;
    use crate::program::table::Table;
    use crate::program::tests::argv;

    fn net(os: Os) -> Table {
        Table::new(os)
            .name("web", Found::Address([10, 96, 0, 5].into()))
            .name("slow", Found::TimedOut)
    }

    fn ended(started: Started) -> (String, String, u32) {
        match started {
            Started::Ended(ran) => (
                String::from_utf8(ran.stdout).expect("text"),
                String::from_utf8(ran.stderr).expect("text"),
                ran.code,
            ),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn windows_own() {
        let at = |name| ended(windows(&argv(&[name]), &net(Os::Windows)));
        assert_eq!(
            at("web").0,
            "Server:  UnKnown\r\nAddress:  10.96.0.10\r\n\r\nName:    web\r\nAddress:  10.96.0.5\r\n\r\n"
        );
        let (out, err, code) = at("slow");
        assert!(out.starts_with(
            "DNS request timed out.\r\n    timeout was 2 seconds.\r\nServer:  UnKnown\r\n"
        ));
        assert_eq!(
            (err.as_str(), code),
            ("*** Request to UnKnown timed-out\r\n", 1)
        );
        assert_eq!(
            at("none").1,
            "*** UnKnown can't find none: Non-existent domain\r\n"
        );
    }

    #[test]
    fn binds() {
        let at = |name| ended(bind(&argv(&[name]), &net(Os::Linux)));
        assert_eq!(
            at("web").0,
            "Server:\t\t10.96.0.10\nAddress:\t10.96.0.10#53\n\nName:\tweb\nAddress: 10.96.0.5\n\n"
        );
        assert_eq!(at("none").2, 1);
        assert_eq!(
            at("slow").0,
            ";; connection timed out; no servers could be reached\n\n"
        );
    }

    #[test]
    fn powershells() {
        let at = |name: &str| resolve_dns_name(&argv(&[name]), &net(Os::Windows));
        assert!(String::from_utf8_lossy(&at("web").stdout).contains("10.96.0.5\r\n"));
        let error = String::from_utf8(at("slow").stderr).expect("text");
        assert!(
            error.starts_with(
                "Resolve-DnsName : slow : This operation returned because the timeout period expired\r\n"
            ),
            "{error}"
        );
    }
}
