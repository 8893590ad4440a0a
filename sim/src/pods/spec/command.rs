//! A container's command line, from its spec and its image.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Container;

use crate::nodes::image::Family;
use crate::topology::Os;

/// Builds a container's command line: from its spec, or else from its image.
pub(crate) fn command_line(
    spec: &Container,
    family: Family,
    os: Os,
    env: &BTreeMap<String, String>,
) -> Vec<String> {
    let set = |list: &Option<Vec<String>>| list.clone().filter(|list| !list.is_empty());
    let (entry, default): (&[&str], &[&str]) = match (family, os) {
        (Family::Agnhost, _) => (&["/agnhost"], &["pause"]),
        (Family::Iis, _) => (&["C:\\ServiceMonitor.exe", "w3svc"], &[]),
        (Family::Servercore | Family::Nanoserver, _) => (&[], &["c:\\windows\\system32\\cmd.exe"]),
        (Family::Busybox, _) => (&[], &["sh", "-c", ":"]),
        (Family::Pause, _) => (&["/pause"], &[]),
        (Family::HostProcessBase, _) => (&[], &[]),
        (Family::Component, _) => (&["component"], &[]),
    };
    let words = |list: &[&str]| {
        list.iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let (mut line, args) = match (set(&spec.command), set(&spec.args)) {
        (Some(command), args) => (command, args.unwrap_or_default()),
        (None, Some(args)) => (words(entry), args),
        (None, None) => (words(entry), words(default)),
    };
    line.extend(args);
    line.iter()
        .map(|word| expanded(word, |name| env.get(name).cloned()))
        .collect()
}

/// Kubernetes, `third_party/forked/golang/expansion`: `$(NAME)` expands where NAME is known, `$$`
/// is one `$`.
pub(crate) fn expanded(word: &str, known: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) =
            rest.strip_prefix('(').and_then(|name| name.split_once(')'))
        {
            match known(name) {
                Some(value) => out.push_str(&value),
                None => out.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_un_escaped_as_the_kubelet_does() {
        let known = |name: &str| (name == "A").then(|| "1".to_owned());
        assert_eq!(
            expanded("$$listener $(A) $(B) $ $", known),
            "$listener 1 $(B) $ $"
        );
        assert_eq!(expanded("$$(A)", known), "$(A)");
        assert_eq!(expanded("$(", known), "$(");
    }

    #[test]
    fn own_words_replace_the_images() {
        let line = |json: serde_json::Value| {
            let spec: Container = serde_json::from_value(json).expect("a container");
            command_line(&spec, Family::Agnhost, Os::Linux, &BTreeMap::new())
        };
        assert_eq!(
            line(serde_json::json!({"name": "a"})),
            ["/agnhost", "pause"]
        );
        assert_eq!(
            line(serde_json::json!({"name": "a", "args": ["netexec"]})),
            ["/agnhost", "netexec"]
        );
        assert_eq!(
            line(serde_json::json!({"name": "a", "command": ["sh"]})),
            ["sh"]
        );
    }
}
