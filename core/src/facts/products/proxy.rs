//! What is known of kube-proxy, from ConfigMaps and DaemonSets.

use super::super::cluster::Os;
use super::super::network::KubeProxy;
use super::recognise::document;
use super::signs::{DaemonSetSign, Signs};
use crate::text::printable;

/// ConfigMaps with a `KubeProxyConfiguration` in kube-system: kubeadm's, EKS' and one for Windows
/// nodes alone, each with its key.
pub const PROXY_CONFIG_MAPS: [(&str, &str); 3] = [
    ("kube-proxy", "config.conf"),
    ("kube-proxy-config", "config"),
    ("kube-proxy-windows", "config.conf"),
];

/// What is known of kube-proxy; `None` when there is no sign of it. The error says what could not be read
/// when there is no other sign.
///
/// The configuration of kubeadm is shared by both operating systems and holds every default, so
/// that `enableDSR: false` there says nothing of Windows, where start scripts pass flags.
pub fn kube_proxy(signs: &Signs) -> Result<Option<KubeProxy>, String> {
    let mut proxy = KubeProxy {
        linux_mode: None,
        windows_mode: None,
        dsr: None,
        signs: Vec::new(),
        unread: Vec::new(),
    };
    match &signs.daemon_sets {
        Err(why) => proxy.unread.push(why.clone()),
        Ok(sets) => sets.iter().for_each(|set| daemon_set(&mut proxy, set)),
    }
    for (name, key) in PROXY_CONFIG_MAPS {
        let data = match signs.config_map("kube-system", name) {
            Ok(None) => continue,
            Ok(Some(data)) => data,
            Err(why) => {
                proxy.unread.push(why.clone());
                continue;
            }
        };
        proxy.signs.push(format!("ConfigMap kube-system/{name}"));
        match data.get(key).and_then(|text| document(text)) {
            None => proxy.unread.push(format!(
                "ConfigMap kube-system/{name} has no readable {key}"
            )),
            Some(written) => configuration(&mut proxy, name, &written),
        }
    }
    if proxy.signs.is_empty() {
        return match proxy.unread.is_empty() {
            true => Ok(None),
            false => Err(proxy.unread.join("; ")),
        };
    }
    Ok(Some(proxy))
}

fn daemon_set(proxy: &mut KubeProxy, set: &DaemonSetSign) {
    // AKS prepares nodes with a DaemonSet of a similar name and another image
    if !set.images.iter().any(|image| image.contains("kube-proxy")) {
        return;
    }
    let of = if set.os == Some(Os::Windows) {
        " for Windows nodes"
    } else {
        ""
    };
    proxy
        .signs
        .push(printable(&format!("DaemonSet {}{of}", set.path())));
    let args = set.args.join(" ");
    let mode = flag(&args, "--proxy-mode").filter(|mode| !mode.is_empty());
    if set.os == Some(Os::Windows) {
        proxy.windows_mode = mode.or(proxy.windows_mode.take());
        let dsr = flag(&args, "--enable-dsr").map(|value| value != "false");
        proxy.dsr = dsr.or(proxy.dsr);
    } else {
        proxy.linux_mode = mode.or(proxy.linux_mode.take());
    }
}

fn configuration(proxy: &mut KubeProxy, name: &str, written: &serde_json::Value) {
    let mode = written["mode"].as_str().filter(|mode| !mode.is_empty());
    let mode = mode.map(printable);
    let dsr = written["winkernel"]["enableDSR"].as_bool();
    if name == "kube-proxy-windows" {
        proxy.windows_mode = proxy.windows_mode.take().or(mode);
        proxy.dsr = proxy.dsr.or(dsr);
    } else {
        proxy.linux_mode = proxy.linux_mode.take().or(mode);
        proxy.dsr = proxy.dsr.or(dsr.filter(|on| *on));
    }
}

