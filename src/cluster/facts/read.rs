//! Reads paths of the API: objects and paged lists, or why one could not be read.

use serde_json::Value as Json;
use winconform_core::facts::Known;
use winconform_core::method::{ApiReply, ApiRequest, ObservationError};
use winconform_core::text::printable;

use crate::cluster::objects::status::word;
use crate::transport::{Api, encode};

/// The number of objects in one page.
const PAGE: usize = 500;
/// The number of pages after which a list counts as endless.
const PAGES: usize = 2_000;
/// How often a list is read from the start because its continuation expired.
const LISTS: usize = 3;

/// Why a path was not read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Unread {
    /// Whether the answer was 404.
    pub(super) absent: bool,
    /// The path with the status or the error.
    pub(crate) reason: String,
}

impl Unread {
    fn refused(path: &str, reply: &ApiReply) -> Self {
        let reason = format!("{path}: status {}: {}", reply.status, reply.message());
        Self {
            absent: reply.status == 404,
            reason,
        }
    }

    fn error(path: &str, error: &ObservationError) -> Self {
        Self::reason(path, &printable(&error.to_string()))
    }

    /// The error for an answer that arrived but is of no use.
    pub(super) fn reason(path: &str, why: &str) -> Self {
        Self {
            absent: false,
            reason: format!("{path}: {why}"),
        }
    }
}

/// The fact as the record holds it.
pub(super) fn known<T>(read: Result<T, Unread>, source: &str) -> Known<T> {
    match read {
        Ok(value) => Known::Fact {
            value,
            source: source.to_owned(),
        },
        Err(Unread { reason, .. }) => Known::Unknown { reason },
    }
}

pub(super) async fn get(api: &Api, path: &str) -> Result<Json, Unread> {
    let sent = api.send(&ApiRequest::get(path)).await;
    let reply = sent.map_err(|error| Unread::error(path, &error))?;
    match reply.status {
        200 => Ok(reply.body),
        _ => Err(Unread::refused(path, &reply)),
    }
}

/// The object at a path, or `None` if there is none.
pub(super) async fn find(api: &Api, path: &str) -> Result<Option<Json>, Unread> {
    match get(api, path).await {
        Ok(object) => Ok(Some(object)),
        Err(Unread { absent: true, .. }) => Ok(None),
        Err(unread) => Err(unread),
    }
}

pub(super) async fn text(api: &Api, path: &str) -> Result<String, Unread> {
    let sent = api.text(path).await;
    let reply = sent.map_err(|error| Unread::error(path, &error))?;
    match reply.body {
        Json::String(text) if reply.status == 200 => Ok(text),
        _ => Err(Unread::refused(path, &reply)),
    }
}

/// Folds all objects of a list into one value, a page at a time, and keeps no page. Begins again with a new
/// value when the list's continuation expired.
pub(crate) async fn fold<T: Default>(
    api: &Api,
    path: &str,
    query: &str,
    mut add: impl FnMut(&mut T, &Json),
) -> Result<T, Unread> {
    for _ in 0..LISTS {
        if let Some(folded) = fold_once(api, path, query, &mut add).await? {
            return Ok(folded);
        }
    }
    let why = format!("the list expired {LISTS} times before it was read");
    Err(Unread::reason(path, &why))
}

/// The values that `read` returns for the objects of a list.
pub(super) async fn list<T>(
    api: &Api,
    path: &str,
    read: impl Fn(&Json) -> Option<T>,
) -> Result<Vec<T>, Unread> {
    fold(api, path, "", |values: &mut Vec<T>, item| {
        values.extend(read(item));
    })
    .await
}

/// Folds all pages of one list; `None` when its continuation expired.
async fn fold_once<T: Default>(
    api: &Api,
    path: &str,
    query: &str,
    add: &mut impl FnMut(&mut T, &Json),
) -> Result<Option<T>, Unread> {
    let mut folded = T::default();
    let mut continuation = String::new();
    for _ in 0..PAGES {
        let mut target = format!("{path}?limit={PAGE}{query}");
        if !continuation.is_empty() {
            target.push_str(&format!("&continue={}", encode(&continuation)));
        }
        let sent = api.send(&ApiRequest::get(target)).await;
        let reply = sent.map_err(|error| Unread::error(path, &error))?;
        match (reply.status, reply.body["items"].as_array()) {
            (200, Some(items)) => items.iter().for_each(|item| add(&mut folded, item)),
            // Some servers write an empty list as null
            (200, None) if is_list(&reply.body) => {}
            (410, _) if !continuation.is_empty() => return Ok(None),
            _ => return Err(Unread::refused(path, &reply)),
        }
        match reply.body["metadata"]["continue"].as_str() {
            None | Some("") => return Ok(Some(folded)),
            Some(token) if token == continuation => {
                return Err(Unread::reason(path, "the list continues with itself"));
            }
            Some(token) => token.clone_into(&mut continuation),
        }
    }
    let why = format!("the list did not end within {PAGES} pages");
    Err(Unread::reason(path, &why))
}

fn is_list(body: &Json) -> bool {
    let kind = body["kind"].as_str();
    kind.is_some_and(|kind| kind.ends_with("List"))
}

/// `namespace/name`, or the name of an object without a namespace.
pub(super) fn path_of(object: &Json) -> String {
    let metadata = &object["metadata"];
    let (namespace, name) = (&metadata["namespace"], word(&metadata["name"]));
    match namespace.is_string() {
        true => format!("{}/{name}", word(namespace)),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::fake::Fake;
    use super::*;

    async fn names(fake: &Fake) -> Result<Vec<String>, String> {
        list(&fake.api(), "/api/v1/pods", |pod| Some(path_of(pod)))
            .await
            .map_err(|unread| unread.reason)
    }

    fn fill(fake: &Fake, count: usize) {
        for index in 0..count {
            let name = format!("p{index:05}");
            let path = format!("/api/v1/namespaces/a/pods/{name}");
            fake.put(&path, json!({"metadata": {"namespace": "a", "name": name}}));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_read_page_by_page() {
        let fake = Fake::default();
        fill(&fake, 1_001);
        let names = names(&fake).await.expect("read");
        assert_eq!((names.len(), names[1_000].as_str()), (1_001, "a/p01000"));
        assert_eq!(fake.log().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn an_expired_continuation_begins_again_without_what_was_read() {
        let fake = Fake::default();
        fill(&fake, 600);
        fake.expire(1);
        assert_eq!(names(&fake).await.map(|names| names.len()), Ok(600));
        assert_eq!(fake.log().len(), 4);
        fake.expire(LISTS);
        let reason = names(&fake).await.expect_err("always expired");
        assert_eq!(
            reason,
            "/api/v1/pods: the list expired 3 times before it was read"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_never_ends_or_is_none_is_unread() {
        let fake = Fake::default();
        let page = json!({"kind": "PodList", "metadata": {"continue": "x"}, "items": []});
        fake.script("GET /api/v1/pods", 200, page);
        assert_eq!(
            names(&fake).await,
            Err("/api/v1/pods: the list continues with itself".to_owned())
        );
        let fake = Fake::default();
        fake.script("GET /api/v1/pods", 200, json!({"kind": "Pod"}));
        let reason = names(&fake).await.expect_err("no list");
        assert_eq!(reason, "/api/v1/pods: status 200: no message");
        let fake = Fake::default();
        fake.script(
            "GET /api/v1/pods",
            200,
            json!({"kind": "PodList", "items": null}),
        );
        assert_eq!(names(&fake).await, Ok(vec![]));
    }
}
