//! The cluster's DNS suffix, as the kubelet gave it to a Linux pod: `cluster.local` is usual and
//! never assumed.

use winconform_core::command::Command;
use winconform_core::facts::Os;
use winconform_core::method::{ErrorKind, ExecReply, ExitStatus, FixtureName, Result};

use super::fixtures::Fixtures;
use super::manifest;
use crate::transport::{Api, PodRef};

impl Fixtures {
    /// The cluster's DNS suffix, once the prober in a Linux pod can tell it; asked for once.
    pub(super) async fn domain(&self) -> Result<Option<String>> {
        let key = FixtureName::LinuxPodProber.at(None);
        self.clone().wait_for_pods(&key, &[], 1).await?;
        let mut domain = self.domain.lock().await;
        if domain.is_none() {
            let pod = PodRef {
                namespace: manifest::namespace(&self.run),
                name: manifest::name("prober", &key),
                container: "prober".to_owned(),
            };
            *domain = of(&self.api, &pod).await;
        }
        Ok(domain.clone())
    }
}

/// The suffix by what the kubelet gave a pod; without it names are not told.
async fn of(api: &Api, pod: &PodRef) -> Option<String> {
    // agnhost reads `/etc/resolv.conf` and prints the search list in one line
    // (kubernetes, test/images/agnhost/dns)
    let query = Command::DnsSuffix.on(Os::Linux).ok()?;
    let suffix = |reply: &ExecReply| {
        let none = || ErrorKind::UnrecognisedOutput.error(format!("{reply:?}"));
        read(reply, &pod.namespace).ok_or_else(none)
    };
    let told = api.exec_read(pod, &query, suffix).await;
    told.inspect_err(|error| tracing::debug!(%error, "DNS suffix"))
        .ok()
}

/// The suffix in a pod's search list `NAMESPACE.svc.SUFFIX,svc.SUFFIX,SUFFIX,...`, where that is
/// a name as DNS has them.
pub(super) fn read(reply: &ExecReply, namespace: &str) -> Option<String> {
    if reply.exit != ExitStatus::Code(0) {
        return None;
    }
    let prefix = format!("{namespace}.svc.");
    let searches = reply.stdout.trim().split(',');
    let mut suffixes =
        searches.filter_map(|search| search.trim_end_matches('.').strip_prefix(&prefix));
    let is_name = |name: &&str| {
        name.len() <= 253
            && name.split('.').all(|label| {
                (1..=63).contains(&label.len())
                    && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            })
    };
    suffixes.find(is_name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_is_what_the_kubelet_gave() {
        let said = |stdout: &str, code| {
            let reply = ExecReply {
                stdout: stdout.to_owned(),
                stderr: String::new(),
                exit: ExitStatus::Code(code),
            };
            read(&reply, "ns")
        };
        let usual = "ns.svc.cluster.local,svc.cluster.local,cluster.local,corp.example\n";
        assert_eq!(said(usual, 0).as_deref(), Some("cluster.local"));
        assert_eq!(said("ns.svc.k8s.\n", 0).as_deref(), Some("k8s"));
        for (other, code) in [
            (usual, 2),
            ("", 0),
            ("corp.example\n", 0),
            ("other.svc.cluster.local\n", 0),
            ("ns.svc.a\"\nurl = \"b\n", 0),
            ("ns.svc.\n", 0),
        ] {
            assert_eq!(said(other, code), None, "{other}");
        }
    }
}
