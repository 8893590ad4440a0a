//! From a fault's text to the fault, and what is said of a text that is none.

use std::str::FromStr;

use super::catalogue::{
    AGGREGATED_DOWN, ALLOWS, ALLOWS_RESIZE, ANSWERS_403, CATALOGUE, DROPS, FaultEntry, INJECTS,
    POLICY_REFUSES, SERVER_RESTARTS, TOKEN_EXPIRES, WEBHOOK_NO_DRY_RUN, WEBHOOK_REFUSES,
    WEBHOOK_TIMES_OUT,
};
use super::fault::{FrontFault, PolicyReason, WebhookCode};
use super::field::{FieldError, FieldPath};
use super::resources::Resources;
use super::trouble::Trouble;
use crate::nearest::{meant, nearest};

/// Why a fault cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// There is no such fault.
    #[error("unknown fault `{name}`{}", meant(*nearest))]
    Unknown {
        /// What was written.
        name: String,
        /// The known name that looks most like it, if one is near.
        nearest: Option<&'static str>,
    },
    /// The share is not a number from 0 to 1.
    #[error("the share of `{name}` must be a number from 0 to 1, not `{share}`")]
    Share {
        /// The fault.
        name: &'static str,
        /// What was written.
        share: String,
    },
    /// A fault without what it needs.
    #[error("`{name}` needs a parameter: `{name}{parameter}`")]
    Missing {
        /// The fault.
        name: &'static str,
        /// What has to follow its name.
        parameter: &'static str,
    },
    /// A fault with what it has no use for.
    #[error("`{name}` takes no parameter, not even `{parameter}`")]
    Unused {
        /// The fault.
        name: &'static str,
        /// What was written.
        parameter: String,
    },
    /// The parameter names no resource.
    #[error(
        "`{resource}` of `{name}` is no resource (`*` is all of them, `pods/exec` a subresource, \
         `/metrics` a path){}", meant(*nearest)
    )]
    Resource {
        /// The fault.
        name: &'static str,
        /// What was written.
        resource: String,
        /// The known resource that looks most like it, if one is near.
        nearest: Option<&'static str>,
    },
    /// What stands behind the resource is none of a few words.
    #[error("`{name}` takes no `{word}` behind the resource, but {known}{}", meant(*nearest))]
    Word {
        /// The fault.
        name: &'static str,
        /// What was written.
        word: String,
        /// The known word that looks most like it, if one is near.
        nearest: Option<&'static str>,
        /// All that are known.
        known: String,
    },
    /// The parameter is no number of requests.
    #[error("`{name}` needs a number of requests, such as `{name}=20`, not `{number}`")]
    Number {
        /// The fault.
        name: &'static str,
        /// What was written.
        number: String,
    },
    /// The field of an admission fault cannot be read.
    #[error("failed to read the field of `{name}`")]
    Field {
        /// The fault.
        name: &'static str,
        /// What is wrong with it.
        #[source]
        source: FieldError,
    },
    /// The value of an admission fault cannot be read.
    #[error("failed to read `{value}`, the value of `{name}`, as JSON")]
    Value {
        /// The fault.
        name: &'static str,
        /// What was written.
        value: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

impl FromStr for FrontFault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (written, parameter) = match text.split_once('=') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        if let Some(trouble) = Trouble::ALL
            .into_iter()
            .find(|known| known.name() == written)
        {
            return Ok(Self::Harness {
                trouble,
                share: share(trouble, parameter)?,
            });
        }
        let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == written) else {
            return Err(FaultError::Unknown {
                name: written.to_owned(),
                nearest: nearest(written, CATALOGUE.iter().map(|entry| entry.name)),
            });
        };
        let read = Read {
            entry: *entry,
            parameter,
        };
        Ok(match entry.name {
            ALLOWS => Self::AdmissionAllows {
                field: read.field(read.needed()?)?,
            },
            DROPS => Self::AdmissionDrops {
                field: read.field(read.needed()?)?,
            },
            INJECTS => {
                let (path, value) = read
                    .needed()?
                    .split_once(':')
                    .ok_or_else(|| read.missing())?;
                Self::AdmissionInjects {
                    value: read.json(value)?,
                    field: read.field(path)?,
                }
            }
            ALLOWS_RESIZE => read.alone(Self::AdmissionAllowsResize)?,
            POLICY_REFUSES => {
                let (resource, reason) = read.resource_and(&PolicyReason::ALL)?;
                Self::PolicyRefuses { resource, reason }
            }
            WEBHOOK_REFUSES => {
                let (resource, code) = read.resource_and(&WebhookCode::ALL)?;
                Self::WebhookRefuses { resource, code }
            }
            WEBHOOK_TIMES_OUT => Self::WebhookTimesOut {
                resource: read.resource_or_pods()?,
            },
            WEBHOOK_NO_DRY_RUN => Self::WebhookNoDryRun {
                resource: read.resource_or_pods()?,
            },
            ANSWERS_403 => Self::Answers403 {
                resource: read.resource(read.needed()?)?,
            },
            TOKEN_EXPIRES => Self::TokenExpires {
                after: read.number()?,
            },
            SERVER_RESTARTS => Self::ServerRestarts {
                after: read.number()?,
            },
            AGGREGATED_DOWN => read.alone(Self::AggregatedDown)?,
            _ => read.alone(Self::HostileTexts)?,
        })
    }
}

