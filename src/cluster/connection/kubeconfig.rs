//! Reads kubeconfig files and chooses one context. Every error addresses the user, and none quotes what the
//! files hold, which may be a secret.

use std::io;
use std::path::{Path, PathBuf};

use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError as KubeError};
use winconform_core::text::printable;

use super::kubeconfig_names::{check_meaning, check_names, meaning};
use super::proxy::Proxy;

/// Why no context can be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// No file exists.
    #[error(
        "no kubeconfig found; looked at {}\n(give one with --kubeconfig or $KUBECONFIG)",
        quoted(tried)
    )]
    NotFound { tried: Vec<String> },
    /// A file that cannot be read: a directory, no permission.
    #[error("the kubeconfig `{}` cannot be read\n(check what it is and its permissions)", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// A file that is no kubeconfig.
    #[error("the kubeconfig `{}`{} is malformed: {what}", path.display(), place(*at))]
    Malformed {
        path: PathBuf,
        /// Line and column.
        at: Option<(u64, u64)>,
        /// What is wrong, without the file's content.
        what: String,
    },
    /// A name that one file gives to two things, which kubectl refuses, too.
    #[error(
        "the kubeconfig `{}` has two {what}s called `{}`\n(rename or remove one: which is meant cannot be told)",
        path.display(),
        printable(name)
    )]
    Twice {
        path: PathBuf,
        /// `context`, `cluster` or `user`.
        what: &'static str,
        name: String,
    },
    /// A context that two files define differently: a merge would silently take the first, which the user may
    /// not mean.
    #[error(
        "the context `{}` is defined in `{}` and, differently, in `{}`\n\
         (give the one that is meant with --kubeconfig)",
        printable(context),
        first.display(),
        second.display()
    )]
    Ambiguous {
        context: String,
        /// The file that a merge would take.
        first: PathBuf,
        second: PathBuf,
    },
    /// Files that contradict each other.
    #[error(
        "the kubeconfig files {} differ in kind or apiVersion and cannot be merged",
        quoted(files)
    )]
    Unmergeable { files: Vec<String> },
    /// The files hold no context.
    #[error("the kubeconfig {} names no context", quoted(files))]
    NoContext { files: Vec<String> },
    /// No context has the given name.
    #[error(
        "there is no context `{}`\n(known, nearest first: {})",
        printable(name),
        quoted(known)
    )]
    UnknownContext {
        name: String,
        /// The contexts that exist, the nearest name first.
        known: Vec<String>,
    },
    /// Several contexts exist and the user named none: the current one may not be the one to test.
    #[error(
        "no context was named and there are several; name the one to test with --context NAME\n\
         (known{}: {})",
        current.as_ref().map_or(String::new(), |name| format!(", current `{}`", printable(name))),
        quoted(known)
    )]
    ContextNotNamed {
        known: Vec<String>,
        current: Option<String>,
    },
    /// The context names a cluster or user that does not exist.
    #[error(
        "the context `{}` names the {what} `{}`, which is not there\n(known: {})",
        printable(context),
        printable(name),
        quoted(known)
    )]
    Dangling {
        context: String,
        /// `cluster` or `user`.
        what: &'static str,
        /// The name that nothing has.
        name: String,
        known: Vec<String>,
    },
    /// The cluster's address is missing or no URL.
    #[error(
        "the cluster of context `{}` has no usable server address",
        printable(context)
    )]
    NoServer { context: String },
    /// A certificate, key or proxy that cannot be used.
    #[error(
        "the {what} of context `{}` cannot be loaded: {why}",
        printable(context)
    )]
    Credential {
        context: String,
        /// Which of them.
        what: &'static str,
        /// Why, without its content.
        why: String,
    },
    /// This is a pod, but its service account cannot be used.
    #[error("no kubeconfig, and this pod's service account cannot be used: {why}")]
    InCluster { why: String },
}

/// A configuration for one context.
pub(crate) struct Chosen {
    pub(crate) context: String,
    /// The cluster's name in the kubeconfig; `None` in a pod.
    pub(crate) cluster: Option<String>,
    pub(crate) config: Config,
    pub(crate) proxy: Option<Proxy>,
}

pub(crate) struct Sources {
    pub(crate) given: Option<PathBuf>,
    pub(crate) variable: Option<std::ffi::OsString>,
    pub(crate) home: Option<PathBuf>,
    /// Whether this is a pod: `$KUBERNETES_SERVICE_HOST` is set.
    pub(crate) in_pod: bool,
}

impl Sources {
    /// The sources of this process.
    pub(crate) fn of_process(given: Option<PathBuf>) -> Self {
        Self {
            given,
            variable: std::env::var_os("KUBECONFIG"),
            home: std::env::home_dir(),
            in_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        }
    }

    /// The files to read, in order.
    fn paths(&self) -> Vec<PathBuf> {
        if let Some(given) = &self.given {
            return vec![given.clone()];
        }
        let listed = self.variable.iter().flat_map(std::env::split_paths);
        let listed: Vec<_> = listed.filter(|it| !it.as_os_str().is_empty()).collect();
        if !listed.is_empty() {
            return listed;
        }
        self.home
            .iter()
            .map(|home| home.join(".kube").join("config"))
            .collect()
    }
}

