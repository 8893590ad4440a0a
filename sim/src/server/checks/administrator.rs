//! Authentication: the only user is the administrator, who has a token and may do everything. Roles
//! grant nothing, since there is no other user.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use super::refusal::Refusal;

/// The administrator's token. It does not derive from the seed, which would reveal it.
pub(crate) struct Token(String);

impl Token {
    /// Creates a token of 128 random bits from the operating system.
    pub(crate) fn new() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The header with the token.
    pub(crate) fn header(&self) -> HeaderValue {
        let value = format!("Bearer {}", self.0).parse();
        let mut value: HeaderValue = value.expect("it is plain ASCII");
        value.set_sensitive(true);
        value
    }

    /// Refuses a request without the token.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match headers.get(AUTHORIZATION) == Some(&self.header()) {
            true => Ok(()),
            false => Err(Refusal::new(401, "Unauthorized")),
        }
    }
}
