//! The report for CI servers.

use std::collections::{BTreeMap, BTreeSet};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event as Xml};
use winconform_core::record::RunView;
use winconform_core::report::junit::render;
use winconform_core::text::is_hostile;

use crate::runs;

fn rendered(view: &RunView) -> String {
    let text = render(view).expect("a report");
    assert_eq!(text, render(view).expect("a report"));
    text
}

/// The content of a document, as a consumer reads it.
#[derive(Debug, Default)]
struct Read {
    /// How often each element occurs.
    elements: BTreeMap<String, usize>,
    /// `tests`, `failures`, `errors` and `skipped` of the root.
    totals: BTreeMap<String, usize>,
    /// Classname and name of each test case.
    names: Vec<(String, String)>,
    /// Every attribute value and text.
    texts: Vec<String>,
}

fn attributes(element: &BytesStart<'_>) -> BTreeMap<String, String> {
    let attributes = element.attributes().map(|attribute| {
        let attribute = attribute.expect("an attribute");
        let key = String::from_utf8(attribute.key.as_ref().to_vec()).expect("UTF-8");
        let value = String::from_utf8(attribute.value.to_vec()).expect("UTF-8");
        (
            key,
            quick_xml::escape::unescape(&value)
                .expect("entities")
                .into_owned(),
        )
    });
    attributes.collect()
}

fn parsed(text: &str) -> Read {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let (mut read, mut depth) = (Read::default(), 0_usize);
    loop {
        let event = reader.read_event().expect("well-formed XML");
        let element = match &event {
            Xml::Start(element) => {
                depth += 1;
                element
            }
            Xml::Empty(element) => element,
            Xml::End(_) => {
                depth -= 1;
                continue;
            }
            Xml::Text(text) => {
                read.texts
                    .push(String::from_utf8(text.to_vec()).expect("UTF-8"));
                continue;
            }
            Xml::Eof => break,
            Xml::Decl(_) | Xml::GeneralRef(_) => continue,
            other => panic!("unexpected {other:?}"),
        };
        let name = String::from_utf8(element.name().as_ref().to_vec()).expect("UTF-8");
        let attributes = attributes(element);
        match name.as_str() {
            "testsuites" => {
                for key in ["tests", "failures", "errors", "skipped"] {
                    read.totals
                        .insert(key.to_owned(), attributes[key].parse().expect("a count"));
                }
            }
            "testcase" => {
                read.names
                    .push((attributes["classname"].clone(), attributes["name"].clone()));
            }
            _ => {}
        }
        read.texts.extend(attributes.into_values());
        *read.elements.entry(name).or_default() += 1;
    }
    assert_eq!(depth, 0, "every element ends");
    read
}

/// Checks that the counts of the root are these and match the elements, and that names are unique.
fn counted(view: &RunView, tests: usize, failures: usize, errors: usize, skipped: usize) -> Read {
    let read = parsed(&rendered(view));
    let expected = [
        ("tests", tests),
        ("failures", failures),
        ("errors", errors),
        ("skipped", skipped),
    ];
    for ((key, count), element) in expected
        .into_iter()
        .zip(["testcase", "failure", "error", "skipped"])
    {
        assert_eq!(read.totals[key], count, "{key} in {:?}", read.totals);
        assert_eq!(
            read.elements.get(element).copied().unwrap_or_default(),
            count,
            "{element}"
        );
    }
    let unique: BTreeSet<_> = read.names.iter().collect();
    assert_eq!(unique.len(), read.names.len());
    read
}

/// Tests, failures, errors and skips of each record, and some reports as snapshots.
#[test]
fn runs_are_counted() {
    for (record, [tests, failures, errors, skips], shown) in [
        ("healthy", [6, 0, 0, 0], true),
        ("repeated-and-kept", [6, 1, 0, 0], false),
        ("fixture-failed", [7, 1, 4, 0], false),
        ("killed", [7, 0, 5, 0], true),
    ] {
        let view = runs::recorded(record).view();
        counted(&view, tests, failures, errors, skips);
        if shown {
            insta::assert_snapshot!(record, rendered(&view));
        }
    }
}

#[test]
fn every_verdict() {
    let view = runs::recorded("every-verdict").view();
    // The two claims without an image are not tested: the run itself is in error
    let read = counted(&view, 14, 1, 4, 3);
    assert_eq!(read.elements["flakyFailure"], 1);
    assert_eq!(read.elements["rerunFailure"], 1);
    assert_eq!(read.elements["rerunError"], 1);
    insta::assert_snapshot!(rendered(&view));
}

#[test]
fn setup_died() {
    let mut view = runs::recorded("setup-died").view();
    (view.process, view.started.unverified) = (Some(1), true);
    counted(&view, 1, 0, 1, 0);
    insta::assert_snapshot!(rendered(&view));
}

#[test]
fn hostile_text_is_spelled_out_not_lost() {
    let view = runs::hostile();
    let text = rendered(&view);
    assert!(!text.contains(|c: char| c != '\n' && is_hostile(c)));
    assert!(!text.contains("<script") && !text.contains("]]>"));
    assert!(text.len() < 1 << 20, "{}", text.len());
    let read = counted(&view, 7, 0, 2, 3);
    let mut texts = read.texts.iter();
    let context = texts.find(|text| text.starts_with("\\u{1b}[31mred"));
    let context = context.expect("the context is a property");
    for kept in [
        "tab\\u{9}",
        "nul \\u{0}",
        "]]> <script>alert('&amp;\")</script>",
        "end \\u{1b}[",
    ] {
        assert!(context.contains(kept), "{kept} of {context}");
    }
}
