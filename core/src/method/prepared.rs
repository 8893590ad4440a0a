//! A query bound to what stands: the request, and the reader of its reply.

use serde_json::Value as Json;

use super::error::{ErrorKind, Result};
use super::exchange::{ApiRequest, HttpGet, HttpReply, Reply, Request};

/// The reader of one reply; unrecognised output is an error, never a default.
type Reader<'a, T> = Box<dyn FnOnce(&Reply) -> Result<T> + Send + 'a>;

/// What a transport should do, and what is made of its reply: bound once, they cannot disagree.
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

    /// A list of the API server; `otherwise` is the error where no API server answers.
    pub(crate) fn list(
        path: String,
        otherwise: &'static str,
        reader: impl FnOnce(&[Json]) -> Result<T> + Send + 'a,
    ) -> Self {
        let request = Request::Api(ApiRequest::get(path));
        Self::new(request, move |reply| reader(reply.items(otherwise)?))
    }

    /// As many replies as GETs; `to` is the assertion and `asked` are its requests, in words.
    pub(crate) fn gets(
        gets: Vec<HttpGet>,
        [to, asked]: [&'static str; 2],
        reader: impl FnOnce(&[HttpReply]) -> Result<T> + Send + 'a,
    ) -> Self {
        let count = gets.len();
        Self::new(Request::Get(gets), move |reply| {
            let Reply::Get(replies) = reply else {
                return Err(another_kind(to));
            };
            reader(of_each(replies, count, asked)?)
        })
    }

    /// The observation in the reply.
    pub fn read(self, reply: &Reply) -> Result<T> {
        (self.reader)(reply)
    }

    /// The same, with the observation made into something else.
    pub(crate) fn and_then<U: 'a>(
        self,
        then: impl FnOnce(T) -> Result<U> + Send + 'a,
    ) -> Prepared<'a, U> {
        let reader = self.reader;
        Prepared::new(self.request, move |reply| then(reader(reply)?))
    }
}

/// That something else answered than what was asked.
pub(super) fn another_kind(to: &str) -> super::ObservationError {
    ErrorKind::UnrecognisedOutput.error(format!("an answer of another kind to {to}"))
}

/// The replies, if there are as many as requests.
pub(super) fn of_each<'r, R>(replies: &'r [R], count: usize, asked: &str) -> Result<&'r [R]> {
    if replies.len() == count {
        return Ok(replies);
    }
    let detail = format!("{} replies to {count} {asked}", replies.len());
    Err(ErrorKind::UnrecognisedOutput.error(detail))
}
