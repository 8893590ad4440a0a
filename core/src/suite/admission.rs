//! Admission assertions, and what changes them by version and feature gate, from YAML.

use std::collections::BTreeMap;

use semver::{Version, VersionReq};
use serde_json::{Value as Json, json};
use strum::{IntoStaticStr, VariantArray};

use crate::document::{Decoder, Node, Value};
use crate::facts::{Facts, Known, Os};
use crate::method::{
    AdmissionExpectation, AdmissionQuery, Change, ContainerKind, Denied, ErrorKind, Workload,
};
use crate::verdict::{Disposition, SkipReason};

/// Where another outcome is expected than the case says.
#[derive(Clone, Debug, PartialEq)]
pub struct Exception {
    pub kubernetes: VersionReq,
    /// It applies to objects of this kind; to all without one.
    pub workload: Option<Workload>,
    /// It applies where the cluster has this; where that is not known, the case presumes that it has not.
    pub with: Option<ClusterPart>,
    /// It applies where the cluster does not have this; where that is not known, the case is inconclusive.
    pub without: Option<ClusterPart>,
    /// It applies where this feature gate is off; everywhere without one.
    pub without_gate: Option<Gate>,
    /// How it changes the case.
    pub then: Then,
}

/// What not every cluster has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ClusterPart {
    /// A webhook of gMSA that sees pods.
    GmsaWebhook,
    /// A webhook of gMSA that sees the pods of whatever namespace a run makes.
    GmsaWebhookEverywhere,
    /// `metrics.k8s.io`, served and available.
    MetricsApi,
}

crate::text::words!(ClusterPart);

impl ClusterPart {
    /// What it is.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::GmsaWebhook => "a webhook of gMSA that sees pods",
            Self::GmsaWebhookEverywhere => "a webhook of gMSA that sees the pods of all namespaces",
            Self::MetricsApi => "a metrics API that is available",
        }
    }

    /// Whether the cluster has it, or why that is not known.
    fn is_there(self, facts: &Facts) -> Result<bool, &str> {
        match self {
            Self::GmsaWebhook => facts.gmsa.known().map(|gmsa| !gmsa.webhooks.is_empty()),
            Self::GmsaWebhookEverywhere => facts.gmsa.known().map(|gmsa| gmsa.everywhere),
            Self::MetricsApi => facts.metrics_api.known().copied(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    pub name: String,
    /// The first version in which it is on unless switched off; `None` if there is none yet.
    pub on_since: Option<Version>,
}

/// How an exception changes a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    /// It is skipped, for this reason.
    Skip(String),
    /// This is expected.
    Expect(AdmissionExpectation),
}

/// What a case expects on a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The expectation that replaces the case's.
    pub instead: Option<AdmissionExpectation>,
    /// What the expectation presumes since the server did not say.
    pub presumed: Option<String>,
}

/// Why feature gates are not known: the kind of error, and words to add.
fn unknown_gates(facts: &Facts) -> (ErrorKind, String) {
    match &facts.gates {
        Known::Unknown { reason } if Denied::quoted(reason).is_some() => {
            (ErrorKind::Forbidden, format!(": {reason}"))
        }
        _ => (ErrorKind::FactUnknown, String::new()),
    }
}

