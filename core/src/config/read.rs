//! Reads a config file: what is valid of it, and all of its problems.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::Date;
use sha2::{Digest, Sha256};

use super::allowed::Allowed;
use super::duration::{parse_duration, shown};
use super::profile::Profile;
use super::waiver::Waiver;
use super::written::{WrittenDurations, WrittenFixtures, WrittenLimits};
use super::{Config, Durations, Limits, images, nodes, outside};
use crate::claims::{Pattern, read_pattern};
use crate::document::{Decoder, Diagnostic, Fields, Node, Placed, Value, hexadecimal, parse};
use crate::text::is_dns_subdomain;

/// Reads a config file: keeps what is valid and reports the rest to `found`. It reports an empty file, since
/// a template with a mistyped name of a value gives one.
pub fn read(file: &str, text: &str, found: &mut Vec<Diagnostic>) -> Config {
    let digest = Some(hexadecimal(Sha256::digest(text)));
    let root = match parse(file, text) {
        Ok(root) => root,
        Err(error) => {
            found.push(error);
            return Config::default();
        }
    };
    let mut decoder = Decoder::new(file);
    let config = match &root.value {
        Value::Null => {
            let hint = "`winconform config example` prints one".to_owned();
            decoder.report(&root, "the configuration is empty", Some(hint));
            Config::default()
        }
        _ => read_root(&mut decoder, &root),
    };
    found.extend(decoder.finish());
    Config { digest, ..config }
}

fn read_root(decoder: &mut Decoder<'_>, root: &Node) -> Config {
    let Some(mut fields) = decoder.fields(root, "the configuration") else {
        return Config::default();
    };
    let profile = fields.filled("profile");
    let images = section(decoder, &mut fields, "images", images::read);
    let nodes = section(decoder, &mut fields, "nodes", nodes::read);
    let fixtures = section(decoder, &mut fields, "fixtures", read_fixtures);
    let outside = section(decoder, &mut fields, "outside", outside::read);
    let durations = fields.filled("durations");
    let mut valid = Config {
        profile: profile
            .and_then(|node| decoder.member(node, "profile", Profile::ALL))
            .unwrap_or_default(),
        images,
        nodes,
        runtime_class: fixtures.runtime_class,
        outside,
        allow: section(decoder, &mut fields, "allow", read_allowed),
        durations: durations
            .and_then(|node| read_durations(decoder, node))
            .unwrap_or_default(),
        limits: section(decoder, &mut fields, "limits", read_limits),
        protected: section(decoder, &mut fields, "protected", read_protected),
        select: section(decoder, &mut fields, "select", read_select),
        waivers: section(decoder, &mut fields, "waivers", read_waivers),
        ..Config::default()
    };
    fields.finish(decoder);
    if let Some(node) = profile
        && valid.profile.is_air_gapped()
    {
        valid.public = public(decoder, node, &valid);
    }
    if let Some(node) = durations
        && valid.durations.http_connect >= valid.durations.http_total
    {
        let (connect, total) = (valid.durations.http_connect, valid.durations.http_total);
        let message = format!(
            "`http-connect` is {}, which leaves nothing of `http-total`, {}",
            shown(connect),
            shown(total)
        );
        let hint = "a transfer takes longer than its connection".to_owned();
        decoder.report(node, message, Some(hint));
    }
    valid
}

