//! A query bound to ready fixtures: the request and the reader of its reply.

use serde_json::Value as Json;

use super::error::{ErrorKind, Result};
use super::exchange::{ApiRequest, HttpGet, HttpReply, Reply, Request, another_kind};

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

    /// Requests a list.
    pub(crate) fn list(
        path: String,
        reader: impl FnOnce(&[Json]) -> Result<T> + Send + 'a,
    ) -> Self {
        let request = Request::Api(ApiRequest::get(path));
        Self::new(request, move |reply| reader(reply.items()?))
    }

    /// Requests GETs, each with a reply.
    pub(crate) fn gets(
        gets: Vec<HttpGet>,
        reader: impl FnOnce(&[HttpReply]) -> Result<T> + Send + 'a,
    ) -> Self {
        let count = gets.len();
        Self::new(Request::Get(gets), move |reply| {
            let Reply::Get(replies) = reply else {
                return Err(another_kind());
            };
            reader(of_each(replies, count)?)
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

/// The replies, if their number is that of the requests.
pub(super) fn of_each<R>(replies: &[R], count: usize) -> Result<&[R]> {
    if replies.len() == count {
        return Ok(replies);
    }
    let detail = format!("{} replies to {count} requests", replies.len());
    Err(ErrorKind::UnrecognisedOutput.error(detail))
}