impl Expected {
    /// The first exception that applies; where gates are not known, it presumes and states the version's
    /// defaults.
    pub fn on(
        facts: &Facts,
        exceptions: &[Exception],
        workload: Option<Workload>,
    ) -> Result<Self, Disposition> {
        if exceptions.is_empty() {
            return Ok(Self::default());
        }
        let version = facts.kubernetes().ok_or_else(|| {
            let detail = "the server's version, on which the expectation depends";
            Disposition::Inconclusive(ErrorKind::FactUnknown.error(detail))
        })?;
        let mut presumed = None;
        for exception in exceptions {
            let of_it = exception.workload.is_none_or(|only| workload == Some(only));
            if !of_it || !exception.kubernetes.matches(&version) {
                continue;
            }
            if let Some(part) = exception.with {
                match part.is_there(facts) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(_) => {
                        let part = part.words();
                        presumed =
                            Some(format!("the cluster lacks {part}; the server did not say"));
                        continue;
                    }
                }
            }
            if let Some(part) = exception.without {
                let is_there = part.is_there(facts).map_err(|why| {
                    let part = part.words();
                    let detail = format!("whether the cluster has {part} is not known: {why}");
                    Disposition::Inconclusive(ErrorKind::FactUnknown.error(detail))
                })?;
                if is_there {
                    continue;
                }
            }
            let applies = match &exception.without_gate {
                None => true,
                Some(gate) => {
                    let by_default = gate.on_since.as_ref().is_some_and(|on| version >= *on);
                    let gates = facts.gates.value();
                    let known = gates.and_then(|gates| gates.get(&gate.name)).copied();
                    if known.is_none() {
                        let state = if by_default { "on" } else { "off" };
                        presumed = Some(format!(
                            "feature gate {} is {state}, as by default in {}.{}; the server did \
                             not say",
                            gate.name, version.major, version.minor
                        ));
                    }
                    !known.unwrap_or(by_default)
                }
            };
            if applies {
                // A skip by version alone depends on nothing that an earlier exception presumed
                let premise = presumed
                    .clone()
                    .filter(|_| exception.without_gate.is_some());
                return match (&exception.then, premise) {
                    (Then::Skip(reason), None) => Err(Disposition::Skip(SkipReason::Version {
                        reason: reason.clone(),
                    })),
                    // A presumption is no reason for a skip
                    (Then::Skip(reason), Some(presumed)) => {
                        let (kind, why) = unknown_gates(facts);
                        let detail = format!("{reason}, if {presumed}{why}");
                        Err(Disposition::Inconclusive(kind.error(detail)))
                    }
                    (Then::Expect(expectation), _) => Ok(Self {
                        instead: Some(expectation.clone()),
                        presumed,
                    }),
                };
            }
        }
        Ok(Self {
            instead: None,
            presumed,
        })
    }
}

/// Reads a list of exceptions; problems are reported to the decoder.
pub(super) fn read_exceptions(decoder: &mut Decoder<'_>, node: &Node) -> Option<Vec<Exception>> {
    decoder.each(node, "`except`", read_exception)
}

fn read_exception(decoder: &mut Decoder<'_>, node: &Node) -> Option<Exception> {
    let mut fields = decoder.fields(node, "an exception")?;
    let kubernetes = fields.range(decoder, "kubernetes");
    let workload = fields.maybe(decoder, "workload", |decoder, node| {
        decoder.member(node, "workload", Workload::ALL)
    });
    let [with, without] = ["with", "without"].map(|key| {
        fields.maybe(decoder, key, |decoder, node| {
            decoder.member(node, "part", ClusterPart::ALL)
        })
    });
    let name = fields.maybe(decoder, "without-gate", |decoder, node| {
        decoder.text(node, "`without-gate`").map(str::to_owned)
    });
    let on_since = fields.maybe(decoder, "on-since", read_version);
    let skip = fields.optional("skip");
    let expectation = fields.optional("expect");
    fields.finish(decoder);
    let then = match (skip, expectation) {
        (Some(node), None) => decoder
            .text(node, "`skip`")
            .map(|text| Then::Skip(text.to_owned())),
        (None, Some(node)) => read_expectation(decoder, node).map(Then::Expect),
        (Some(_), Some(_)) | (None, None) => {
            let message = "an exception has either `skip` or `expect`";
            decoder.fail(node, message, None)
        }
    };
    let (name, on_since) = (name?, on_since?);
    if name.is_none() && on_since.is_some() {
        let hint = "add `without-gate`, or remove it".to_owned();
        return decoder.fail(node, "`on-since` is of no gate", Some(hint));
    }
    Some(Exception {
        kubernetes: kubernetes?,
        workload: workload?,
        with: with?,
        without: without?,
        without_gate: name.map(|name| Gate { name, on_since }),
        then: then?,
    })
}

fn read_version(decoder: &mut Decoder<'_>, node: &Node) -> Option<Version> {
    let is_not = ("is not a version", Some("as in \"1.33\""));
    decoder.parsed(node, "`on-since`", is_not, |text| {
        Version::parse(&format!("{text}.0")).ok()
    })
}

