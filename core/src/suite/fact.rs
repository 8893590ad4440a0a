//! Looks of the way `fact`, from YAML.

use std::collections::BTreeMap;

use semver::VersionReq;

use crate::document::{Decoder, Fields, Node, Value};
use crate::facts::{Os, WindowsBuild};
use crate::way::Look;
use crate::way::fact::{
    Fact, FactExpect, ImageRule, NodeLabel, Quantity, RuntimeRule, SkewRule, SupportRule,
    TaintRule, Topic,
};

/// Reads topic and expectation; both are looked at, also when one is missing.
pub(super) fn read_fact(
    decoder: &mut Decoder<'_>,
    ask: Option<&Node>,
    expect: Option<&Node>,
) -> Option<Look<Fact>> {
    let ask = ask.and_then(|node| read_ask(decoder, node));
    let read = expect.and_then(|node| read_expect(decoder, node));
    let (ask, (word, wanted)) = (ask?, read?);
    let known = ask.expectations();
    if word != "told" && !known.contains(&word.as_str()) {
        let message = format!("`{word}` is not to be seen of `{}`", ask.as_str());
        let hint = format!(
            "of `{}`: {}",
            ask.as_str(),
            [known, &["told"]].concat().join(", ")
        );
        decoder.report(expect?, message, Some(hint));
        return None;
    }
    Some(Look {
        ask,
        expect: wanted?,
    })
}

fn read_ask(decoder: &mut Decoder<'_>, node: &Node) -> Option<Topic> {
    let mut fields = decoder.fields(node, "a fact `ask`")?;
    let topic = fields.required(decoder, "topic");
    let written = fields.optional("named");
    fields.finish(decoder);
    let topic = topic.and_then(|node| decoder.word(node, "topic", Topic::WORDS, Topic::parse));
    let names = written.and_then(|node| texts(decoder, node, "`named`"));
    match (topic?, written) {
        (Topic::Images(_), None) => {
            let hint = "add `named: [windows/servercore]`".to_owned();
            decoder.report(node, "the topic `images` needs `named`", Some(hint));
            None
        }
        (Topic::Images(_), Some(_)) => names.map(Topic::Images),
        (topic, None) => Some(topic),
        (topic, Some(other)) => {
            let message = format!("`named` means nothing to the topic `{}`", topic.as_str());
            decoder.report(other, message, Some("remove it".to_owned()));
            None
        }
    }
}

/// An expectation with its word, which stands also for one whose parameters are wrong.
fn read_expect(decoder: &mut Decoder<'_>, node: &Node) -> Option<(String, Option<FactExpect>)> {
    let entry = decoder.tagged(node, "expectation", &FactExpect::WORDS)?;
    let node = &entry.node;
    let expect = match entry.key.as_str() {
        "told" => nothing(decoder, node, "`told`").map(|()| FactExpect::Told),
        "labels-agree" => read_labels(decoder, node),
        "on" => decoder
            .word(node, "os", &["linux", "windows"], |word| match word {
                "linux" => Some(Os::Linux),
                "windows" => Some(Os::Windows),
                _ => None,
            })
            .map(FactExpect::On),
        "at-least" => decoder.count(node, "`at-least`").map(FactExpect::AtLeast),
        "supported" => rules(decoder, node, "`supported`", read_support).map(FactExpect::Supported),
        "runtime" => rules(decoder, node, "`runtime`", read_runtime).map(FactExpect::Runtime),
        "skew" => rules(decoder, node, "`skew`", read_skew).map(FactExpect::Skew),
        "tainted" => rules(decoder, node, "`tainted`", read_taint).map(FactExpect::Tainted),
        "reserved" => read_reserved(decoder, node),
        "lowered" => texts(decoder, node, "`lowered`").map(FactExpect::Lowered),
        "present" => nothing(decoder, node, "`present`").map(|()| FactExpect::Present),
        "runs-on-build" => {
            rules(decoder, node, "`runs-on-build`", read_image).map(FactExpect::RunsOnBuild)
        }
        "ready" => nothing(decoder, node, "`ready`").map(|()| FactExpect::Ready),
        "vxlan" => read_vxlan(decoder, node),
        "family" => decoder
            .word(node, "family", &["ipv4", "ipv6"], |word| {
                matches!(word, "ipv4" | "ipv6").then(|| word.to_owned())
            })
            .map(FactExpect::Family),
        _ => nothing(decoder, node, "`none`").map(|()| FactExpect::None),
    };
    Some((entry.key.clone(), expect))
}

