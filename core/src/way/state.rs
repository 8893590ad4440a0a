//! The way `state`: what the API server says of objects.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::exchange::{ApiReply, ApiRequest, Reply, Request};
use super::place::{Bound, FixtureName};
use super::trouble::{Trouble, TroubleKind};
use super::{Comparison, Difference, Way};
use crate::text::printable;

/// What is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StateAsk {
    /// The pods of a fixture at the point's pool.
    Pods(FixtureName),
}

/// What should be seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StateExpect {
    /// So many pods are Ready, on nodes of the pool, with the image of its build.
    Ready {
        /// How many.
        pods: u16,
    },
}

/// A pod, as far as readiness goes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PodSeen {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub node: Option<String>,
    /// Whether its condition Ready is True.
    pub ready: bool,
    /// Whether it is being deleted.
    pub deleted: bool,
    /// The images of its containers.
    pub images: Vec<String>,
    /// Whether those are what the image table says for the pool.
    pub image_of_build: bool,
    /// Why it is not Ready, as far as its status says.
    pub waiting: Option<String>,
}

/// What was seen.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateSeen {
    /// Pods.
    Pods(Vec<PodSeen>),
}

/// The way `state`.
#[derive(Debug)]
pub enum State {}

impl Way for State {
    type Ask = StateAsk;
    type Expect = StateExpect;
    type Seen = StateSeen;

    fn request(ask: &StateAsk, at: &Bound<'_>) -> Result<Request, Trouble> {
        let StateAsk::Pods(fixture) = ask;
        let namespace = &at.standing.namespace;
        let pool = at.pool.map_or("", |pool| pool.as_str());
        let run = &at.standing.run;
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods?labelSelector=winconform%2Frun%3D{run}\
             %2Cwinconform%2Ffixture%3D{}%2Cwinconform%2Fpool%3D{pool}",
            fixture.as_str()
        );
        Ok(Request::Api(ApiRequest::get(path)))
    }

    fn read(ask: &StateAsk, at: &Bound<'_>, reply: &Reply) -> Result<StateSeen, Trouble> {
        let items = items(reply)?;
        let StateAsk::Pods(fixture) = ask;
        let pods = items
            .iter()
            .map(|pod| read_pod(pod, at))
            .collect::<Result<Vec<_>, _>>()?;
        if pods.is_empty() {
            let detail = format!("{} has no pods: nothing to look at", fixture.as_str());
            return Err(Trouble::new(TroubleKind::NotApplied, detail));
        }
        match pods.iter().find_map(not_begun) {
            Some(trouble) => Err(trouble),
            None => Ok(StateSeen::Pods(pods)),
        }
    }

    fn compare(expect: &StateExpect, seen: &StateSeen) -> Result<Comparison, Trouble> {
        let (StateExpect::Ready { pods }, StateSeen::Pods(seen)) = (expect, seen);
        Ok(compare_ready(*pods, seen))
    }
}

/// What keeps a pod from telling anything of its workload: it has not begun, or is made to end.
fn not_begun(pod: &PodSeen) -> Option<Trouble> {
    if pod.deleted {
        let detail = format!("{}: somebody is deleting it", pod.name);
        return Some(Trouble::new(TroubleKind::NotApplied, detail));
    }
    let kind = match pod.waiting.as_deref()? {
        "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" => TroubleKind::ImagePull,
        "ContainerCreating" | "PodInitializing" => TroubleKind::NotApplied,
        _ => return None,
    };
    let waiting = pod.waiting.as_deref().unwrap_or_default();
    (!pod.ready).then(|| Trouble::new(kind, format!("{}: {waiting}", pod.name)))
}

fn compare_ready(expected: u16, pods: &[PodSeen]) -> Comparison {
    let ready: Vec<_> = pods.iter().filter(|pod| pod.ready).collect();
    let mut seen = format!("{} of {} Ready", ready.len(), pods.len());
    for pod in pods.iter().filter(|pod| !pod.ready) {
        let why = pod.waiting.as_deref().unwrap_or("no reason given");
        seen.push_str(&format!("; {}: {}", printable(&pod.name), printable(why)));
    }
    for pod in pods.iter().filter(|pod| !pod.image_of_build) {
        let images = printable(&pod.images.join(", "));
        seen.push_str(&format!("; {} runs {images}", printable(&pod.name)));
    }
    let difference = Difference {
        expected: format!("{expected} pods Ready"),
        seen,
    };
    if ready.len() < usize::from(expected) {
        Comparison::Refuted(difference)
    } else if ready.iter().any(|pod| !pod.image_of_build) {
        Comparison::Otherwise(difference)
    } else {
        Comparison::Holds(difference)
    }
}