/// Reads the query; the axes of the case fill in the rest.
pub(super) fn read_query(decoder: &mut Decoder<'_>, node: &Node) -> Option<AdmissionQuery> {
    let mut fields = decoder.fields(node, "an admission `ask`")?;
    let os = fields.optional("os");
    let os_name = fields.optional("os-name");
    let with = fields.or(decoder, "with", json!({}), |decoder, node| {
        decoder.entries(node, "`with`").map(|_| node.to_json())
    });
    let field = fields.read(decoder, "field", read_field);
    let value = fields.optional("value");
    let resize = fields.optional("resize");
    fields.finish(decoder);
    let os = match (os, os_name) {
        (None, None) => Some(None),
        (Some(node), None) => decoder
            .member(node, "os", Os::ALL)
            .map(|os| Some(os.as_str().to_owned())),
        // Any text, even empty: the case is about its refusal
        (None, Some(node)) => match &node.value {
            Value::Text(text) => Some(Some(text.clone())),
            _ => decoder.fail(node, "`os-name` must be text", None),
        },
        (Some(_), Some(node)) => {
            let hint = "`os` is one of Kubernetes', `os-name` any text".to_owned();
            decoder.fail(node, "there is an `os` already", Some(hint))
        }
    };
    let change = match resize {
        None => Some(Change::Create),
        Some(node) if node.value == Value::Bool(true) => Some(Change::Resize),
        Some(node) => decoder.fail(node, "`resize` is true, or left out", None),
    };
    Some(AdmissionQuery {
        os: os?,
        workload: Workload::Pod,
        container: ContainerKind::Container,
        change: change?,
        with: with?,
        field: field?,
        value: value.map(Node::to_json),
    })
}

/// A field as in a pod or in a container.
fn read_field(decoder: &mut Decoder<'_>, node: &Node) -> Option<String> {
    let plain = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric());
    let hint = Some("as in spec.hostPID or container.securityContext.privileged");
    decoder.parsed(node, "`field`", ("is not a field of a pod", hint), |text| {
        let mut parts = text.split('.');
        let begins = matches!(parts.next(), Some("spec" | "container"));
        (begins && parts.all(plain)).then(|| text.to_owned())
    })
}

pub(super) fn read_expectation(
    decoder: &mut Decoder<'_>,
    node: &Node,
) -> Option<AdmissionExpectation> {
    let known = ["refused", "accepted", "dropped", "denied"];
    let entry = decoder.tagged(node, "expectation", &known)?;
    let mut fields = decoder.fields(&entry.node, "the expectation")?;
    if entry.key == "denied" {
        let by = fields.text(decoder, "by");
        fields.finish(decoder);
        return by.map(|by| AdmissionExpectation::Denied { by });
    }
    if entry.key != "refused" {
        fields.finish(decoder);
        return Some(match entry.key.as_str() {
            "accepted" => AdmissionExpectation::Accepted,
            _ => AdmissionExpectation::Dropped,
        });
    }
    let reason = fields.text(decoder, "reason");
    let field = fields.maybe(decoder, "field", |decoder, node| match &node.value {
        // What the server names where no field is at fault (apimachinery `field.NewPath("")`)
        Value::Text(text) if text == "[]" => Some(text.clone()),
        _ => read_field(decoder, node),
    });
    fields.finish(decoder);
    Some(AdmissionExpectation::Refused {
        reason: reason?,
        field: field?,
    })
}

/// The values of a case's axis `value`, by name.
pub(super) fn read_values(
    decoder: &mut Decoder<'_>,
    node: &Node,
) -> Option<BTreeMap<String, Json>> {
    let Value::Map(entries) = &node.value else {
        let hint = "as in {unset: null, all: [ALL]}".to_owned();
        let message = "`value` must be a mapping of names to values";
        return decoder.fail(node, message, Some(hint));
    };
    let mut values = BTreeMap::new();
    for entry in entries {
        let valid = entry
            .key
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !valid || entry.key.is_empty() {
            let message = format!("`{}` is not a name", entry.key);
            return decoder.fail(&entry.node, message, Some("a-z, 0-9 and -".to_owned()));
        }
        values.insert(entry.key.clone(), entry.node.to_json());
    }
    Some(values)
}
