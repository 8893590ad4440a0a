//! Old answers to lists.

use std::collections::HashMap;
use std::sync::Mutex;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::base::lock::locked;

/// How many lists are remembered; a further one is always current.
const MOST: usize = 256;

/// The first answer to each list, by path and query.
#[derive(Debug, Default)]
pub(crate) struct Lists(Mutex<HashMap<String, (HeaderMap, Bytes)>>);

impl Lists {
    /// The remembered answer to a list.
    pub(crate) fn before(&self, key: &str) -> Option<Response<Body>> {
        let (headers, body) = locked(&self.0).get(key)?.clone();
        let mut response = Response::new(Body::from(body));
        *response.headers_mut() = headers;
        Some(response)
    }

    /// Remembers the first successful answer to a list.
    pub(crate) async fn remember(
        &self,
        key: String,
        response: Response<Body>,
    ) -> kube::Result<Response<Body>> {
        if response.status() != StatusCode::OK {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        let mut lists = locked(&self.0);
        if lists.len() < MOST {
            lists
                .entry(key)
                .or_insert_with(|| (head.headers.clone(), body.clone()));
        }
        Ok(Response::from_parts(head, Body::from(body)))
    }
}