/// The value of a flag among arguments or within a script; empty for a flag without a value.
fn flag(args: &str, name: &str) -> Option<String> {
    let (_, rest) = args.split_once(name)?;
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '`' | ';');
    let value = match rest.chars().next() {
        Some('=') => &rest[1..],
        Some(' ') if !rest.trim_start().starts_with('-') => rest.trim_start(),
        None | Some(' ') => "",
        Some(c) if ends(c) => "",
        // Another flag with this prefix
        Some(_) => return None,
    };
    Some(printable(value.split(ends).next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::super::ConfigMapSign;
    use super::*;

    fn signs(sets: &[serde_json::Value], maps: &[(&str, &str, &str)]) -> Signs {
        let maps = maps.iter().map(|(name, key, text)| {
            let data = BTreeMap::from([((*key).to_owned(), (*text).to_owned())]);
            ConfigMapSign {
                namespace: "kube-system".to_owned(),
                name: (*name).to_owned(),
                data: Ok(Some(data)),
            }
        });
        Signs {
            version: Ok(String::new()),
            groups: Ok([].into()),
            daemon_sets: Ok(sets.iter().map(DaemonSetSign::read).collect()),
            nodes: Ok(super::super::NodeSigns::default()),
            config_maps: maps.collect(),
        }
    }

    fn set(name: &str, args: &[&str], os: &str) -> serde_json::Value {
        json!({"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"template": {"spec": {
            "nodeSelector": {"kubernetes.io/os": os},
            "containers": [{"image": "registry.k8s.io/kube-proxy:v1.37.0", "args": args}]}}}})
    }

    #[test]
    fn arguments_of_windows_pods_go_before_what_both_systems_share() {
        let sets = [
            set(
                "kube-proxy",
                &["--config=/var/lib/kube-proxy/config.conf"],
                "linux",
            ),
            set(
                "kube-proxy-windows",
                &["--proxy-mode=kernelspace", "--enable-dsr=true"],
                "windows",
            ),
        ];
        let shared = "mode: nftables\nwinkernel:\n  enableDSR: false\n";
        let proxy = kube_proxy(&signs(&sets, &[("kube-proxy", "config.conf", shared)]));
        let proxy = proxy.expect("readable").expect("there");
        assert_eq!(proxy.linux_mode.as_deref(), Some("nftables"));
        assert_eq!(proxy.windows_mode.as_deref(), Some("kernelspace"));
        assert_eq!((proxy.dsr, proxy.signs.len()), (Some(true), 3));
    }

    #[test]
    fn a_default_in_the_shared_configuration_says_nothing_of_windows() {
        let of = |text: &str| {
            let signs = signs(&[], &[("kube-proxy", "config.conf", text)]);
            kube_proxy(&signs).expect("readable").expect("there")
        };
        let proxy = of("mode: \"\"\nwinkernel:\n  enableDSR: false\n");
        assert_eq!((proxy.linux_mode, proxy.dsr), (None, None));
        assert_eq!(of("winkernel:\n  enableDSR: true\n").dsr, Some(true));
        assert_eq!(of("mode: [").unread.len(), 1);
    }

    #[test]
    fn no_sign_and_nothing_readable_are_told_apart() {
        assert_eq!(kube_proxy(&signs(&[], &[])), Ok(None));
        let mut unread = signs(&[], &[]);
        unread.daemon_sets = Err("/apis/apps/v1/daemonsets: status 403".to_owned());
        assert_eq!(
            kube_proxy(&unread),
            Err("/apis/apps/v1/daemonsets: status 403".to_owned())
        );
    }

    #[test]
    fn flags_are_read_from_arguments_and_scripts() {
        assert_eq!(
            flag("--proxy-mode ipvs --v=2", "--proxy-mode").as_deref(),
            Some("ipvs")
        );
        assert_eq!(
            flag("x \"--proxy-mode=ipvs\",`", "--proxy-mode").as_deref(),
            Some("ipvs")
        );
        assert_eq!(
            flag("--enable-dsr --v=2", "--enable-dsr").as_deref(),
            Some("")
        );
        assert_eq!(flag("--enable-dsr-x=1", "--enable-dsr"), None);
    }
}
