//! Who asks: the one administrator, by a token, who may do everything. Nobody else is let in, so that
//! roles grant nothing.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use super::refusal::Refusal;

/// What the administrator shows. Of no seed: whoever knows that would know the token, too.
pub(crate) struct Token(String);

impl Token {
    /// 128 bits from the operating system's chance.
    pub(crate) fn new() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The header that shows it.
    pub(crate) fn header(&self) -> HeaderValue {
        let value = format!("Bearer {}", self.0).parse();
        let mut value: HeaderValue = value.expect("it is plain ASCII");
        value.set_sensitive(true);
        value
    }

    /// Refuses a request that does not show it.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match headers.get(AUTHORIZATION) == Some(&self.header()) {
            true => Ok(()),
            false => Err(Refusal::new(401, "Unauthorized")),
        }
    }
}
