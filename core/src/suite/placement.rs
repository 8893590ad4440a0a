//! Assertions about placement and preemption, from YAML.

use crate::document::{Decoder, Node};
use crate::method::{Ground, Hindrance, PlacedPod, PlacementExpectation, PreemptionExpectation};

pub(super) fn read_placement_query(decoder: &mut Decoder<'_>, node: &Node) -> Option<PlacedPod> {
    let mut fields = decoder.fields(node, "a placement `ask`")?;
    let pod = fields.read(decoder, "pod", |decoder, node| {
        decoder.member(node, "pod", PlacedPod::ALL)
    });
    fields.finish(decoder);
    pod
}

pub(super) fn read_placement(
    decoder: &mut Decoder<'_>,
    node: &Node,
) -> Option<PlacementExpectation> {
    let entry = decoder.tagged(node, "expectation", &["placed", "pending", "starts"])?;
    let (what, key) = match entry.key.as_str() {
        "placed" => ("`placed`", "on"),
        "pending" => ("`pending`", "by"),
        _ => {
            decoder.fields(&entry.node, "`starts`")?.finish(decoder);
            return Some(PlacementExpectation::Starts);
        }
    };
    let mut fields = decoder.fields(&entry.node, what)?;
    let value = fields.required(decoder, key);
    fields.finish(decoder);
    let value = value?;
    if key == "on" {
        let ground = decoder.member(value, "ground", Ground::ALL);
        ground.map(PlacementExpectation::Placed)
    } else {
        let by = decoder.member(value, "hindrance", &Hindrance::EXPECTED);
        by.map(PlacementExpectation::Pending)
    }
}

pub(super) fn read_preemption_query(decoder: &mut Decoder<'_>, node: &Node) -> Option<()> {
    decoder.fields(node, "a preemption `ask`")?.finish(decoder);
    Some(())
}

pub(super) fn read_preemption(
    decoder: &mut Decoder<'_>,
    node: &Node,
) -> Option<PreemptionExpectation> {
    let entry = decoder.tagged(node, "expectation", &["preempts"])?;
    decoder.fields(&entry.node, "`preempts`")?.finish(decoder);
    Some(PreemptionExpectation)
}
