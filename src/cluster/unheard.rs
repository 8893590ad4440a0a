//! A Lease that may have come to be though nobody waits for it any more.

use serde_json::json;
use winconform_core::way::{ApiReply, ApiRequest, Trouble, TroubleKind, Verb};

use super::kinds::LEASES;
use super::lease::LEASE_NAMESPACE;
use crate::transport::Api;

/// Deletes the Lease `name` if there is one and `holder` holds it. What else a run has stays.
pub async fn delete_lease(api: &Api, name: &str, holder: &str) -> Result<(), Trouble> {
    let path = LEASES.object_path(Some(LEASE_NAMESPACE), name);
    let patience = api.durations().lease;
    let request = ApiRequest::get(path.clone());
    let found = api.send_within(&request, patience).await?;
    match found.status {
        200 if found.body["spec"]["holderIdentity"] == holder => {}
        200 | 404 => return Ok(()),
        _ => return Err(refused(name, &found)),
    }
    // Whoever takes it over meanwhile keeps it
    let metadata = &found.body["metadata"];
    let (uid, version) = (&metadata["uid"], &metadata["resourceVersion"]);
    let body = json!({"preconditions": {"uid": uid, "resourceVersion": version}});
    let request = ApiRequest {
        verb: Verb::Delete,
        path,
        body: Some(body),
    };
    let deleted = api.send_within(&request, patience).await?;
    match deleted.status {
        200 | 202 | 404 | 409 => Ok(()),
        _ => Err(refused(name, &deleted)),
    }
}

fn refused(name: &str, reply: &ApiReply) -> Trouble {
    let (status, message) = (reply.status, reply.message());
    let why = format!("remove the Lease `{name}`: {status}: {message}");
    Trouble::new(TroubleKind::Forbidden, why)
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
        let durations = Durations::default();
        let held = acquire(&api, "winconform", "r1", "a", &durations).await;
        // As of a process that has gone: nobody renews it
        drop(held.expect("held"));
        assert_eq!(delete_lease(&api, "winconform", "b").await, Ok(()));
        assert!(fake.get(PATH).is_some());
        assert_eq!(delete_lease(&api, "winconform", "a").await, Ok(()));
        assert_eq!(fake.get(PATH), None);
    }
}
