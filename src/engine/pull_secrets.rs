//! Pull secrets, copied from where the user keeps them into the run's own namespaces: a pod pulls with
//! those of its own namespace alone.
//!
//! What they hold goes from one answer of the API server into the next request and nowhere else: not
//! onto record, into no message.

use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use winconform_core::config::PullSecret;
use winconform_core::method::{ApiRequest, ErrorKind, Result};
use winconform_core::text::printable;

use super::fixtures::Fixtures;
use super::manifest;
use super::readiness::ended;
use crate::cluster::kinds::SECRETS;
use crate::cluster::labels;

/// What kubelets pull with: the type of a Secret and the key they read of it (kubernetes,
/// `pkg/credentialprovider/secrets/secrets.go`).
const TYPES: [(&str, &str); 2] = [
    ("kubernetes.io/dockerconfigjson", ".dockerconfigjson"),
    ("kubernetes.io/dockercfg", ".dockercfg"),
];

impl Fixtures {
    /// Copies the pull secrets into the run's namespaces, unless that was tried since those were made:
    /// all who wait for it learn the one result.
    pub(super) async fn copy_pull_secrets(&self, cancel: &CancellationToken) -> Result<()> {
        if self.images.secrets.is_empty() {
            return Ok(());
        }
        let mut copied = self.copied.lock().await;
        if let Some(result) = &*copied {
            return result.clone();
        }
        if cancel.is_cancelled() {
            return Err(ended());
        }
        let result = self.copy_each(cancel).await;
        // That it was ended is nothing about the secrets
        if !cancel.is_cancelled() {
            *copied = Some(result.clone());
        }
        result
    }

    async fn copy_each(&self, cancel: &CancellationToken) -> Result<()> {
        for (nth, secret) in self.images.secrets.iter().enumerate() {
            // What only reads may be left off at any time
            let source = cancel.run_until_cancelled(self.pull_secret(secret)).await;
            let source = source.unwrap_or_else(|| Err(ended()))?;
            for namespace in [manifest::namespace, manifest::host_namespace] {
                if cancel.is_cancelled() {
                    return Err(ended());
                }
                let copy = copy_of(&source, nth, &namespace(&self.run), &self.run);
                self.announce(&copy)?;
                self.apply(&copy, cancel).await?;
            }
        }
        Ok(())
    }

    async fn pull_secret(&self, secret: &PullSecret) -> Result<Source> {
        let path = SECRETS.object_path(Some(&secret.namespace), &secret.name);
        let reply = self.api.send(&ApiRequest::get(path)).await?;
        let refused = |kind, why: &str| {
            let detail = format!("the pull secret {secret} cannot be copied: {why}");
            Err(kind.error(detail))
        };
        match reply.status {
            200 => read(&reply.body).or_else(|why| refused(ErrorKind::NotApplied, &why)),
            404 => refused(
                ErrorKind::NotApplied,
                "it is not there (`images: {pull-secrets: …}` names it)",
            ),
            status => {
                let kind = reply.refusal(ErrorKind::ApiUnavailable);
                refused(kind, &format!("status {status}: {}", reply.message()))
            }
        }
    }
}

/// What of a Secret is copied. It has no `Debug`: it would show what nobody is to see.
struct Source {
    of_type: &'static str,
    key: &'static str,
    data: Json,
}

fn read(secret: &Json) -> Result<Source, String> {
    let of_type = secret["type"].as_str().unwrap_or_default();
    let known = TYPES.into_iter().find(|(known, _)| *known == of_type);
    let Some((of_type, key)) = known else {
        let of_type = printable(of_type);
        return Err(format!(
            "it is of type `{of_type}`, and kubelets pull with `{}` and `{}`",
            TYPES[0].0, TYPES[1].0
        ));
    };
    match &secret["data"][key] {
        Json::String(_) => Ok(Source {
            of_type,
            key,
            data: secret["data"][key].clone(),
        }),
        _ => Err(format!("it has no `{key}`")),
    }
}

