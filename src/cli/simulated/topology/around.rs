//! Reads what is around the nodes of a topology: their network, the API server, the webhooks.

use hybrid_sim::interference::FieldPath;
use hybrid_sim::{ApiSpec, Effect, NetworkMode, NetworkSpec, SecurityGroup};
use winconform_core::document::{Decoder, Fields, Node, Value};

use super::nodes::read_taint;
use super::read_flag;

pub(super) fn read_network(
    decoder: &mut Decoder<'_>,
    node: &Node,
    usual: NetworkSpec,
) -> NetworkSpec {
    let mut network = usual;
    let Some(mut fields) = decoder.fields(node, "`network`") else {
        return network;
    };
    let mode = fields.or(decoder, "mode", usual.mode, |decoder, node| {
        decoder.member(node, "mode", &NetworkMode::ALL)
    });
    network.mode = mode.unwrap_or(usual.mode);
    read_flag(decoder, &mut fields, "dsr", &mut network.dsr);
    read_flag(decoder, &mut fields, "policies", &mut network.policies);
    read_flag(decoder, &mut fields, "host-ports", &mut network.host_ports);
    let forwards = &mut network.forwards_node_ports;
    read_flag(decoder, &mut fields, "forwards-node-ports", forwards);
    fields.finish(decoder);
    network
}

/// `{tcp: [53, 1025-65535], udp: [53]}`.
pub(super) fn read_group(decoder: &mut Decoder<'_>, node: &Node) -> Option<SecurityGroup> {
    let mut fields = decoder.fields(node, "`between-nodes`")?;
    let mut ports = |key| {
        let read = |decoder: &mut Decoder<'_>, node: &Node| {
            decoder.each(node, &format!("`{key}`"), read_ports)
        };
        fields.or(decoder, key, Vec::new(), read)
    };
    let (tcp, udp) = (ports("tcp"), ports("udp"));
    fields.finish(decoder);
    Some(SecurityGroup {
        tcp: tcp?,
        udp: udp?,
    })
}

/// A port or a range of ports.
fn read_ports(decoder: &mut Decoder<'_>, node: &Node) -> Option<(u16, u16)> {
    let text = match &node.value {
        Value::Int(port) => port.to_string(),
        Value::Text(text) => text.clone(),
        _ => String::new(),
    };
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let read = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
    let read = read.filter(|(first, last)| first <= last);
    if read.is_none() {
        decoder.report(
            node,
            "ports must be a port or a range, such as 1025-65535",
            None,
        );
    }
    read
}

/// Reads the keys that describe an embedded API server.
pub(super) fn read_api(decoder: &mut Decoder<'_>, fields: &mut Fields<'_>) -> ApiSpec {
    let version = fields.or(decoder, "version", String::new(), |decoder, node| {
        decoder.text(node, "`version`").map(str::to_owned)
    });
    let text = |decoder: &mut Decoder<'_>, node: &Node| {
        decoder.text(node, "an API group").map(str::to_owned)
    };
    let groups = fields.or(decoder, "groups", Vec::new(), |decoder, node| {
        decoder.kept(node, "`groups`", text)
    });
    let objects = fields.or(decoder, "objects", Vec::new(), |decoder, node| {
        decoder.kept(node, "`objects`", |decoder, node| {
            decoder.entries(node, "an object").map(|_| node.to_json())
        })
    });
    let effects = fields.or(decoder, "webhooks", Vec::new(), |decoder, node| {
        decoder.kept(node, "`webhooks`", read_effect)
    });
    ApiSpec {
        version: version.unwrap_or_default(),
        groups: groups.unwrap_or_default(),
        objects: objects.unwrap_or_default(),
        effects: effects.unwrap_or_default(),
    }
}

/// What a webhook does: the one key says which.
fn read_effect(decoder: &mut Decoder<'_>, node: &Node) -> Option<Effect> {
    const KNOWN: [&str; 6] = [
        "resource",
        "toleration",
        "sidecar",
        "drops",
        "host-denied",
        "credential-specs",
    ];
    let entry = decoder.tagged(node, "effect of a webhook", &KNOWN)?;
    let node = &entry.node;
    match entry.key.as_str() {
        "resource" => {
            let keys = ["name", "config-map", "key"];
            let [name, config_map, key] = read_texts(decoder, node, "`resource`", keys)?;
            let config_map = namespaced(&config_map);
            Some(Effect::Resource {
                name,
                config_map,
                key,
            })
        }
        "toleration" => read_taint(decoder, node).map(Effect::Toleration),
        "sidecar" => {
            let [name, image] = read_texts(decoder, node, "`sidecar`", ["name", "image"])?;
            Some(Effect::Sidecar { name, image })
        }
        "drops" => {
            let text = decoder.text(node, "`drops`")?;
            if !text.starts_with("spec.") {
                let hint =
                    "the path of a field below `spec`, such as `spec.containers[*].lifecycle`";
                let message = format!("`{text}` is no such path");
                return decoder.fail(node, message, Some(hint.to_owned()));
            }
            match text.parse::<FieldPath>() {
                Err(error) => decoder.fail(node, error.to_string(), None),
                Ok(field) if field.is_of_pods() => Some(Effect::Drops(field)),
                Ok(_) => decoder.fail(node, format!("pods have no field `{text}`"), None),
            }
        }
        "credential-specs" => {
            let keys = ["webhook", "name", "domain"];
            let [webhook, name, domain] = read_texts(decoder, node, "`credential-specs`", keys)?;
            Some(Effect::CredentialSpecs {
                webhook,
                name,
                domain,
            })
        }
        _ => {
            let keys = ["unless", "client", "says"];
            let [unless, client, says] = read_texts(decoder, node, "`host-denied`", keys)?;
            Some(Effect::HostDenied {
                unless,
                client: namespaced(&client),
                says,
            })
        }
    }
}

/// The namespace and the name of `NAMESPACE/NAME`.
fn namespaced(text: &str) -> (String, String) {
    let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
    (namespace.to_owned(), name.to_owned())
}

/// The texts of these keys, the only ones.
fn read_texts<const N: usize>(
    decoder: &mut Decoder<'_>,
    node: &Node,
    what: &'static str,
    keys: [&'static str; N],
) -> Option<[String; N]> {
    let mut fields = decoder.fields(node, what)?;
    let texts = keys.map(|key| fields.text(decoder, key));
    fields.finish(decoder);
    let texts: Option<Vec<_>> = texts.into_iter().collect();
    texts?.try_into().ok()
}
