//! Gives a record other names, for people who may not show their cluster's.
//!
//! The same name gets the same replacement everywhere. What a record knows to be a name of the cluster is
//! replaced in every text: nodes, hosts, other people's namespaces and pods, classes, webhooks, the context.
//! Addresses, UUIDs and hosts in URLs are found by their form. Words of other people's log lines that are none
//! of these stay.

mod learn;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Seek, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value as Json;

use super::read::{each_line, malformed};
use crate::fixture::FixtureName;
use learn::forget;

/// Fields of the tool's own words.
const OWN: [&str; 18] = [
    "at", "check", "checks", "claim", "exit", "fixture", "hint", "id", "kind", "point", "pool",
    "profile", "role", "suites", "title", "type", "verdict", "what",
];
/// Events with the tool's own words in every field.
const OWN_EVENTS: [&str; 2] = ["plan", "run-ended"];

/// Objects whose keys are names.
const NAMED: [&str; 4] = ["labels", "node-selector", "nodeSelector", "taken"];

/// IPv4, or at least two colons between groups of hexadecimal digits.
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\d+(?:\.\d+){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}"));
/// Also a MAC address, and the twelve digits of an account of AWS.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    let uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    pattern(&format!(
        r"(?i)\b(?:{uuid}|[0-9a-f]{{2}}(?:[:-][0-9a-f]{{2}}){{5}}|\d{{12}})\b"
    ))
});
/// The host of a URL, and EC2's names of hosts.
static HOST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?:https?://)([A-Za-z0-9.-]*[A-Za-z0-9])|\b(ip(?:-\d{1,3}){4}(?:\.[a-z0-9-]+)*)")
});
static WORD: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern that is built in is valid")
}

/// Writes a record with other names, and without a last line that is cut off. Goes through it once for its own
/// words, once for the names and once to replace them.
pub fn anonymize(mut record: impl BufRead + Seek, mut out: impl Write) -> io::Result<()> {
    let mut names = Names::default();
    let fixtures = FixtureName::all().map(|name| name.as_str().to_owned());
    names.words.extend(fixtures);
    let mut each = |take: &mut dyn FnMut(&str, Json) -> io::Result<()>| {
        record.rewind()?;
        let lines = each_line(&mut record, |line, text| {
            let json = serde_json::from_str(text).map_err(io::Error::from);
            let taken = json.and_then(|json| take(text, json));
            taken.map_err(|error| malformed(line, error.to_string()))
        });
        lines.map_err(io::Error::other)
    };
    each(&mut |_, line| {
        names.protect(&line, false);
        Ok(())
    })?;
    each(&mut |text, line| {
        names.learn(&line["event"]);
        for found in HOST.captures_iter(text) {
            let host = found.get(1).or(found.get(2));
            names.learn_host(host.map_or("", |host| host.as_str()));
        }
        Ok(())
    })?;
    // One may be part of another
    names
        .phrases
        .sort_by_key(|(phrase, _)| Reverse(phrase.len()));
    each(&mut |_, mut line| {
        if let Some(facts) = line["event"].get_mut("facts") {
            forget(facts);
        }
        names.replace(&mut line, false);
        writeln!(out, "{line}")
    })?;
    out.flush()
}

/// The names of a record, each with its replacement.
#[derive(Default)]
struct Names {
    /// In lower case.
    known: BTreeMap<String, String>,
    /// Those that are no single word, as they are written: the context of a kubeconfig may be any text.
    phrases: Vec<(String, String)>,
    /// Words of the record itself, without which it cannot be read.
    words: BTreeSet<String>,
    /// How many names of each kind there are.
    counts: BTreeMap<&'static str, usize>,
    /// The number of each UUID and address.
    numbers: BTreeMap<String, u32>,
}

impl Names {
    /// Learns the words of the record itself: its keys, and the words of the tool's own events.
    fn protect(&mut self, value: &Json, is_own: bool) {
        match value {
            Json::Object(fields) => {
                for (key, value) in fields {
                    if !NAMED.contains(&key.as_str()) {
                        self.words.insert(key.clone());
                        let own = !value.is_object() && OWN.contains(&key.as_str());
                        let is_own = is_own || own || OWN_EVENTS.contains(&key.as_str());
                        self.protect(value, is_own);
                    }
                }
            }
            Json::Array(items) => items.iter().for_each(|item| self.protect(item, is_own)),
            Json::String(word) if is_own && !word.contains(' ') => {
                self.words.insert(word.clone());
            }
            _ => {}
        }
    }

