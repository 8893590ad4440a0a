//! Files that are no records, cut records, and records with hostile text.

use std::fs;

use quick_xml::Reader;
use quick_xml::events::Event as Xml;
use serde_json::{Value as Json, json};

use super::tool::{Said, Tool, check};

const REPORT: [&str; 4] = ["report", "record.jsonl", "--out", "reports"];

/// Terminal escapes, NUL, bidirectional controls and markup.
const HOSTILE: &str =
    "\u{1b}[31mred\u{1b}]0;owned\u{7}\0\u{202e}]]><script>alert(1)</script>&\u{9b}\r\nx";

/// A record of one check that failed; `said` is every text from others.
fn record(said: &str) -> Vec<String> {
    let id = "net.service-ip-from-pod[pool=windows-2022]";
    let node = json!({"name": said, "os": "windows", "build": "10.0.20348", "usable": true, "taints": [
        {"key": said, "effect": "NoSchedule"},
    ]});
    let fact = |value: Json| json!({"fact": {"value": value, "source": said}});
    let object = json!({"kind": "Pod", "namespace": said, "name": said});
    let difference = json!({"expected": said, "seen": said});
    let pool = json!({"name": "win-webserver", "pool": said});
    let events = [
        json!({"run-started": {
            "schema": 1, "version": said, "run": said, "context": said, "suites": said,
        }}),
        json!({"facts": {
            "server": fact(json!(said)), "cluster": {"unknown": {"reason": said}},
            "nodes": fact(json!([node])),
        }}),
        json!({"plan": [{
            "id": id, "claim": "net.service-ip-from-pod", "type":"capability", "title": said,
            "hint": said, "point": {"pool": said, "source": null}, "disposition":"observe",
        }, {
            "id": said, "claim": "net.service-ip-from-pod", "type":"capability", "title": said,
            "hint": said, "point": {"pool": null, "source": null}, "disposition":"observe",
        }]}),
        json!({"intent": object}),
        json!({"fixture": {"key": pool, "took-ms": 5, "outcome": {"failed": {
            "kind": "image-pull", "detail": said,
        }}}}),
        json!({"attempt": {
            "check": id, "number": 1, "rounds": 2, "verdict": "fail",
            "assertions": [{
                "name": said, "reply": null, "observation": {"body": said},
                "comparison":{"not-met": difference}, "error": null,
            }],
        }}),
        json!({"verdict": {"check": id, "conclusion": {
            "verdict": "fail", "reason": {"seen": difference}, "flaky": false,
        }}}),
        json!({"verdict": {"check": said, "conclusion": {
            "verdict":"inconclusive", "flaky": false,
            "reason": {"fixture": {"fixture": pool, "error": {
                "kind": "image-pull", "detail": said,
            }}},
        }}}),
        json!({"interrupted": {"by": said}}),
        json!({"torn-down": {"removed": [object], "left": [object], "errors": [said]}}),
        json!({"run-ended": {"exit": "interrupted", "requests": [[said, 1]]}}),
    ];
    let line = |(seq, event): (usize, Json)| {
        json!({"seq": seq, "at": "2026-01-02T03:04:05Z", "event": event}).to_string() + "\n"
    };
    events.into_iter().enumerate().map(line).collect()
}

fn report(record: impl AsRef<[u8]>) -> (Tool, Said) {
    let tool = Tool::new();
    tool.write("record.jsonl", record);
    let said = tool.run(&REPORT);
    (tool, said)
}

#[track_caller]
fn refused(name: &str, record: impl AsRef<[u8]>) {
    let (tool, said) = report(record);
    assert_eq!(said.code, Some(2), "{name}: {}", said.stderr);
    check(&format!("record-{name}"), &said.errors());
    assert!(
        !tool.path("reports/junit.xml").exists(),
        "{name}: a report of nothing"
    );
}

#[test]
fn what_is_no_record() {
    refused("empty", "");
    refused("garbage", "what is this\n");
    refused("garbage-in-one-line", vec![b'{'; 10 << 20]);
    refused("garbage-line", [vec![b'x'; 10 << 20], vec![b'\n']].concat());
    refused("binary", (0..=255).collect::<Vec<u8>>());
    refused("latin-1", b"{\"gr\xf6\xdfe\": 1}\n");
    refused("hostile", "{\"\u{1b}[31m\u{202e}\":1}\n");
    refused(
        "hostile-event",
        "{\"seq\":0,\"at\":\"2026-01-02T03:04:05Z\",\"event\":{\"\\u001b[31m\":1}}\n",
    );
    let tool = Tool::new();
    check("record-missing", &tool.run(&REPORT).errors());
    fs::create_dir(tool.path("record.jsonl")).expect("a folder");
    check("record-a-folder", &tool.run(&REPORT).errors());
}