/// What is written in a section; a missing section is the same as an empty one.
fn section<T: Default>(
    decoder: &mut Decoder<'_>,
    fields: &mut Fields<'_>,
    key: &'static str,
    read: fn(&mut Decoder<'_>, &Node) -> Option<T>,
) -> T {
    fields.set(decoder, key, read).unwrap_or_default()
}

fn public(decoder: &Decoder<'_>, node: &Node, config: &Config) -> Option<Diagnostic> {
    let public = config.images.public();
    if public.is_empty() {
        return None;
    }
    let public: Vec<_> = public.into_iter().map(|name| format!("`{name}`")).collect();
    let message = format!(
        "with profile `{}` no image may come from a public registry: {}",
        config.profile,
        public.join(", ")
    );
    let hint = "set `images.mirror` to where your copies are, or name each image".to_owned();
    Some(decoder.place(node).problem(message, Some(hint)))
}

/// Reads the name of an object of a kind.
pub(super) fn read_object_name(
    decoder: &mut Decoder<'_>,
    node: &Node,
    what: &str,
    kind: &str,
) -> Option<String> {
    let is_not = format!("cannot be the name of {kind}");
    let hint = Some("labels of a-z, 0-9 and -, with dots between them");
    decoder.parsed(node, what, (is_not.as_str(), hint), |text| {
        is_dns_subdomain(text).then(|| text.to_owned())
    })
}

fn read_fixtures(decoder: &mut Decoder<'_>, node: &Node) -> Option<WrittenFixtures> {
    let mut fields = decoder.fields(node, "`fixtures`")?;
    let class = fields.filled("runtime-class");
    let runtime_class = class.and_then(|node| {
        let value = read_object_name(decoder, node, "`runtime-class`", "a RuntimeClass")?;
        let at = decoder.place(node);
        Some(Placed { value, at })
    });
    fields.finish(decoder);
    Some(WrittenFixtures { runtime_class })
}

fn read_durations(decoder: &mut Decoder<'_>, node: &Node) -> Option<Durations> {
    let mut fields = decoder.fields(node, "`durations`")?;
    let mut read = |key, bounds| read_duration(decoder, &mut fields, key, bounds);
    let set = WrittenDurations {
        api_answer: read("api-answer", (1, 60)),
        http_connect: read("http-connect", (3, 20)),
        http_total: read("http-total", (4, 25)),
        fixture: read("fixture", (10, 3 * 3600)),
        unscheduled: read("unscheduled", (5, 3600)),
        converge: read("converge", (1, 30 * 60)),
        tear_down: read("tear-down", (10, 3600)),
    };
    fields.finish(decoder);
    let mut durations = Durations::default();
    for (place, value) in [
        (&mut durations.http_connect, set.http_connect),
        (&mut durations.http_total, set.http_total),
        (&mut durations.fixture, set.fixture),
        (&mut durations.unscheduled, set.unscheduled),
        (&mut durations.converge, set.converge),
        (&mut durations.tear_down, set.tear_down),
    ] {
        *place = value.unwrap_or(*place);
    }
    if set.tear_down.is_some() {
        durations.tear_down_of_pod = Duration::ZERO;
    }
    if let Some(answer) = set.api_answer {
        durations = durations.answered_within(answer);
    }
    Some(durations)
}

/// A duration within bounds in seconds.
fn read_duration(
    decoder: &mut Decoder<'_>,
    fields: &mut Fields<'_>,
    key: &'static str,
    (least, most): (u64, u64),
) -> Option<Duration> {
    let node = fields.filled(key)?;
    if let Value::Int(_) | Value::Float(_) = node.value {
        let hint = "with its unit: `30s`, `20m` or `1h 30m`".to_owned();
        let message = format!("`{key}` is a number without a unit");
        return decoder.fail(node, message, Some(hint));
    }
    let text = decoder.text(node, &format!("`{key}`"))?;
    let (least, most) = (Duration::from_secs(least), Duration::from_secs(most));
    match parse_duration(text) {
        Ok(duration) if (least..=most).contains(&duration) => Some(duration),
        Ok(duration) => {
            let message = format!("`{key}` is {}", shown(duration));
            let hint = format!("from {} to {}", shown(least), shown(most));
            decoder.fail(node, message, Some(hint))
        }
        Err(error) => {
            let message = format!("`{key}` is `{text}`, which is not a duration");
            decoder.fail(node, message, Some(error.to_owned()))
        }
    }
}

fn read_limits(decoder: &mut Decoder<'_>, node: &Node) -> Option<Limits> {
    let mut fields = decoder.fields(node, "`limits`")?;
    let mut read = |key, (least, most)| {
        let node = fields.filled(key)?;
        decoder.whole(node, &format!("`{key}`"), (least, most))
    };
    let set = WrittenLimits {
        api_in_flight: read("api-in-flight", (1, 256)),
        attempts: read("attempts", (1, 10)),
        hold_rounds: read("hold-rounds", (1, 20)),
        nodes_observed_from: read("nodes-observed-from", (2, 64)),
    };
    fields.finish(decoder);
    let mut limits = Limits::default();
    if let Some(in_flight) = set.api_in_flight {
        limits.api_in_flight = in_flight as usize;
    }
    limits.attempts = set.attempts.unwrap_or(limits.attempts);
    limits.hold_rounds = set.hold_rounds.unwrap_or(limits.hold_rounds);
    if let Some(nodes) = set.nodes_observed_from {
        limits.nodes_observed_from = nodes as usize;
    }
    Some(limits)
}

fn read_allowed(decoder: &mut Decoder<'_>, node: &Node) -> Option<BTreeSet<Allowed>> {
    let allowed = decoder.kept(node, "`allow`", |decoder, item| {
        decoder.member(item, "word of `allow`", Allowed::ALL)
    });
    allowed.map(|allowed| allowed.into_iter().collect())
}

fn read_protected(decoder: &mut Decoder<'_>, node: &Node) -> Option<Vec<String>> {
    decoder.kept(node, "`protected`", |decoder, item| {
        let name = decoder.text(item, "a context or cluster that is protected")?;
        Some(name.to_owned())
    })
}

fn read_select(decoder: &mut Decoder<'_>, node: &Node) -> Option<Vec<Placed<String>>> {
    decoder.kept(node, "`select`", |decoder, item| {
        let value = decoder.text(item, "what is selected")?.to_owned();
        let at = decoder.place(item);
        Some(Placed { value, at })
    })
}

fn read_waivers(decoder: &mut Decoder<'_>, node: &Node) -> Option<Vec<Placed<Waiver>>> {
    let items = decoder.list(node, "`waivers`")?;
    let mut waivers = Vec::<Placed<Waiver>>::with_capacity(items.len());
    for item in items {
        let at = decoder.place(item);
        let Some(value) = read_waiver(decoder, item) else {
            continue;
        };
        if waivers.iter().any(|other| other.value.check == value.check) {
            let message = format!("a second waiver of `{}`", value.check);
            decoder.report(item, message, Some("merge the two waivers".to_owned()));
        }
        waivers.push(Placed { value, at });
    }
    Some(waivers)
}

fn read_waiver(decoder: &mut Decoder<'_>, node: &Node) -> Option<Waiver> {
    let mut fields = decoder.fields(node, "a waiver")?;
    let check = fields.read(decoder, "check", read_waived);
    let reason = fields.text(decoder, "reason");
    let owner = fields.text(decoder, "owner");
    let expires = fields.read(decoder, "expires", read_date);
    fields.finish(decoder);
    Some(Waiver {
        check: check?,
        reason: reason?,
        owner: owner?,
        expires: expires?,
    })
}

fn read_waived(decoder: &mut Decoder<'_>, node: &Node) -> Option<Pattern> {
    let pattern = read_pattern(decoder, node, "`check`")?;
    if pattern.is_everything() {
        let hint = "name the claim or the check that is known to fail".to_owned();
        let message = format!("`{}` would waive every failure", pattern.as_str());
        return decoder.fail(node, message, Some(hint));
    }
    Some(pattern)
}

fn read_date(decoder: &mut Decoder<'_>, node: &Node) -> Option<Date> {
    let hint = Some("as YYYY-MM-DD: the last day it applies, such as 2027-03-31");
    decoder.parsed(node, "`expires`", ("is not a date", hint), |text| {
        // `parse` takes other forms of ISO 8601, too, some of them with a time of day
        (text.len() == 10).then(|| text.parse().ok()).flatten()
    })
}
