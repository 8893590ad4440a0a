//! A query bound to ready fixtures: the request and the reader of its reply.

use serde_json::Value as Json;

use super::error::{ErrorKind, Result};
use super::exchange::{ApiRequest, HttpGet, HttpReply, Reply, Request};

/// The reader of one reply; unrecognised output is an error, never a default.
type Reader<'a, T> = Box<dyn FnOnce(&Reply) -> Result<T> + Send + 'a>;

/// A request and the reader of its reply; one query creates both, so that they cannot disagree.
pub struct Prepared<'a, T> {
    pub request: Request,
    reader: Reader<'a, T>,
}

impl<'a, T: 'a> Prepared<'a, T> {
    pub(crate) fn new(
        request: Request,
        reader: impl FnOnce(&Reply) -> Result<T> + Send + 'a,
    ) -> Self {
        Self {
            request,
            reader: Box::new(reader),
        }
    }

    /// Requests a list; `otherwise` is the error where the reply is not of the API server.
    pub(crate) fn list(
        path: String,
        otherwise: &'static str,
        reader: impl FnOnce(&[Json]) -> Result<T> + Send + 'a,
    ) -> Self {
        let request = Request::Api(ApiRequest::get(path));
        Self::new(request, move |reply| reader(reply.items(otherwise)?))
    }

    /// Requests GETs, each with a reply; `to` names the assertion and `requests` its requests, in words.
    pub(crate) fn gets(
        gets: Vec<HttpGet>,
        [to, requests]: [&'static str; 2],
        reader: impl FnOnce(&[HttpReply]) -> Result<T> + Send + 'a,
    ) -> Self {
        let count = gets.len();
        Self::new(Request::Get(gets), move |reply| {
            let Reply::Get(replies) = reply else {
                return Err(another_kind(to));
            };
            reader(of_each(replies, count, requests)?)
        })
    }

    /// Reads the observation from the reply.
    pub fn read(self, reply: &Reply) -> Result<T> {
        (self.reader)(reply)
    }

    /// The same request, where `then` converts the observation.
    pub(crate) fn and_then<U: 'a>(
        self,
        then: impl FnOnce(T) -> Result<U> + Send + 'a,
    ) -> Prepared<'a, U> {
        let reader = self.reader;
        Prepared::new(self.request, move |reply| then(reader(reply)?))
    }
}

/// The error for a reply of another kind than the request.
pub(super) fn another_kind(to: &str) -> super::ObservationError {
    ErrorKind::UnrecognisedOutput.error(format!("an answer of another kind to {to}"))
}

/// The replies, if their number is that of the requests.
pub(super) fn of_each<'r, R>(replies: &'r [R], count: usize, requests: &str) -> Result<&'r [R]> {
    if replies.len() == count {
        return Ok(replies);
    }
    let detail = format!("{} replies to {count} {requests}", replies.len());
    Err(ErrorKind::UnrecognisedOutput.error(detail))
}