/// `{}`, of an expectation without parameters.
fn nothing(decoder: &mut Decoder<'_>, node: &Node, what: &str) -> Option<()> {
    if matches!(&node.value, Value::Map(entries) if entries.is_empty()) {
        return Some(());
    }
    let hint = "write `{}` after it".to_owned();
    decoder.report(node, format!("{what} takes no parameters"), Some(hint));
    None
}

/// A list that is not empty: an empty one would hold of anything, or of nothing.
fn filled<'n>(decoder: &mut Decoder<'_>, node: &'n Node, what: &str) -> Option<&'n [Node]> {
    let items = decoder.list(node, what)?;
    if items.is_empty() {
        decoder.report(node, format!("{what} must not be empty"), None);
        return None;
    }
    Some(items)
}

fn texts(decoder: &mut Decoder<'_>, node: &Node, what: &str) -> Option<Vec<String>> {
    let items = filled(decoder, node, what)?;
    let texts: Vec<_> = items
        .iter()
        .map(|item| decoder.text(item, what).map(str::to_owned))
        .collect();
    texts.into_iter().collect()
}

fn rules<T>(
    decoder: &mut Decoder<'_>,
    node: &Node,
    what: &str,
    read: impl Fn(&mut Decoder<'_>, &Node) -> Option<T>,
) -> Option<Vec<T>> {
    let items = filled(decoder, node, what)?;
    // Each is read, so that one problem hides no other
    let read: Vec<_> = items.iter().map(|item| read(decoder, item)).collect();
    read.into_iter().collect()
}

fn read_labels(decoder: &mut Decoder<'_>, node: &Node) -> Option<FactExpect> {
    let read =
        |decoder: &mut Decoder<'_>, node: &Node| decoder.member(node, "label", NodeLabel::ALL);
    rules(decoder, node, "`labels-agree`", read).map(FactExpect::LabelsAgree)
}

fn read_support(decoder: &mut Decoder<'_>, node: &Node) -> Option<SupportRule> {
    let mut fields = decoder.fields(node, "a rule of `supported`")?;
    let kubernetes = fields.required(decoder, "kubernetes");
    let builds = fields.required(decoder, "builds");
    let open = fields.optional("open");
    let because = fields.optional("because");
    fields.finish(decoder);
    let kubernetes = kubernetes.and_then(|node| range(decoder, node, "`kubernetes`"));
    let builds = builds.and_then(|node| rules(decoder, node, "`builds`", build));
    let open = match open {
        None => Some(Vec::new()),
        Some(node) => rules(decoder, node, "`open`", build),
    };
    let because = match because {
        None => Some(String::new()),
        Some(node) => decoder.text(node, "`because`").map(str::to_owned),
    };
    let (open, because) = (open?, because?);
    if open.is_empty() != because.is_empty() {
        let hint = "builds that are `open` are so `because` of something".to_owned();
        decoder.report(node, "`open` and `because` go together", Some(hint));
        return None;
    }
    Some(SupportRule {
        kubernetes: kubernetes?,
        builds: builds?,
        open,
        because,
    })
}

fn read_runtime(decoder: &mut Decoder<'_>, node: &Node) -> Option<RuntimeRule> {
    let mut fields = decoder.fields(node, "a rule of `runtime`")?;
    let name = text(decoder, &mut fields, "name");
    let version = fields.required(decoder, "version");
    let kubelet = fields.optional("kubelet");
    fields.finish(decoder);
    let version = version.and_then(|node| range(decoder, node, "`version`"));
    let kubelet = match kubelet {
        None => Some(VersionReq::STAR),
        Some(node) => range(decoder, node, "`kubelet`"),
    };
    Some(RuntimeRule {
        name: name?,
        version: version?,
        kubelet: kubelet?,
    })
}

fn read_skew(decoder: &mut Decoder<'_>, node: &Node) -> Option<SkewRule> {
    let mut fields = decoder.fields(node, "a rule of `skew`")?;
    let server = fields.required(decoder, "server");
    let older = fields.required(decoder, "older");
    fields.finish(decoder);
    let server = server.and_then(|node| range(decoder, node, "`server`"));
    let older = older.and_then(|node| decoder.count(node, "`older`"));
    Some(SkewRule {
        server: server?,
        older: older?.into(),
    })
}

fn read_taint(decoder: &mut Decoder<'_>, node: &Node) -> Option<TaintRule> {
    let mut fields = decoder.fields(node, "a taint")?;
    let key = text(decoder, &mut fields, "key");
    let value = text(decoder, &mut fields, "value");
    let effects = fields.required(decoder, "effects");
    fields.finish(decoder);
    let effect = |decoder: &mut Decoder<'_>, node: &Node| {
        decoder.word(node, "effect", &KEEPING_AWAY, |word| {
            KEEPING_AWAY.contains(&word).then(|| word.to_owned())
        })
    };
    let effects = effects.and_then(|node| rules(decoder, node, "`effects`", effect));
    Some(TaintRule {
        key: key?,
        value: value?,
        effects: effects?,
    })
}