/// A fault's parameter, and what reads it.
struct Read<'a> {
    entry: FaultEntry,
    parameter: Option<&'a str>,
}

impl<'a> Read<'a> {
    fn missing(&self) -> FaultError {
        FaultError::Missing {
            name: self.entry.name,
            parameter: self.entry.parameter,
        }
    }

    fn needed(&self) -> Result<&'a str, FaultError> {
        self.parameter.ok_or_else(|| self.missing())
    }

    fn alone(&self, fault: FrontFault) -> Result<FrontFault, FaultError> {
        match self.parameter {
            None => Ok(fault),
            Some(parameter) => Err(FaultError::Unused {
                name: self.entry.name,
                parameter: parameter.to_owned(),
            }),
        }
    }

    fn field(&self, text: &str) -> Result<FieldPath, FaultError> {
        let name = self.entry.name;
        text.parse()
            .map_err(|source| FaultError::Field { name, source })
    }

    fn json(&self, text: &str) -> Result<serde_json::Value, FaultError> {
        serde_json::from_str(text).map_err(|source| FaultError::Value {
            name: self.entry.name,
            value: text.to_owned(),
            source,
        })
    }

    fn resource(&self, text: &str) -> Result<Resources, FaultError> {
        Resources::read(text).map_err(|nearest| FaultError::Resource {
            name: self.entry.name,
            resource: text.to_owned(),
            nearest,
        })
    }

    fn resource_or_pods(&self) -> Result<Resources, FaultError> {
        self.parameter
            .map_or_else(|| Ok(Resources::default()), |text| self.resource(text))
    }

    /// `RESOURCE` or `RESOURCE:WORD`.
    fn resource_and<T: Copy + Default>(
        &self,
        words: &[(&'static str, T)],
    ) -> Result<(Resources, T), FaultError> {
        let text = self.needed()?;
        let Some((resource, word)) = text.split_once(':') else {
            return Ok((self.resource(text)?, T::default()));
        };
        let resource = self.resource(resource)?;
        match words.iter().find(|(known, _)| *known == word) {
            Some((_, meant)) => Ok((resource, *meant)),
            None => {
                let known: Vec<_> = words.iter().map(|(known, _)| *known).collect();
                Err(FaultError::Word {
                    name: self.entry.name,
                    word: word.to_owned(),
                    nearest: nearest(word, known.iter().copied()),
                    known: known.join(", "),
                })
            }
        }
    }

    fn number(&self) -> Result<u64, FaultError> {
        let text = self.needed()?;
        text.parse().map_err(|_| FaultError::Number {
            name: self.entry.name,
            number: text.to_owned(),
        })
    }
}

/// The share that was written; without one, all.
fn share(trouble: Trouble, parameter: Option<&str>) -> Result<f64, FaultError> {
    let Some(text) = parameter else {
        return Ok(1.0);
    };
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(FaultError::Share {
            name: trouble.name(),
            share: text.to_owned(),
        }),
    }
}