/// The configuration of the named context, or of the only one.
pub(crate) async fn choose(
    sources: &Sources,
    context: Option<&str>,
) -> Result<Chosen, KubeconfigError> {
    let paths = sources.paths();
    let mut read = Vec::new();
    let mut merged: Option<Kubeconfig> = None;
    let mut meanings = Vec::new();
    for path in &paths {
        let Some(file) = read_file(path)? else {
            continue;
        };
        check_names(path, &file)?;
        meanings.push((path, meaning(&file)));
        read.push(path.display().to_string());
        merged = Some(match merged {
            None => file,
            Some(earlier) => earlier
                .merge(file)
                .map_err(|_| KubeconfigError::Unmergeable {
                    files: read.clone(),
                })?,
        });
    }
    let Some(mut kubeconfig) = merged else {
        if sources.in_pod && sources.given.is_none() && context.is_none() {
            let config = Config::incluster().map_err(|error| KubeconfigError::InCluster {
                why: crate::transport::error_text(&error),
            })?;
            let proxy = Proxy::choose(None, &config.cluster_url);
            return Ok(Chosen {
                context: "in-cluster".to_owned(),
                cluster: None,
                config,
                proxy: proxy.map_err(|why| KubeconfigError::InCluster { why })?,
            });
        }
        let tried = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(KubeconfigError::NotFound { tried });
    };
    let context = choose_context(&kubeconfig, context, &read)?;
    check_meaning(&meanings, &context)?;
    check_references(&kubeconfig, &context)?;
    let of_context = kubeconfig.contexts.iter().find(|one| one.name == context);
    let cluster = of_context.and_then(|one| Some(one.context.as_ref()?.cluster.clone()));
    // Without a `proxy-url` kube would read the environment
    let unread = "http://unread".to_owned();
    let named = kubeconfig
        .clusters
        .iter_mut()
        .find(|one| Some(&one.name) == cluster.as_ref());
    let body = named.and_then(|named| named.cluster.as_mut());
    let written = body.and_then(|body| body.proxy_url.replace(unread));
    let options = KubeConfigOptions {
        context: Some(context.clone()),
        ..Default::default()
    };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| unusable(&context, &error))?;
    config.proxy_url = None;
    // kube takes a file without certificates for an authority that trusts no server
    if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
        let why = "it holds no certificate".to_owned();
        return Err(credential(&context, "certificate authority", why));
    }
    let proxy = Proxy::choose(written.as_deref(), &config.cluster_url);
    Ok(Chosen {
        proxy: proxy.map_err(|why| credential(&context, "proxy", why))?,
        context,
        cluster,
        config,
    })
}

fn credential(context: &str, what: &'static str, why: String) -> KubeconfigError {
    let context = context.to_owned();
    KubeconfigError::Credential { context, what, why }
}

/// Reads one file; `None` when it does not exist, which `$KUBECONFIG` permits.
fn read_file(path: &Path) -> Result<Option<Kubeconfig>, KubeconfigError> {
    let malformed = |at, what: &str| KubeconfigError::Malformed {
        path: path.to_owned(),
        at,
        what: what.to_owned(),
    };
    // A device may never end, and a pipe is read once
    let is_stream = |it: std::fs::Metadata| !it.is_file() && !it.is_dir();
    if std::fs::metadata(path).is_ok_and(is_stream) {
        return Err(malformed(None, "it is not a regular file"));
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(KubeconfigError::Unreadable {
                path: path.to_owned(),
                source,
            });
        }
    };
    // kube panics on a UTF-16 file that ends within a character
    if bytes.len() % 2 == 1 && matches!(bytes.as_slice(), [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) {
        return Err(malformed(None, "it is not UTF-16"));
    }
    match Kubeconfig::read_from(path) {
        Ok(kubeconfig) => Ok(Some(kubeconfig)),
        Err(KubeError::Parse(error)) => {
            let at = error.location().map(|at| (at.line(), at.column()));
            Err(malformed(at, "it is not the YAML of a kubeconfig"))
        }
        Err(KubeError::ReadConfig(source, path)) if source.kind() != io::ErrorKind::InvalidData => {
            Err(KubeconfigError::Unreadable { path, source })
        }
        Err(KubeError::ReadConfig(..)) => Err(malformed(None, "it is not UTF-8")),
        Err(_) => Err(malformed(None, "its documents cannot be merged")),
    }
}

