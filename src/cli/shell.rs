//! Commands that a person may paste into a shell.

use winconform_core::text::printable;

use super::args::ClusterArgs;

pub(crate) fn quoted(word: &str) -> String {
    let word = printable(word);
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The command that removes what a run may have left in this cluster: without its kubeconfig the command would
/// search another cluster for the run.
pub(crate) fn cleanup(cluster: &ClusterArgs, run: &str) -> String {
    let mut command = format!("winconform cleanup --run {}", quoted(run));
    let kubeconfig = cluster.kubeconfig.as_ref();
    let kubeconfig = kubeconfig.map(|path| path.display().to_string());
    let context = cluster.context.clone();
    for (name, value) in [("kubeconfig", kubeconfig), ("context", context)] {
        if let Some(value) = value {
            command.push_str(&format!(" --{name} {}", quoted(&value)));
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_cluster_and_may_be_pasted() {
        let cluster = |kubeconfig: &str, context: Option<&str>| ClusterArgs {
            kubeconfig: Some(kubeconfig.into()),
            context: context.map(str::to_owned),
        };
        let plain = cleanup(&cluster("a/config", None), "r1");
        assert_eq!(plain, "winconform cleanup --run r1 --kubeconfig a/config");
        let odd = cleanup(&cluster("it's; here", Some("$(id)")), "r 1");
        assert_eq!(
            odd,
            r"winconform cleanup --run 'r 1' --kubeconfig 'it'\''s; here' --context '$(id)'"
        );
    }
}
