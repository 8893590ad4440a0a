//! Assertions about facts, from YAML.

use semver::VersionReq;

use crate::document::{Decoder, Node, Value};
use crate::facts::{Os, read_build};
use crate::method::Assertion;
use crate::method::fact::{
    Fact, FactExpectation, ImageRule, NodeLabel, Quantity, RuntimeRule, SkewRule, SupportRule,
    TaintRule, Topic, UpdateRule,
};

/// Reads topic and expectation, each even if the other is missing.
pub(super) fn read_fact(
    decoder: &mut Decoder<'_>,
    query: Option<&Node>,
    expectation: Option<&Node>,
) -> Option<Assertion<Fact>> {
    let query = query.and_then(|node| read_query(decoder, node));
    let read = expectation.and_then(|node| read_expectation(decoder, node));
    let (query, (word, wanted)) = (query?, read?);
    let known = query.expectations();
    if word != "told" && !known.contains(&word.as_str()) {
        let message = format!(
            "the expectation `{word}` does not apply to the topic `{}`",
            query.as_str()
        );
        let hint = format!(
            "expectations of `{}`: {}",
            query.as_str(),
            [known, &["told"]].concat().join(", ")
        );
        return decoder.fail(expectation?, message, Some(hint));
    }
    Some(Assertion {
        query,
        expectation: wanted?,
    })
}

fn read_query(decoder: &mut Decoder<'_>, node: &Node) -> Option<Topic> {
    let mut fields = decoder.fields(node, "a fact `ask`")?;
    let topic = fields.read(decoder, "topic", |decoder, node| {
        decoder.word(node, "topic", Topic::WORDS, Topic::parse)
    });
    let written = fields.optional("named");
    fields.finish(decoder);
    let names = written.and_then(|node| texts(decoder, node, "`named`"));
    match (topic?, written) {
        (Topic::Images(_), None) => {
            let hint = "add `named: [windows/servercore]`".to_owned();
            decoder.fail(node, "the topic `images` needs `named`", Some(hint))
        }
        (Topic::Images(_), Some(_)) => names.map(Topic::Images),
        (topic, None) => Some(topic),
        (topic, Some(other)) => {
            let message = format!("`named` means nothing to the topic `{}`", topic.as_str());
            decoder.fail(other, message, Some("remove it".to_owned()))
        }
    }
}

/// An expectation with its word, which is known even if the parameters are wrong.
fn read_expectation(
    decoder: &mut Decoder<'_>,
    node: &Node,
) -> Option<(String, Option<FactExpectation>)> {
    let entry = decoder.tagged(node, "expectation", FactExpectation::WORDS)?;
    let node = &entry.node;
    let expectation = match entry.key.as_str() {
        "told" => nothing(decoder, node, "`told`").map(|()| FactExpectation::Told),
        "labels-agree" => read_labels(decoder, node),
        "on" => decoder.member(node, "os", Os::ALL).map(FactExpectation::On),
        "at-least" => decoder
            .count(node, "`at-least`")
            .map(FactExpectation::AtLeast),
        "supported" => decoder
            .some(node, "`supported`", read_support)
            .map(FactExpectation::Supported),
        "runtime" => decoder
            .some(node, "`runtime`", read_runtime)
            .map(FactExpectation::Runtime),
        "skew" => decoder
            .some(node, "`skew`", read_skew)
            .map(FactExpectation::Skew),
        "tainted" => decoder
            .some(node, "`tainted`", read_taint)
            .map(FactExpectation::Tainted),
        "reserved" => read_reserved(decoder, node),
        "lowered" => texts(decoder, node, "`lowered`").map(FactExpectation::Lowered),
        "present" => nothing(decoder, node, "`present`").map(|()| FactExpectation::Present),
        "runs-on-build" => decoder
            .some(node, "`runs-on-build`", read_image)
            .map(FactExpectation::RunsOnBuild),
        "ready" => nothing(decoder, node, "`ready`").map(|()| FactExpectation::Ready),
        "not-broken-by" => decoder
            .some(node, "`not-broken-by`", read_update)
            .map(FactExpectation::NotBrokenBy),
        "vxlan" => read_vxlan(decoder, node),
        "family" => decoder
            .member(node, "family", &["ipv4", "ipv6"])
            .map(|word| FactExpectation::Family(word.to_owned())),
        _ => nothing(decoder, node, "`none`").map(|()| FactExpectation::None),
    };
    Some((entry.key.clone(), expectation))
}

/// Reads `{}`, for an expectation without parameters.
fn nothing(decoder: &mut Decoder<'_>, node: &Node, what: &str) -> Option<()> {
    if matches!(&node.value, Value::Map(entries) if entries.is_empty()) {
        return Some(());
    }
    let hint = "write `{}` after it".to_owned();
    decoder.fail(node, format!("{what} takes no parameters"), Some(hint))
}

fn texts(decoder: &mut Decoder<'_>, node: &Node, what: &str) -> Option<Vec<String>> {
    decoder.some(node, what, |decoder, item| {
        decoder.text(item, what).map(str::to_owned)
    })
}

fn read_labels(decoder: &mut Decoder<'_>, node: &Node) -> Option<FactExpectation> {
    let read =
        |decoder: &mut Decoder<'_>, node: &Node| decoder.member(node, "label", NodeLabel::ALL);
    decoder
        .some(node, "`labels-agree`", read)
        .map(FactExpectation::LabelsAgree)
}

