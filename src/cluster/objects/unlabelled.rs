//! Finds objects that exist without the labels by which a run finds its own.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::Value as Json;
use winconform_core::method::{ApiReply, ApiRequest, ErrorKind, Result};

use super::clean::{Left, ObjectRef};
use super::labels;
use super::status::items;
use crate::transport::{Api, encode};

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
    Ok(items(&list["items"]).any(|item| {
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
