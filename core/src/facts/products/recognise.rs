//! Recognises products by their signs.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::super::network::{Cni, CniMode, Vxlan};
use super::rules::{ConfigMapRule, DaemonSetRule, Kind, Rule, Rules, Sign};
use super::signs::{DaemonSetSign, Signs};
use crate::claims::matches;
use crate::text::printable;

/// A product with the signs of it that were seen.
struct Found<'r> {
    rule: &'r Rule,
    signs: Vec<String>,
}

impl Rules {
    /// The network plugin; `None` when there is no sign of any. The error says why none can be
    /// named: signs of two, or what could not be read.
    pub fn cni(&self, signs: &Signs) -> Result<Option<Cni>, String> {
        let Some(product) = self.one(Kind::Cni, signs)? else {
            return Ok(None);
        };
        let mut unread = Vec::new();
        let mut seen = |sign: &Sign| {
            look(sign, signs).unwrap_or_else(|why| {
                note(&mut unread, why);
                None
            })
        };
        let mut held = product.signs;
        let mut mode = None;
        for one in &product.rule.modes {
            if let Some(what) = seen(&one.when) {
                held.push(what);
                mode = Some(one.mode);
                break;
            }
        }
        // Some plugins write a VNI whatever the mode
        let overlay = mode == Some(CniMode::Overlay);
        let mut places = product.rule.vxlan.iter().filter(|_| overlay);
        let vxlan = places.find(|at| seen(&at.when).is_some());
        let vxlan = vxlan.map(|at| {
            let number = |place: &Option<String>| number(&at.when, place.as_deref()?, signs);
            Vxlan {
                vni: number(&at.vni).and_then(|n| u32::try_from(n).ok()),
                port: number(&at.port).and_then(|n| u16::try_from(n).ok()),
            }
        });
        held.dedup();
        Ok(Some(Cni {
            product: product.rule.product.clone(),
            mode,
            vxlan,
            signs: held,
            unread,
        }))
    }

    /// Who provisioned the cluster; `None` and errors as with [`Rules::cni`].
    pub fn provider(&self, signs: &Signs) -> Result<Option<String>, String> {
        let product = self.one(Kind::Provider, signs)?;
        Ok(product.map(|product| product.rule.product.clone()))
    }

    /// The load balancers that have signs, and what could not be read.
    pub fn load_balancers(&self, signs: &Signs) -> (Vec<String>, Vec<String>) {
        let (products, unread) = self.all(Kind::LoadBalancer, signs);
        let names = products.iter().map(|product| product.rule.product.clone());
        (names.collect(), unread)
    }

    fn one(&self, kind: Kind, signs: &Signs) -> Result<Option<Found<'_>>, String> {
        let (mut products, unread) = self.all(kind, signs);
        match products.len() {
            0 if unread.is_empty() => Ok(None),
            0 => Err(unread.join("; ")),
            1 => Ok(products.pop()),
            _ => {
                let each = products.iter().map(|product| {
                    let signs = product.signs.join(", ");
                    format!("{} ({signs})", product.rule.product)
                });
                let each: Vec<_> = each.collect();
                Err(format!("signs of several: {}", each.join("; ")))
            }
        }
    }

    /// Every product of a kind with signs of it, and what could not be read.
    fn all(&self, kind: Kind, signs: &Signs) -> (Vec<Found<'_>>, Vec<String>) {
        let (mut products, mut unread) = (Vec::new(), Vec::new());
        for rule in self.products.iter().filter(|rule| rule.kind == kind) {
            let mut seen = Vec::new();
            for sign in &rule.signs {
                match look(sign, signs) {
                    Ok(what) => seen.extend(what),
                    Err(why) => note(&mut unread, why),
                }
            }
            if seen.is_empty() {
                continue;
            }
            let mut excluded = false;
            for sign in &rule.unless {
                match look(sign, signs) {
                    Ok(what) => excluded |= what.is_some(),
                    Err(why) => {
                        note(&mut unread, why);
                        excluded = true;
                    }
                }
            }
            if !excluded {
                products.push(Found { rule, signs: seen });
            }
        }
        (products, unread)
    }
}

fn note(unread: &mut Vec<String>, why: &str) {
    if !unread.iter().any(|known| known == why) {
        unread.push(why.to_owned());
    }
}