/// The items of a list; anything but a list is trouble.
fn items(reply: &Reply) -> Result<&Vec<Json>, Trouble> {
    let Reply::Api(ApiReply { status, body }) = reply else {
        let detail = "an HTTP answer to a state look";
        return Err(Trouble::new(TroubleKind::UnrecognisedOutput, detail));
    };
    let words = body["message"].as_str().unwrap_or("no message");
    match (status, body["items"].as_array()) {
        (200, Some(items)) => Ok(items),
        (403, _) => Err(Trouble::new(TroubleKind::Forbidden, words)),
        (status, _) => {
            let detail = format!("status {status}, not a list: {words}");
            Err(Trouble::new(TroubleKind::UnrecognisedOutput, detail))
        }
    }
}

fn text(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn name(object: &Json) -> Result<String, Trouble> {
    text(&object["metadata"]["name"])
        .ok_or_else(|| Trouble::new(TroubleKind::UnrecognisedOutput, "an object without a name"))
}

fn read_pod(pod: &Json, at: &Bound<'_>) -> Result<PodSeen, Trouble> {
    let list = |value: &Json| value.as_array().cloned().unwrap_or_default();
    let images: Vec<_> = list(&pod["spec"]["containers"])
        .iter()
        .filter_map(|c| text(&c["image"]))
        .collect();
    let is_ready = |c: &Json| c["type"] == "Ready" && c["status"] == "True";
    let waiting = list(&pod["status"]["containerStatuses"])
        .iter()
        .find_map(|status| text(&status["state"]["waiting"]["reason"]))
        .or_else(|| text(&pod["status"]["reason"]));
    Ok(PodSeen {
        name: name(pod)?,
        node: text(&pod["spec"]["nodeName"]),
        deleted: !pod["metadata"]["deletionTimestamp"].is_null(),
        ready: list(&pod["status"]["conditions"]).iter().any(is_ready),
        image_of_build: !images.is_empty()
            && images.iter().all(|image| Some(image.as_str()) == at.image),
        images,
        waiting,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ready_counts_pods_and_their_image() {
        let pod = |ready, image_of_build| PodSeen {
            name: "p".into(),
            node: Some("n".into()),
            ready,
            deleted: false,
            images: vec!["i".into()],
            image_of_build,
            waiting: (!ready).then(|| "CrashLoopBackOff".into()),
        };
        let compare = |pods| {
            State::compare(&StateExpect::Ready { pods: 2 }, &StateSeen::Pods(pods)).expect("told")
        };
        assert!(compare(vec![pod(true, true), pod(true, true)]).holds());
        assert!(matches!(
            compare(vec![pod(true, true), pod(false, true)]),
            Comparison::Refuted(_)
        ));
        let wrong_image = compare(vec![pod(true, true), pod(true, false)]);
        assert!(matches!(wrong_image, Comparison::Otherwise(_)));
    }

    fn read(ask: StateAsk, items: &Json) -> Result<StateSeen, Trouble> {
        let standing = super::super::Standing::default();
        let at = Bound {
            standing: &standing,
            from: None,
            pool: None,
            to: None,
            build: None,
            image: None,
        };
        let body = json!({"items": items});
        State::read(&ask, &at, &Reply::Api(ApiReply { status: 200, body }))
    }

    #[test]
    fn pods_that_are_not_there_or_have_not_begun_tell_nothing() {
        let pods = StateAsk::Pods(FixtureName::WinWebserver);
        assert!(read(pods, &json!([])).is_err());
        for (reason, told) in [
            ("ImagePullBackOff", false),
            ("ContainerCreating", false),
            ("CrashLoopBackOff", true),
        ] {
            let pod = json!({"metadata": {"name": "p"}, "status": {"containerStatuses":
                [{"state": {"waiting": {"reason": reason}}}]}});
            assert_eq!(read(pods, &json!([pod])).is_ok(), told, "{reason}");
        }
    }

    #[test]
    fn what_is_no_list_is_trouble() {
        for (status, body) in [
            (200, json!({})),
            (500, json!({"items": []})),
            (200, json!([])),
        ] {
            assert!(items(&Reply::Api(ApiReply { status, body })).is_err());
        }
    }
}