#[test]
fn records_that_lack_something() {
    let whole = record("plain");
    refused("gap", [&whole[..2], &whole[3..]].concat().concat());
    refused("twice", [&whole[..], &whole[..]].concat().concat());
    refused("without-start", whole[1..].concat());
    refused(
        "newer",
        whole.concat().replace("\"schema\":1", "\"schema\":5"),
    );
    refused(
        "unplanned",
        [&whole[..2], &[whole[5].replace("\"seq\":5", "\"seq\":2")]]
            .concat()
            .concat(),
    );
}

/// A killed run leaves half a line, perhaps half a character; the report has the lines before.
#[test]
fn a_cut_last_line_is_dropped_and_told() {
    let lines = record("größe");
    let whole = lines[..6].concat();
    let middle = whole.rfind('ö').expect("the last line has it") + 1;
    for cut in [whole.len() - 1, middle] {
        let (_, said) = report(&whole.as_bytes()[..cut]);
        check("record-cut", &said.all());
        assert_eq!(said.code, Some(11));
    }
}

#[test]
fn what_a_cut_record_cannot_say_of_a_check_is_told() {
    let tool = Tool::new();
    let (lines, id) = (
        record("plain"),
        "net.service-ip-from-pod[pool=windows-2022]",
    );
    let explain = ["explain", "--record", "record.jsonl", id];
    tool.write("record.jsonl", lines[..2].concat());
    let said = tool.run(&explain);
    check("record-explain-unplanned", &said.errors());
    assert_eq!(said.code, Some(2));
    tool.write("record.jsonl", lines[..6].concat());
    let said = tool.run(&explain);
    check("record-explain-unconcluded", &said.all());
    assert_eq!(said.code, Some(0));
    // Its plan is whole
    let said = tool.run(&["explain", "--record", "record.jsonl", "net.other"]);
    assert!(
        said.stderr.contains("has no check `net.other`"),
        "{}",
        said.stderr
    );
}

/// Reports stay well-formed, whatever text a cluster returns.
#[test]
fn hostile_words_come_out_harmless() {
    for (name, said) in [
        ("hostile", HOSTILE.to_owned()),
        ("huge", "x".repeat(1 << 20)),
    ] {
        let (tool, shown) = report(record(&said).concat());
        assert_eq!(
            (shown.stderr.as_str(), shown.code),
            ("", Some(10)),
            "{name}"
        );
        shown.assert_harmless();
        assert!(
            shown.stdout.len() < 64 << 10,
            "{name}: {} bytes",
            shown.stdout.len()
        );
        let longest = shown.stdout.lines().map(|line| line.chars().count()).max();
        assert!(
            longest <= Some(4000),
            "{name}: a line of {longest:?} characters"
        );

        let xml = fs::read_to_string(tool.path("reports/junit.xml")).expect("written");
        assert!(!xml.contains("<script"), "{xml}");
        let hostile = |c: char| c != '\n' && winconform_core::text::is_hostile(c);
        assert_eq!(xml.chars().find(|c| hostile(*c)), None, "{name}");
        assert_eq!(elements(&xml, "testcase"), 3, "{xml}");

        let json = fs::read_to_string(tool.path("reports/report.json")).expect("written");
        assert_eq!(json.chars().find(|c| hostile(*c)), None, "{name}");
        serde_json::from_str::<Json>(&json).expect("JSON");
    }
}

/// How many elements of a name a document has, read to its end with every attribute and text.
fn elements(xml: &str, name: &str) -> usize {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let mut count = 0;
    loop {
        match reader.read_event().expect("well-formed") {
            Xml::Eof => return count,
            Xml::Start(tag) | Xml::Empty(tag) => {
                count += usize::from(tag.name().as_ref() == name.as_bytes());
                for attribute in tag.attributes() {
                    attribute.expect("well-formed attributes");
                }
            }
            _ => {}
        }
    }
}