fn choose_context(
    kubeconfig: &Kubeconfig,
    named: Option<&str>,
    files: &[String],
) -> Result<String, KubeconfigError> {
    let mut known: Vec<_> = kubeconfig.contexts.iter().map(|c| c.name.clone()).collect();
    known.sort();
    match (named, known.as_slice()) {
        (Some(name), _) if known.iter().any(|known| known == name) => Ok(name.to_owned()),
        (_, []) => Err(KubeconfigError::NoContext {
            files: files.to_vec(),
        }),
        (Some(name), _) => {
            known.sort_by_cached_key(|known| strsim::levenshtein(known, name));
            Err(KubeconfigError::UnknownContext {
                name: name.to_owned(),
                known,
            })
        }
        (None, [only]) => Ok(only.clone()),
        (None, _) => {
            let current = kubeconfig
                .current_context
                .clone()
                .filter(|name| !name.is_empty());
            Err(KubeconfigError::ContextNotNamed { known, current })
        }
    }
}

/// Checks that the context's cluster and user exist. kube treats a missing user as no user.
fn check_references(kubeconfig: &Kubeconfig, context: &str) -> Result<(), KubeconfigError> {
    let mut contexts = kubeconfig.contexts.iter();
    let named = contexts.find(|named| named.name == context);
    let Some(body) = named.and_then(|named| named.context.as_ref()) else {
        return Err(KubeconfigError::NoServer {
            context: context.to_owned(),
        });
    };
    let clusters: Vec<_> = kubeconfig.clusters.iter().map(|c| c.name.clone()).collect();
    let users = kubeconfig.auth_infos.iter();
    let users: Vec<_> = users.map(|u| u.name.clone()).collect();
    let user = body.user.as_ref().filter(|user| !user.is_empty());
    for (what, name, known) in [
        ("cluster", Some(&body.cluster), clusters),
        ("user", user, users),
    ] {
        if let Some(name) = name.filter(|name| !known.contains(name)) {
            return Err(KubeconfigError::Dangling {
                context: context.to_owned(),
                what,
                name: name.clone(),
                known,
            });
        }
    }
    Ok(())
}

/// Translates kube's error about the parts of a context, without the text that it quotes.
pub(crate) fn unusable(context: &str, error: &KubeError) -> KubeconfigError {
    let (what, why) = match error {
        KubeError::LoadCertificateAuthority(error) => ("certificate authority", load_words(error)),
        KubeError::LoadClientCertificate(error) => ("client certificate", load_words(error)),
        KubeError::LoadClientKey(error) => ("client key", load_words(error)),
        KubeError::ParseCertificates(_) => ("certificate authority", "it is not PEM".to_owned()),
        _ => {
            return KubeconfigError::NoServer {
                context: context.to_owned(),
            };
        }
    };
    credential(context, what, why)
}

fn load_words(error: &kube::config::LoadDataError) -> String {
    use kube::config::LoadDataError as E;
    match error {
        // The decoder's error would show a byte of the secret
        E::DecodeBase64(_) => "it is not base64".to_owned(),
        E::ReadFile(source, path) => format!("`{}`: {source}", path.display()),
        E::NoBase64DataOrFile => "it is missing".to_owned(),
    }
}

fn place(at: Option<(u64, u64)>) -> String {
    at.map_or(String::new(), |(line, column)| {
        format!(" (line {line}, column {column})")
    })
}

fn quoted(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let names = names.iter().map(|name| format!("`{}`", printable(name)));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn file(contexts: &[&str]) -> String {
        let context = |name| format!("- name: {name}\n  context: {{cluster: one, user: me}}\n");
        let contexts: String = contexts.iter().map(context).collect();
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: one\n  cluster:\n    server: \
             https://127.0.0.1:1\nusers:\n- name: me\n  user: {{token: s3cr3t}}\ncontexts:\n\
             {contexts}"
        )
    }

    /// The context chosen from kubeconfig files with these contexts, as `$KUBECONFIG` lists them.
    async fn chosen(files: &[&[&str]], context: Option<&str>) -> Result<String, KubeconfigError> {
        let folder = TempDir::new().expect("a folder");
        let mut paths = vec![folder.path().join("missing")];
        for (number, contexts) in files.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::write(&path, file(contexts)).expect("written");
            paths.push(path);
        }
        let sources = Sources {
            given: None,
            variable: Some(std::env::join_paths(paths).expect("paths")),
            home: None,
            in_pod: false,
        };
        choose(&sources, context).await.map(|chosen| chosen.context)
    }

    #[tokio::test]
    async fn the_only_context_and_a_named_one_of_any_file_are_taken() {
        for (files, context, expected) in [
            (&[&["a"][..]][..], None, "a"),
            (&[&["a", "b"]], Some("b"), "b"),
            (&[&["a"], &["b"]], Some("b"), "b"),
        ] {
            let chosen = chosen(files, context).await;
            assert_eq!(chosen.expect("chosen"), expected);
        }
        let none = chosen(&[], None).await;
        assert!(matches!(none, Err(KubeconfigError::NotFound { .. })));
    }

    #[tokio::test]
    async fn an_unknown_context_lists_the_nearest_first() {
        let unknown = chosen(&[&["alpha", "prod-win", "z"]], Some("prod-wim")).await;
        let said = unknown.expect_err("refused").to_string();
        assert!(
            said.contains("no context `prod-wim`\n(known, nearest first: `prod-win`"),
            "{said}"
        );
    }
}