    /// `named` says that the keys of an object are names.
    fn replace(&mut self, value: &mut Json, named: bool) {
        match value {
            Json::String(text) => *text = self.text(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.replace(item, false)),
            Json::Object(fields) => {
                let replaced = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                    // A verdict with its reason has the same key as the word alone
                    if value.is_object() || !OWN.contains(&key.as_str()) {
                        self.replace(&mut value, NAMED.contains(&key.as_str()));
                    }
                    let key = if named { self.text(&key) } else { key };
                    (key, value)
                });
                *fields = replaced.collect();
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        if let Some(known) = self.known.get(&text.to_ascii_lowercase()) {
            return known.clone();
        }
        let mut text = text.to_owned();
        for (phrase, replacement) in &self.phrases {
            text = text.replace(phrase, replacement);
        }
        let text = NUMBER.replace_all(&text, |found: &Captures<'_>| {
            format!(
                "00000000-0000-4000-8000-{:012x}",
                self.number(&found[0].to_ascii_lowercase())
            )
        });
        let text = ADDRESS.replace_all(&text, |found: &Captures<'_>| self.address(&found[0]));
        let text = WORD.replace_all(&text, |found: &Captures<'_>| self.longest(&found[0]));
        text.into_owned()
    }

    /// A word of letters, digits, dots and hyphens with its names replaced, the longest first.
    fn longest(&self, word: &str) -> String {
        let known = |word: &str| {
            let long = word.len() > 2;
            self.known.get(&word.to_ascii_lowercase()).filter(|_| long)
        };
        if let Some(known) = known(word) {
            return known.clone();
        }
        let cuts: Vec<_> = word
            .match_indices(['.', '-', '_'])
            .map(|(at, _)| at)
            .collect();
        for at in cuts.iter().rev() {
            if let Some(known) = known(&word[..*at]) {
                let rest = self.longest(&word[at + 1..]);
                return format!("{known}{}{rest}", &word[*at..=*at]);
            }
        }
        match cuts.first() {
            Some(at) => format!("{}{}", &word[..=*at], self.longest(&word[at + 1..])),
            None => word.to_owned(),
        }
    }

    fn number(&mut self, text: &str) -> u32 {
        let next = u32::try_from(self.numbers.len() + 1).unwrap_or(u32::MAX);
        *self.numbers.entry(text.to_owned()).or_insert(next)
    }

    /// An address of the benchmarks' or the documentation's range for each that says something.
    fn address(&mut self, text: &str) -> String {
        const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
        const BENCHMARKS: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
        const DOCUMENTATION: u128 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).to_bits();
        // A colon may belong to the sentence
        let trimmed = text.trim_end_matches(':');
        let address = match text.parse() {
            Ok(address) => address,
            Err(_) if trimmed.len() < text.len() => {
                return format!("{}{}", self.address(trimmed), &text[trimmed.len()..]);
            }
            Err(_) => return text.to_owned(),
        };
        match address {
            IpAddr::V4(it) if it.is_loopback() || it.is_unspecified() || it == METADATA => {
                text.to_owned()
            }
            IpAddr::V6(it) if it.is_loopback() || it.is_unspecified() => text.to_owned(),
            IpAddr::V4(_) => {
                let nth = self.number(text) & 0x1_ffff;
                Ipv4Addr::from_bits(BENCHMARKS + nth).to_string()
            }
            IpAddr::V6(_) => {
                let nth = u128::from(self.number(text));
                Ipv6Addr::from_bits(DOCUMENTATION + nth).to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A record whose cluster has these names everywhere.
    fn record() -> String {
        let node = json!({
            "name": "ip-10-0-1-2.eu.corp.example", "os": "windows", "taints": [],
            "excluded": "acme.example/owner=finance",
            "details": {
                "labels": {"kubernetes.io/os": "windows", "acme.example/team": "payments"},
                "addresses": [["InternalIP", "10.0.1.2"], ["Hostname", "ip-10-0-1-2.eu.corp.example"]],
                "all-taints": [{"key": "acme.example/dedicated", "value": "billing", "effect": "NoSchedule"}],
                "images": ["registry.acme.example/payments/api:1", "gcr.io/acme-4711/api", "acmehub/web:3",
                    "registry.acme.example/windows/servercore/iis:ltsc2022",
                    "mcr.microsoft.com/windows/nanoserver:ltsc2022"],
            },
        });
        let seen = [
            "http://portal.acme.example/ from 10.0.1.2:80 and [fd00::7]:80 on ip-10-0-1-2: 10.0.20348.2700 at 00:00:15",
            "taint {acme.example/dedicated: billing}; host portal.acme.example; see https://learn.microsoft.com/x",
            "4C1E0D1E-0000-4a4a-8b8b-0123456789ab; acme-inject refuses; arn:aws:iam::471100001234:role/acme-prod",
            "Reply from fd00:aaaa::7: time<1ms; addr:10.77.1.2; InternalIP:10.77.1.3; IP-10-0-1-2; 0a:58:0a:f4:00:02",
            "ip-10-77-9-9.eu-west-1.compute.internal; excluded by acme.example/owner=finance; acme-prod; fargate-acme-1",
        ];
        let lines = [
            json!({"run-started": {"context": "arn:aws:eks:eu-west-1:471100001234:cluster/acme-prod",
                "waivers": [{"owner": "jane@acme.example"}]}}),
            json!({"facts": {
                "nodes": {"fact": {"value": [node], "source": "/api/v1/nodes"}},
                "virtual-nodes": {"fact": {"value": [{"name": "fargate-acme-1", "labels": {"acme.example/x": "acme"}}]}},
                "webhooks": {"fact": {"value": [{"configuration": "acme-inject", "name": "inject.acme.example"}]}},
                "runtime-classes": {"fact": {"value": [{"name": "acme-class", "node-selector": {"acme": "payments"}}]}},
                "workloads": {"fact": {"value": {
                    "without-os": ["payments/api-7f", "status/verdict"],
                    "taken": {"ip-10-0-1-2.eu.corp.example": {"pods": "3"}},
                }}},
            }}),
            json!({"verdict": {"check": "env.cni", "conclusion": {"verdict": "pass",
                "reason": {"seen": "10.0.1.2 of acme-inject", "status": "mcr.microsoft.com/windows"}}}}),
            json!({"attempt": {"check": "net.dns-service[pool=windows-2022]", "verdict": "fail", "assertions": [{
                "comparison": {"not-met": {"seen": seen.join("; ")}},
            }]}}),
        ];
        let line = |event| {
            format!(
                "{}\n",
                json!({"at": "2026-01-01T00:00:00Z", "event": event})
            )
        };
        lines.map(line).concat()
    }

    fn anonymized(record: &str) -> String {
        let mut text = Vec::new();
        anonymize(io::Cursor::new(record), &mut text).expect("a record");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn no_name_of_the_cluster_is_left() {
        let text = anonymized(&record());
        let names = [
            "acme", "payments", "billing", "finance", "corp", "10.0.1.2", "10.77", "ip-10",
            "IP-10", "fd00", "4711", "1E0D", "api-7f", "portal", "0a:58", "jane",
        ];
        for name in names {
            assert!(!text.contains(name), "{name}: {text}");
        }
    }

    #[test]
    fn what_says_nothing_of_the_cluster_stays() {
        let text = anonymized(&record());
        for word in [
            "net.dns-service[pool=windows-2022]",
            "10.0.20348.2700",
            "00:00:15",
            "2026-01-01T00:00:00Z",
            "mcr.microsoft.com/windows/nanoserver:ltsc2022",
            "kubernetes.io/os",
            "\"status\":",
            "learn.microsoft.com",
            "\"verdict\":\"fail\"",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn the_same_name_has_the_same_replacement() {
        let text = anonymized(&record());
        let count = |word: &str| text.matches(word).count();
        // Name, address, key of what pods take
        assert_eq!(count("\"host-1\""), 3, "{text}");
        assert_eq!(count("198.18.0."), 5, "{text}");
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_another_one_is_reported() {
        let torn = format!("{}{{\"at\"", record());
        assert_eq!(anonymized(&torn), anonymized(&record()));
        let refused = anonymize(io::Cursor::new("{}\nno\n{}\n"), Vec::new());
        let refused = refused.expect_err("it is no JSON").to_string();
        assert!(refused.starts_with("line 2 "), "{refused}");
    }
}
