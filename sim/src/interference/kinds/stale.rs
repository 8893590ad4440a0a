//! Lists as they once were.

use std::collections::HashMap;
use std::sync::Mutex;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::base::lock::locked;

/// How many lists are remembered; of those beyond, the first is as new as the last.
const MOST: usize = 256;

/// The first answer to each list, by path and query.
#[derive(Debug, Default)]
pub(crate) struct Lists(Mutex<HashMap<String, (HeaderMap, Bytes)>>);

impl Lists {
    /// What a list gave before.
    pub(crate) fn before(&self, asked: &str) -> Option<Response<Body>> {
        let (headers, body) = locked(&self.0).get(asked)?.clone();
        let mut response = Response::new(Body::from(body));
        *response.headers_mut() = headers;
        Some(response)
    }

    /// Remembers the answer to a list, if it is one and the first.
    pub(crate) async fn remember(
        &self,
        asked: String,
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
                .entry(asked)
                .or_insert_with(|| (head.headers.clone(), body.clone()));
        }
        Ok(Response::from_parts(head, Body::from(body)))
    }
}
