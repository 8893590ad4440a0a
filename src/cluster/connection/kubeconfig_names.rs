//! Finds names in kubeconfigs that denote two things, so that it is unclear which one the user means.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kube::config::{Kubeconfig, NamedContext};
use serde_json::Value as Json;

use super::kubeconfig::KubeconfigError;

/// Checks that one file gives each name to one thing only.
pub(crate) fn check_names(path: &Path, file: &Kubeconfig) -> Result<(), KubeconfigError> {
    let contexts = file.contexts.iter().map(|named| ("context", &named.name));
    let clusters = file.clusters.iter().map(|named| ("cluster", &named.name));
    let users = file.auth_infos.iter().map(|named| ("user", &named.name));
    let mut seen = BTreeSet::new();
    for (what, name) in contexts.chain(clusters).chain(users) {
        if !seen.insert((what, name)) {
            return Err(KubeconfigError::Twice {
                path: path.to_owned(),
                what,
                name: name.clone(),
            });
        }
    }
    Ok(())
}

/// The definition of each context of one file: itself, its cluster and its user.
pub(crate) fn meaning(file: &Kubeconfig) -> BTreeMap<String, Json> {
    let of = |context: &NamedContext| {
        let body = context.context.as_ref()?;
        let clusters = file.clusters.iter();
        let cluster = clusters.filter(|cluster| cluster.name == body.cluster);
        let users = file.auth_infos.iter();
        let user = users.filter(|user| Some(&user.name) == body.user.as_ref());
        let parts = (body, cluster.collect::<Vec<_>>(), user.collect::<Vec<_>>());
        Some((context.name.clone(), serde_json::to_value(parts).ok()?))
    };
    file.contexts.iter().filter_map(of).collect()
}

/// Checks that all files with this context define it alike.
pub(crate) fn check_meaning(
    meanings: &[(&PathBuf, BTreeMap<String, Json>)],
    context: &str,
) -> Result<(), KubeconfigError> {
    let mut having = meanings
        .iter()
        .filter_map(|(path, meaning)| Some((path, meaning.get(context)?)));
    let Some((first, meant)) = having.next() else {
        return Ok(());
    };
    match having.find(|(_, other)| *other != meant) {
        None => Ok(()),
        Some((second, _)) => Err(KubeconfigError::Ambiguous {
            context: context.to_owned(),
            first: (*first).clone(),
            second: (*second).clone(),
        }),
    }
}
