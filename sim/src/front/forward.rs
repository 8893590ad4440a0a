//! Requests as they go upstream, and answers as they come back: end-to-end headers only, and the
//! body of an answer as it arrives.

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName,
    HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SEC_WEBSOCKET_EXTENSIONS, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use kube::client::Body;

use super::asked::Session;

/// Headers that concern one connection only.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// A request as it goes upstream; kube's client adds address and credentials.
pub(super) fn request(head: &Parts, session: Option<Session>, body: Bytes) -> Request<Body> {
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.uri.clone();
    let headers = request.headers_mut();
    *headers = head.headers.clone();
    end_to_end(headers);
    for name in [ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, EXPECT, HOST] {
        headers.remove(name);
    }
    if session.is_some() {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        for protocol in head.headers.get_all(UPGRADE) {
            headers.append(UPGRADE, protocol.clone());
        }
        // The frames are read here, uncompressed
        headers.remove(SEC_WEBSOCKET_EXTENSIONS);
    }
    request
}

/// An answer as it goes back to the client.
pub(super) fn response(mut response: Response<Body>) -> Response<Body> {
    end_to_end(response.headers_mut());
    response
}

/// Removes what concerns one connection only.
fn end_to_end(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}