fn read_reserved(decoder: &mut Decoder<'_>, node: &Node) -> Option<FactExpect> {
    let Value::Map(entries) = &node.value else {
        decoder.fields(node, "`reserved`");
        return None;
    };
    let mut wanted = Some(BTreeMap::new());
    for entry in entries {
        let quantity = decoder.text(&entry.node, "a quantity").and_then(|text| {
            let read = Quantity::parse(text).filter(|quantity| *quantity > Quantity::ZERO);
            if read.is_none() {
                let hint = "as in a pod's requests: 2Gi, 500m".to_owned();
                let message = format!("`{text}` is not an amount above nothing");
                decoder.report(&entry.node, message, Some(hint));
            }
            read
        });
        wanted = wanted.zip(quantity).map(|(mut wanted, quantity)| {
            wanted.insert(entry.key.clone(), quantity);
            wanted
        });
    }
    if entries.is_empty() {
        decoder.report(node, "`reserved` must not be empty", None);
        return None;
    }
    wanted.map(FactExpect::Reserved)
}

fn read_image(decoder: &mut Decoder<'_>, node: &Node) -> Option<ImageRule> {
    let mut fields = decoder.fields(node, "a rule of `runs-on-build`")?;
    let of = fields.required(decoder, "build");
    let version = fields.required(decoder, "version");
    fields.finish(decoder);
    let of = of.and_then(|node| build(decoder, node));
    let version = version.and_then(|node| range(decoder, node, "`version`"));
    Some(ImageRule {
        build: of?,
        version: version?,
    })
}

fn read_vxlan(decoder: &mut Decoder<'_>, node: &Node) -> Option<FactExpect> {
    let mut fields = decoder.fields(node, "`vxlan`")?;
    let vni = fields.required(decoder, "vni");
    let port = fields.required(decoder, "port");
    fields.finish(decoder);
    let vni = vni.and_then(|node| decoder.count(node, "`vni`"));
    let port = port.and_then(|node| decoder.count(node, "`port`"));
    Some(FactExpect::Vxlan {
        vni: vni?.into(),
        port: port?,
    })
}

fn text(decoder: &mut Decoder<'_>, fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    let node = fields.required(decoder, key)?;
    decoder.text(node, &format!("`{key}`")).map(str::to_owned)
}

fn range(decoder: &mut Decoder<'_>, node: &Node, what: &str) -> Option<VersionReq> {
    let text = decoder.text(node, what)?;
    match text.parse() {
        Ok(range) => Some(range),
        Err(error) => {
            let hint = "a range such as \">=1.24, <1.28\"".to_owned();
            let message = format!("`{text}` is not a range of versions: {error}");
            decoder.report(node, message, Some(hint));
            None
        }
    }
}

fn build(decoder: &mut Decoder<'_>, node: &Node) -> Option<WindowsBuild> {
    let text = decoder.text(node, "a build")?;
    let build = WindowsBuild::parse_label(text);
    if build.is_none() {
        let hint = "as in the node label: 10.0.20348".to_owned();
        decoder.report(node, format!("`{text}` is not a Windows build"), Some(hint));
    }
    build
}

/// The effects of taints that keep pods away for good.
const KEEPING_AWAY: [&str; 2] = ["NoSchedule", "NoExecute"];
