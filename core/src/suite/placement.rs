//! Looks at where pods are put, from YAML.

use crate::document::{Decoder, Node};
use crate::way::{
    Ground, Hindrance, Look, PlacedPod, Placement, PlacementAsk, PlacementExpect, Preemption,
    PreemptionAsk, PreemptionExpect,
};

pub(super) fn read_placement(
    decoder: &mut Decoder<'_>,
    ask: &Node,
    expect: &Node,
) -> Option<Look<Placement>> {
    let pod = read_ask(decoder, ask);
    let expect = read_expect(decoder, expect);
    Some(Look {
        ask: PlacementAsk { pod: pod? },
        expect: expect?,
    })
}

fn read_ask(decoder: &mut Decoder<'_>, node: &Node) -> Option<PlacedPod> {
    let mut fields = decoder.fields(node, "a placement `ask`")?;
    let pod = fields.required(decoder, "pod");
    fields.finish(decoder);
    pod.and_then(|node| decoder.member(node, "pod", PlacedPod::ALL))
}

fn read_expect(decoder: &mut Decoder<'_>, node: &Node) -> Option<PlacementExpect> {
    let entry = decoder.tagged(node, "expectation", &["placed", "pending", "starts"])?;
    let (what, key) = match entry.key.as_str() {
        "placed" => ("`placed`", "on"),
        "pending" => ("`pending`", "by"),
        _ => {
            decoder.fields(&entry.node, "`starts`")?.finish(decoder);
            return Some(PlacementExpect::Starts);
        }
    };
    let mut fields = decoder.fields(&entry.node, what)?;
    let value = fields.required(decoder, key);
    fields.finish(decoder);
    let value = value?;
    if key == "on" {
        let ground = decoder.member(value, "ground", Ground::ALL);
        ground.map(PlacementExpect::Placed)
    } else {
        let by = decoder.member(value, "hindrance", &Hindrance::EXPECTED);
        by.map(PlacementExpect::Pending)
    }
}

/// Reads the ask and the expectation of a preemption look, of which there is one.
pub(super) fn read_preemption(
    decoder: &mut Decoder<'_>,
    ask: &Node,
    expect: &Node,
) -> Option<Look<Preemption>> {
    let entry = decoder.tagged(expect, "expectation", &["preempts"]);
    let asked = decoder.fields(ask, "a preemption `ask`");
    let asked = asked.map(|fields| fields.finish(decoder));
    let entry = entry?;
    decoder.fields(&entry.node, "`preempts`")?.finish(decoder);
    asked.map(|_| Look {
        ask: PreemptionAsk,
        expect: PreemptionExpect::Preempts,
    })
}
