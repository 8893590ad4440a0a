//! Deletes a Lease that no run waits for any more.

use serde_json::json;
use winconform_core::method::{ApiReply, ApiRequest, ErrorKind, ObservationError, Result};

use crate::cluster::objects::kinds::{LEASE_NAMESPACE, LEASES};
use crate::transport::Api;

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

fn refused(name: &str, reply: &ApiReply) -> ObservationError {
    let (status, message) = (reply.status, reply.message());
    let why = format!("remove the Lease `{name}`: {status}: {message}");
    ErrorKind::Forbidden.error(why)
}

#[cfg(test)]
mod tests {
    use winconform_core::config::Durations;

    use super::*;
    use crate::cluster::fake::Fake;
    use crate::cluster::lease::acquire;

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