fn copy_of(source: &Source, nth: usize, namespace: &str, run: &str) -> Json {
    json!({
        "apiVersion": "v1",
        "kind": SECRETS.kind,
        "metadata": {
            "name": manifest::pull_secret(nth),
            "namespace": namespace,
            "labels": {labels::MANAGED_BY: labels::WINCONFORM, labels::RUN: run},
        },
        "type": source.of_type,
        "data": {source.key: source.data},
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::fixtures::tests::fixtures;
    use super::*;
    use crate::cluster::fake::Fake;
    use winconform_core::config::read as config;
    use winconform_core::facts::{PoolName, WindowsBuild};
    use winconform_core::method::FixtureName;

    const SOURCE: &str = "/api/v1/namespaces/registry/secrets/regcred";
    const HIDDEN: &str = "aHVudGVyMg==";

    fn of(fake: &Fake) -> Fixtures {
        let mut found = Vec::new();
        let text = "images: {pull-secrets: [registry/regcred]}";
        let images = config("config.yaml", text, &mut found).images;
        assert!(found.is_empty(), "{found:?}");
        Fixtures {
            images: Arc::new(images),
            ..fixtures(fake)
        }
    }

    fn secret(of_type: &str, key: &str) -> Json {
        json!({"apiVersion": "v1", "kind": "Secret", "type": of_type,
            "metadata": {"name": "regcred", "namespace": "registry", "labels": {"app": "theirs"}},
            "data": {key: HIDDEN, "beside": "it"}})
    }

    fn copies() -> [String; 2] {
        ["winconform-r1", "winconform-host-r1"]
            .map(|own| format!("/api/v1/namespaces/{own}/secrets/winconform-pull-1"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_secret_is_copied_once_into_each_namespace_of_the_run() {
        let fake = Fake::default();
        fake.put(SOURCE, secret(TYPES[0].0, TYPES[0].1));
        let (fixtures, cancel) = (of(&fake), CancellationToken::new());
        for _ in 0..2 {
            let copied = fixtures.copy_pull_secrets(&cancel).await;
            copied.expect("copied");
        }
        assert_eq!(fake.log().len(), 3, "{:?}", fake.log());
        for path in copies() {
            let copy = fake.get(&path).expect("copied");
            assert_eq!(copy["type"], TYPES[0].0);
            assert_eq!(copy["data"], json!({".dockerconfigjson": HIDDEN}));
            let own = json!({labels::MANAGED_BY: labels::WINCONFORM, labels::RUN: "r1"});
            assert_eq!(copy["metadata"]["labels"], own);
        }
        // What is created is announced, and no more than announced
        let journal = fixtures.journal.text();
        assert_eq!(journal.matches("winconform-pull-1").count(), 2, "{journal}");
        assert!(!journal.contains(HIDDEN), "{journal}");

        // Namespaces that are made anew have none
        *fixtures.copied.lock().await = None;
        fixtures.copy_pull_secrets(&cancel).await.expect("again");
        assert_eq!(fake.log().len(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_copied_is_told_without_what_it_holds() {
        let opaque = secret("Opaque", ".dockerconfigjson");
        let empty = secret(TYPES[0].0, "other");
        let forbidden = json!({"kind": "Status", "message": "secrets \"regcred\" is forbidden"});
        let missing = json!({"kind": "Status", "message": "not found"});
        let (ours, theirs) = (ErrorKind::NotApplied, ErrorKind::Forbidden);
        let said = "status 403: secrets \"regcred\" is";
        for (status, body, kind, says) in [
            (200, opaque, ours, "it is of type `Opaque`"),
            (200, empty, ours, "it has no `.dockerconfigjson`"),
            (403, forbidden, theirs, said),
            (404, missing, ours, "it is not there"),
        ] {
            let fake = Fake::default();
            fake.script(&format!("GET {SOURCE} "), status, body);
            let pool = PoolName::windows(WindowsBuild::SERVER_2022);
            let key = FixtureName::WinWebserver.at(Some(&pool));
            let stood = of(&fake).stand(&key, &CancellationToken::new()).await;
            let error = stood.outcome.expect_err("nothing to pull with");
            assert_eq!(error.kind, kind, "{error}");
            let begin = "the pull secret registry/regcred cannot be copied: ";
            assert!(error.detail.starts_with(begin), "{error}");
            assert!(error.detail.contains(says), "{error}");
            assert!(!error.detail.contains(HIDDEN), "{error}");
            // Nor is anything applied that could not pull
            assert_eq!(fake.log().len(), 1, "{:?}", fake.log());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_paid_for_once_and_not_after_a_signal() {
        let fake = Fake::default();
        let (fixtures, cancel) = (of(&fake), CancellationToken::new());
        let first = fixtures.copy_pull_secrets(&cancel).await;
        let asked = fake.log().len();
        assert!(asked > 0);
        // Another that waited for it learns the same, whatever has come to be since
        fake.put(SOURCE, secret(TYPES[0].0, TYPES[0].1));
        let second = fixtures.clone().copy_pull_secrets(&cancel).await;
        assert_eq!(
            (first.expect_err("not there"), fake.log().len()),
            (second.expect_err("the same"), asked)
        );

        // Those that come to it after a signal ask for nothing, and that is no result
        *fixtures.copied.lock().await = None;
        let ended = CancellationToken::new();
        ended.cancel();
        let error = fixtures.copy_pull_secrets(&ended).await;
        assert_eq!(error, Err(super::ended()));
        assert_eq!(fake.log().len(), asked);
        assert_eq!(fixtures.copy_pull_secrets(&cancel).await, Ok(()));
    }
}