/// The object of a sign and what it held, if the sign is there; the error is why it could not be read.
fn look<'s>(sign: &Sign, signs: &'s Signs) -> Result<Option<String>, &'s String> {
    let what = match sign {
        Sign::Version(pattern) => {
            let version = signs.version.as_ref()?;
            matches(pattern, version).then(|| format!("version {version}"))
        }
        Sign::ApiGroup(group) => {
            let there = signs.groups.as_ref()?.contains(group);
            there.then(|| format!("API group {group}"))
        }
        Sign::NodeLabel(wanted) => {
            let (key, pattern) = wanted.split_once('=').unwrap_or((wanted, "*"));
            let value = signs.nodes.as_ref()?.labels.get(key);
            let value = value.filter(|value| matches(pattern, value));
            value.map(|value| format!("node label {key}={value}"))
        }
        Sign::NodeAnnotation(key) => {
            let there = signs.nodes.as_ref()?.annotations.contains(key);
            there.then(|| format!("node annotation {key}"))
        }
        Sign::DaemonSet(rule) => {
            let mut sets = signs.daemon_sets.as_ref()?.iter();
            sets.find_map(|set| daemon_set(rule, set))
        }
        Sign::ConfigMap(rule) => {
            let data = signs.config_map(&rule.namespace, &rule.name)?;
            data.and_then(|data| config_map(rule, data))
        }
    };
    Ok(what.map(|what| printable(&what)))
}

/// The DaemonSet and what a rule asks of it, if it has all of that.
fn daemon_set(rule: &DaemonSetRule, set: &DaemonSetSign) -> Option<String> {
    let mut what = format!("DaemonSet {}", set.path());
    let is = |pattern: &Option<String>, text: &str| {
        pattern
            .as_ref()
            .is_none_or(|pattern| matches(pattern, text))
    };
    if !is(&rule.namespace, &set.namespace) || !is(&rule.name, &set.name) {
        return None;
    }
    if let Some(pattern) = &rule.image {
        let image = set.images.iter().find(|image| matches(pattern, image))?;
        what.push_str(&format!(" with image {image}"));
    }
    if let Some(label) = &rule.label {
        let (key, pattern) = label.split_once('=').unwrap_or((label, "*"));
        let value = set
            .labels
            .get(key)
            .filter(|value| matches(pattern, value))?;
        what.push_str(&format!(" with label {key}={value}"));
    }
    if let Some(env) = &rule.env {
        let (name, pattern) = env.split_once('=').unwrap_or((env, "*"));
        let mut of_name = set.env.iter().filter(|(key, _)| key == name);
        let (_, value) = of_name.find(|(_, value)| matches(pattern, value))?;
        what.push_str(&format!(" with {name}={value}"));
    }
    Some(what)
}

/// The ConfigMap and what a rule asks of it, if it has that.
fn config_map(rule: &ConfigMapRule, data: &BTreeMap<String, String>) -> Option<String> {
    let mut what = format!("ConfigMap {}/{}", rule.namespace, rule.name);
    let Some(key) = &rule.key else {
        return Some(what);
    };
    let text = data.get(key)?;
    what.push_str(&format!(" with {key}"));
    let held = match &rule.at {
        None => text.trim().to_owned(),
        Some(at) => {
            what.push_str(at);
            scalar(document(text)?.pointer(at)?)?
        }
    };
    if let Some(pattern) = &rule.value {
        if !matches(pattern, &held) {
            return None;
        }
        what.push_str(&format!(" {held}"));
    }
    Some(what)
}

/// The number at a place in the object that a sign names.
fn number(sign: &Sign, place: &str, signs: &Signs) -> Option<u64> {
    match sign {
        Sign::ConfigMap(rule) => {
            let data = signs.config_map(&rule.namespace, &rule.name).ok()??;
            let value = document(data.get(rule.key.as_ref()?)?)?;
            value.pointer(place)?.as_u64()
        }
        Sign::DaemonSet(rule) => {
            let sets = signs.daemon_sets.as_ref().ok()?;
            let set = sets.iter().find(|set| daemon_set(rule, set).is_some())?;
            let (_, value) = set.env.iter().find(|(name, _)| name == place)?;
            value.parse().ok()
        }
        _ => None,
    }
}

/// Reads JSON or YAML: configurations come as either.
pub(super) fn document(text: &str) -> Option<Json> {
    let json = serde_json::from_str(text).ok();
    json.or_else(|| Some(crate::document::parse("", text).ok()?.to_json()))
}

fn scalar(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(_) | Json::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("*", "abc"),
            ("a*", "a"),
            ("*c", "abc"),
            ("a*b*c", "a-b-b-c"),
            ("*-eks-*", "v1.33.5-eks-113cf36"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*a", "a"), ("*b", "abc"), ("a*b*c", "a-c")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn configurations_are_json_or_yaml() {
        for text in ["{\"a\": {\"b\": 4096}}", "# of an agent\na:\n  b: 4096\n"] {
            let value = document(text).expect("a document");
            assert_eq!(value.pointer("/a/b").and_then(Json::as_u64), Some(4096));
        }
        assert_eq!(
            document("a: [").and_then(|v| v.as_str().map(str::to_owned)),
            None
        );
    }
}
