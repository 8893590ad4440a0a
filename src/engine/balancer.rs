//! Waiting for what a load balancer's controller says of a Service.

use serde_json::Value as Json;
use winconform_core::text::printable;
use winconform_core::way::{ApiRequest, StandingFixture, Trouble, TroubleKind};

use super::fixtures::Fixtures;
use super::stands::standing;
use crate::cluster::kinds::SERVICES;
use crate::cluster::{Condition, poll_until};

impl Fixtures {
    /// The Service that was applied, once it has an address.
    pub(super) async fn wait_for_balancer(
        &self,
        applied: &[Json],
    ) -> Result<StandingFixture, Trouble> {
        let service = applied
            .iter()
            .find(|object| object["kind"] == SERVICES.kind);
        let metadata = service.map_or(&Json::Null, |service| &service["metadata"]);
        let name = metadata["name"].as_str().unwrap_or_default();
        let request = ApiRequest::get(SERVICES.object_path(metadata["namespace"].as_str(), name));
        let what = format!("an address of Service {}", printable(name));
        let durations = self.api.durations();
        let (first, limit) = (durations.look_again, durations.balancer);
        poll_until(first, limit, &what, async || {
            match self.api.send(&request).await {
                Ok(reply) if reply.status == 200 => {
                    let stands = standing(std::slice::from_ref(&reply.body), Vec::new());
                    match stands.balancer {
                        Some(_) => Condition::Done(stands),
                        None => Condition::NotYet("it is pending".to_owned()),
                    }
                }
                Ok(reply) => {
                    let words = printable(reply.body["message"].as_str().unwrap_or("no message"));
                    match reply.status {
                        403 => Condition::Never(Trouble::new(TroubleKind::Forbidden, words)),
                        status => Condition::NotYet(format!("status {status}: {words}")),
                    }
                }
                Err(trouble) if trouble.kind.is_lasting() => Condition::Never(trouble),
                Err(trouble) => Condition::NotYet(trouble.to_string()),
            }
        })
        .await
    }
}