fn read_support(decoder: &mut Decoder<'_>, node: &Node) -> Option<SupportRule> {
    let mut fields = decoder.fields(node, "a rule of `supported`")?;
    let kubernetes = fields.range(decoder, "kubernetes");
    let builds = fields.read(decoder, "builds", |decoder, node| {
        decoder.some(node, "`builds`", read_build)
    });
    let open = fields.or(decoder, "open", Vec::new(), |decoder, node| {
        decoder.some(node, "`open`", read_build)
    });
    let reason = fields.or(decoder, "reason", String::new(), |decoder, node| {
        decoder.text(node, "`reason`").map(str::to_owned)
    });
    fields.finish(decoder);
    let (open, reason) = (open?, reason?);
    if open.is_empty() != reason.is_empty() {
        let hint = "`reason` says why the documents leave open whether Kubernetes supports the builds in `open`".to_owned();
        return decoder.fail(
            node,
            "a rule that has `open` needs `reason`, and a rule that has `reason` needs `open`",
            Some(hint),
        );
    }
    Some(SupportRule {
        kubernetes: kubernetes?,
        builds: builds?,
        open,
        reason,
    })
}

fn read_runtime(decoder: &mut Decoder<'_>, node: &Node) -> Option<RuntimeRule> {
    let mut fields = decoder.fields(node, "a rule of `runtime`")?;
    let name = fields.text(decoder, "name");
    let version = fields.range(decoder, "version");
    let kubelet = fields.or(decoder, "kubelet", VersionReq::STAR, |decoder, node| {
        decoder.range(node, "`kubelet`")
    });
    fields.finish(decoder);
    Some(RuntimeRule {
        name: name?,
        version: version?,
        kubelet: kubelet?,
    })
}

fn read_skew(decoder: &mut Decoder<'_>, node: &Node) -> Option<SkewRule> {
    let mut fields = decoder.fields(node, "a rule of `skew`")?;
    let server = fields.range(decoder, "server");
    let older = fields.count(decoder, "older");
    fields.finish(decoder);
    Some(SkewRule {
        server: server?,
        older: older?.into(),
    })
}

fn read_taint(decoder: &mut Decoder<'_>, node: &Node) -> Option<TaintRule> {
    let mut fields = decoder.fields(node, "a taint")?;
    let key = fields.text(decoder, "key");
    let value = fields.text(decoder, "value");
    let effects = fields.read(decoder, "effects", |decoder, node| {
        decoder.some(node, "`effects`", |decoder, node| {
            let word = decoder.member(node, "effect", &KEEPING_AWAY)?;
            Some(word.to_owned())
        })
    });
    fields.finish(decoder);
    Some(TaintRule {
        key: key?,
        value: value?,
        effects: effects?,
    })
}

fn read_reserved(decoder: &mut Decoder<'_>, node: &Node) -> Option<FactExpectation> {
    let entries = decoder.entries(node, "`reserved`")?;
    if entries.is_empty() {
        return decoder.fail(node, "`reserved` must not be empty", None);
    }
    let wanted = entries.iter().map(|entry| {
        let hint = Some("as in a pod's requests: 2Gi, 500m");
        let is_not = ("is not an amount above nothing", hint);
        let quantity = decoder.parsed(&entry.node, "a quantity", is_not, |text| {
            Quantity::parse(text).filter(|quantity| *quantity > Quantity::ZERO)
        });
        Some((entry.key.clone(), quantity?))
    });
    let wanted: Vec<_> = wanted.collect();
    let wanted: Option<_> = wanted.into_iter().collect();
    wanted.map(FactExpectation::Reserved)
}

fn read_image(decoder: &mut Decoder<'_>, node: &Node) -> Option<ImageRule> {
    let mut fields = decoder.fields(node, "a rule of `runs-on-build`")?;
    let build = fields.read(decoder, "build", read_build);
    let version = fields.range(decoder, "version");
    fields.finish(decoder);
    Some(ImageRule {
        build: build?,
        version: version?,
    })
}

fn read_update(decoder: &mut Decoder<'_>, node: &Node) -> Option<UpdateRule> {
    let mut fields = decoder.fields(node, "a rule of `not-broken-by`")?;
    let build = fields.read(decoder, "build", read_build);
    let revisions = fields.range(decoder, "revisions");
    let plugins = fields.read(decoder, "plugins", |decoder, node| {
        texts(decoder, node, "`plugins`")
    });
    let says = fields.text(decoder, "says");
    fields.finish(decoder);
    Some(UpdateRule {
        build: build?,
        revisions: revisions?,
        plugins: plugins?,
        says: says?,
    })
}

fn read_vxlan(decoder: &mut Decoder<'_>, node: &Node) -> Option<FactExpectation> {
    let mut fields = decoder.fields(node, "`vxlan`")?;
    let vni = fields.count(decoder, "vni");
    let port = fields.count(decoder, "port");
    fields.finish(decoder);
    Some(FactExpectation::Vxlan {
        vni: vni?.into(),
        port: port?,
    })
}

/// The effects of taints that keep pods away for good.
const KEEPING_AWAY: [&str; 2] = ["NoSchedule", "NoExecute"];
