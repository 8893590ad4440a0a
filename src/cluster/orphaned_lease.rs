//! Finds objects that may exist though nothing refers to them: a Lease that nothing waits for any more, and
//! objects without their labels.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value as Json, json};
use winconform_core::method::{ApiReply, ApiRequest, ErrorKind, ObservationError, Result};

use super::lease::LEASE_NAMESPACE;
use crate::cluster::objects::clean::{Left, ObjectRef};
use crate::cluster::objects::kinds::LEASES;
use crate::cluster::objects::labels;
use crate::transport::{Api, encode};

/// How often a changed Lease is read again, as after a renewal of ours whose answer did not arrive.
const TRIES: u32 = 3;

/// Deletes the Lease `name` if it exists and `holder` holds it. All other objects of a run stay.
pub async fn delete_lease(api: &Api, name: &str, holder: &str) -> Result<()> {
    let path = LEASES.object_path(Some(LEASE_NAMESPACE), name);
    let patience = api.durations().lease;
    let mut tries = 0;
    loop {
        let request = ApiRequest::get(path.clone());
        let current = api.send_within(&request, patience).await?;
        match current.status {
            // A run that took the Lease over keeps it
            200 if current.body["spec"]["holderIdentity"] == holder => {}
            200 | 404 => return Ok(()),
            _ => return Err(refused(name, &current)),
        }
        let metadata = &current.body["metadata"];
        let (uid, version) = (&metadata["uid"], &metadata["resourceVersion"]);
        let preconditions = json!({"uid": uid, "resourceVersion": version});
        let request = LEASES.deletion(Some(LEASE_NAMESPACE), name, &preconditions);
        let deleted = api.send_within(&request, patience).await?;
        tries += 1;
        match deleted.status {
            200 | 202 | 404 => return Ok(()),
            409 if tries < TRIES => {}
            _ => return Err(refused(name, &deleted)),
        }
    }
}

/// The objects that still exist under their names, or may; an object with another run's label does not count.
/// It lists them, since a run has the permission for that.
pub async fn missed(api: &Api, run: &str, objects: BTreeSet<ObjectRef>) -> Vec<Left> {
    let each = objects.into_iter().map(|object| async move {
        let why = match has(api, run, &object).await {
            Ok(false) => return None,
            Ok(true) => "it is there, and its labels did not lead to it".to_owned(),
            Err(error) => format!("whether it is there is not known: {error}"),
        };
        Some(Left { object, why })
    });
    join_all(each).await.into_iter().flatten().collect()
}

async fn has(api: &Api, run: &str, object: &ObjectRef) -> Result<bool> {
    let path = object.kind.collection_path(object.namespace.as_deref());
    let name = encode(&format!("metadata.name={}", object.name));
    let request = ApiRequest::get(format!("{path}?fieldSelector={name}"));
    let list = listed(api.send(&request).await?)?;
    let mut items = list["items"].as_array().into_iter().flatten();
    Ok(items.any(|item| {
        let of = item["metadata"]["labels"][labels::RUN].as_str();
        item["metadata"]["name"] == *object.name && of.is_none_or(|of| of == run)
    }))
}

/// The list in a reply, or why it is none.
pub(crate) fn listed(reply: ApiReply) -> Result<Json> {
    let kind = reply.body["kind"].as_str().unwrap_or_default();
    let (error, why) = match reply.status {
        200 if kind.ends_with("List") => return Ok(reply.body),
        200 => (ErrorKind::ApiUnavailable, "it is no list".to_owned()),
        403 => (ErrorKind::Forbidden, reply.message()),
        _ => (ErrorKind::ApiUnavailable, reply.message()),
    };
    let why = format!("the answer to a list has status {}: {why}", reply.status);
    Err(error.error(why))
}

fn refused(name: &str, reply: &ApiReply) -> ObservationError {
    let (status, message) = (reply.status, reply.message());
    let why = format!("remove the Lease `{name}`: {status}: {message}");
    ErrorKind::Forbidden.error(why)
}

#[cfg(test)]
mod tests {
    use winconform_core::config::Durations;

    use super::super::fake::Fake;
    use super::super::lease::acquire;
    use super::*;

    const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/winconform";

    #[tokio::test(start_paused = true)]
    async fn it_goes_if_it_is_the_holders_and_stays_if_it_is_anothers() {
        let fake = Fake::default();
        let api = fake.api();
        assert_eq!(delete_lease(&api, "winconform", "a").await, Ok(()));
        let (who, durations) = (("r1", "a"), Durations::default());
        let held = acquire(&api, "winconform", who, &durations, |_| ()).await;
        // As after the end of a process, nothing renews it
        drop(held.expect("held"));
        assert_eq!(delete_lease(&api, "winconform", "b").await, Ok(()));
        assert!(fake.get(PATH).is_some());
        assert_eq!(delete_lease(&api, "winconform", "a").await, Ok(()));
        assert_eq!(fake.get(PATH), None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_goes_on_changing_is_read_again_and_given_up() {
        let fake = Fake::default();
        let api = fake.api();
        let (who, durations) = (("r1", "a"), Durations::default());
        let held = acquire(&api, "winconform", who, &durations, |_| ()).await;
        drop(held.expect("held"));
        let changed = json!({"message": "the object has been modified"});
        fake.script(&format!("DELETE {PATH} "), 409, changed);
        let before = fake.log().len();
        let error = delete_lease(&api, "winconform", "a")
            .await
            .expect_err("refused");
        assert!(error.to_string().contains("409"), "{error}");
        let tries = [format!("GET {PATH}"), format!("DELETE {PATH}")];
        let tries: Vec<_> = tries.iter().cycle().take(6).collect();
        assert_eq!(fake.log()[before..].iter().collect::<Vec<_>>(), tries);
    }
}
