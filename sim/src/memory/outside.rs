//! A client outside the cluster, as the proxy serves it.

use http::Request;
use http_body_util::BodyExt;

use super::Memory;
use crate::proxy;

impl Memory {
    /// What the proxy answers to a GET of a URL: its status and its body. Nothing for what is no
    /// URL.
    pub fn fetch(&self, url: &str) -> Option<(u16, String)> {
        let (head, ()) = Request::get(url).body(()).ok()?.into_parts();
        let response = proxy::answer(&self.view(), &head);
        let status = response.status().as_u16();
        // It is whole, and waits for nothing
        let body = futures::executor::block_on(response.into_body().collect()).ok()?;
        let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        Some((status, body))
    }
}
