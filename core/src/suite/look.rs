//! The looks of cases, from YAML.

use super::admission::{read_ask, read_expect};
use super::fact::read_fact;
use crate::document::{Decoder, Node};
use crate::way::{FixtureName, HttpAsk, HttpExpect, Look, StateAsk, StateExpect, Target, Test};

/// Reads one test: `way: {ask: …, expect: …}`.
pub(super) fn read_test(decoder: &mut Decoder<'_>, node: &Node) -> Option<Test> {
    let entry = decoder.tagged(node, "test", &Test::NAMES)?;
    let mut fields = decoder.fields(&entry.node, "a look")?;
    let ask = fields.required(decoder, "ask");
    let expect = fields.required(decoder, "expect");
    fields.finish(decoder);
    match entry.key.as_str() {
        "admission" => {
            let ask = ask.and_then(|node| read_ask(decoder, node));
            let expect = expect.and_then(|node| read_expect(decoder, node));
            Some(Test::Admission(Look {
                ask: ask?,
                expect: expect?,
            }))
        }
        "http" => {
            let ask = ask.and_then(|node| read_http_ask(decoder, node));
            let expect = expect.and_then(|node| read_http_expect(decoder, node));
            Some(Test::Http(Look {
                ask: ask?,
                expect: expect?,
            }))
        }
        "fact" => read_fact(decoder, ask, expect).map(Test::Fact),
        _ => read_state(decoder, ask?, expect?).map(Test::State),
    }
}

/// A fixture that can be looked at in this way.
fn read_fixture(
    decoder: &mut Decoder<'_>,
    node: &Node,
    looked_at: &[FixtureName],
) -> Option<FixtureName> {
    let known: Vec<_> = looked_at.iter().map(|name| name.as_str()).collect();
    decoder.word(node, "fixture for this look", &known, |word| {
        FixtureName::parse(word).filter(|name| looked_at.contains(name))
    })
}

fn read_http_ask(decoder: &mut Decoder<'_>, node: &Node) -> Option<HttpAsk> {
    let mut fields = decoder.fields(node, "an http `ask`")?;
    let of = fields.required(decoder, "of");
    let target = fields.required(decoder, "target");
    fields.finish(decoder);
    let of = of.and_then(|node| read_fixture(decoder, node, &SERVING));
    let target = target.and_then(|node| {
        decoder.word(
            node,
            "target",
            &Target::ALL.map(Target::as_str),
            Target::parse,
        )
    });
    Some(HttpAsk {
        of: of?,
        target: target?,
    })
}

fn read_http_expect(decoder: &mut Decoder<'_>, node: &Node) -> Option<HttpExpect> {
    let entry = decoder.tagged(node, "expectation", &["answers"])?;
    let mut fields = decoder.fields(&entry.node, "`answers`")?;
    let body = fields.optional("body");
    fields.finish(decoder);
    let body = match body {
        // Whatever answers names its pod
        None => "",
        Some(node) => decoder.text(node, "`body`")?,
    };
    Some(HttpExpect::Answers {
        body: body.to_owned(),
    })
}

fn read_state(
    decoder: &mut Decoder<'_>,
    ask: &Node,
    expect: &Node,
) -> Option<Look<crate::way::State>> {
    let asked = decoder.tagged(ask, "state `ask`", &["pods"]);
    let expected = decoder.tagged(expect, "expectation", &["ready"]);
    let of = asked.and_then(|asked| {
        let mut fields = decoder.fields(&asked.node, "`pods`")?;
        let of = fields.required(decoder, "of");
        fields.finish(decoder);
        of.and_then(|node| read_fixture(decoder, node, &WITH_PODS))
    });
    let pods = expected.and_then(|expected| {
        let mut fields = decoder.fields(&expected.node, "`ready`")?;
        let pods = fields.required(decoder, "pods");
        fields.finish(decoder);
        pods.and_then(|node| decoder.count(node, "`pods`"))
    });
    Some(Look {
        ask: StateAsk::Pods(of?),
        expect: StateExpect::Ready { pods: pods? },
    })
}

/// The fixtures that answer HTTP.
const SERVING: [FixtureName; 2] = [FixtureName::WinWebserver, FixtureName::LinuxServer];

/// The fixtures that have pods.
const WITH_PODS: [FixtureName; 4] = [
    FixtureName::WinWebserver,
    FixtureName::LinuxPodProber,
    FixtureName::WindowsPodProber,
    FixtureName::WindowsNodeProber,
];
