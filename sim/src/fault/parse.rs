//! A fault, and its textual form.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::kind::{CATALOGUE, FaultInfo, FaultKind, Parameter};
use super::place::{self, Place};
use crate::base::nearest::{meant, nearest};
use crate::topology::Pool;

/// One thing that is wrong in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProductFault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Where the fault is; for a way, where the way begins.
    pub place: Place,
    /// Where the way ends.
    pub towards: Option<Place>,
}

impl ProductFault {
    /// Every kind of fault there is.
    pub fn catalogue() -> impl Iterator<Item = &'static FaultInfo> {
        CATALOGUE.iter()
    }
}

impl FaultKind {
    /// This kind of fault at a place.
    pub fn on(self, place: impl Into<Place>) -> ProductFault {
        ProductFault {
            kind: self,
            place: place.into(),
            towards: None,
        }
    }
}

impl fmt::Display for ProductFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.info().name)?;
        match (&self.place, &self.towards) {
            (from, Some(to)) => write!(f, "={from}:{to}"),
            (place, None) if *place == self.kind.info().parameter.unsaid() => Ok(()),
            (place, None) => write!(f, "={place}"),
        }
    }
}

impl FromStr for ProductFault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let Some(info) = Self::catalogue().find(|info| info.name == name) else {
            let near = nearest(name, Self::catalogue().map(|info| info.name));
            return Err(UnknownFault::Name(name.to_owned(), near));
        };
        let place = |text: &str| {
            let wrong = |_| UnknownFault::Part(place::unknown(text, info.parameter));
            text.parse::<Place>().map_err(wrong)
        };
        let wrong = |why: String| Err(UnknownFault::Parameter(format!("`{name}` {why}")));
        let (first, towards) = match (info.parameter, value) {
            (Parameter::None, Some(value)) => {
                return wrong(format!("takes no parameter, not even `{value}`"));
            }
            (Parameter::Way, Some(value)) => match value.split_once(':') {
                Some((from, to)) => (place(from)?, Some(place(to)?)),
                None => {
                    return wrong(format!(
                        "lies between two places: `{name}=linux:windows-2022`, not `{value}`"
                    ));
                }
            },
            (Parameter::Way, None) => {
                let parameter = info.parameter.written();
                return wrong(format!("needs a parameter: `{name}{parameter}`"));
            }
            (parameter, Some("all")) if parameter.is_of_windows() => (Place::Windows, None),
            (_, Some(value)) => (place(value)?, None),
            (_, None) => (info.parameter.unsaid(), None),
        };
        let namespaced = |place: &Place| matches!(place, Place::Namespace(_));
        if !info.parameter.takes_namespaces()
            && (namespaced(&first) || towards.as_ref().is_some_and(namespaced))
        {
            return wrong(format!(
                "is one of nodes, not of a namespace: `{name}=windows-2022`"
            ));
        }
        if info.parameter.is_of_windows() && first == Place::Pool(Pool::Linux) {
            return wrong(format!("is one of Windows nodes: `{name}=windows-2022`"));
        }
        Ok(Self {
            kind: info.kind,
            place: first,
            towards,
        })
    }
}

/// Why a text names no fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownFault {
    /// No fault has this name; the second field is the most similar known name, if one is near.
    #[error("no fault is called `{0}`{near}", near = meant(*.1))]
    Name(String, Option<&'static str>),
    /// The fault does not take what follows its name.
    #[error("the fault {0}")]
    Parameter(String),
    /// A part of the text is no place or no time.
    #[error("{0}")]
    Part(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_the_catalogue_reads_as_it_prints() {
        for info in ProductFault::catalogue() {
            let values: &[&str] = match info.parameter {
                Parameter::None => &[""],
                Parameter::Nodes | Parameter::WindowsNodes => &["", "=windows-2022", "=node/a"],
                Parameter::Pods => &["", "=windows", "=namespace/a"],
                Parameter::WindowsPods => &["", "=windows-2022", "=namespace/a"],
                Parameter::Way => &["=windows-2019:linux", "=node/a:node/b"],
            };
            for value in values {
                let text = format!("{}{value}", info.name);
                let fault: ProductFault = text.parse().expect("in the catalogue");
                assert_eq!(fault.to_string(), text);
                assert_eq!(fault.kind, info.kind);
            }
        }
    }

    #[test]
    fn errors_say_what_to_write_instead() {
        let error = |text: &str| text.parse::<ProductFault>().expect_err(text).to_string();
        assert_eq!(
            error("kubeproxy-dead=linux"),
            "no fault is called `kubeproxy-dead`; did you mean `kube-proxy-dead`?"
        );
        assert_eq!(error("moon=linux"), "no fault is called `moon`");
        assert_eq!(
            error("traffic-cut"),
            "the fault `traffic-cut` needs a parameter: `traffic-cut=FROM:TO`"
        );
        assert_eq!(
            error("traffic-cut=linux"),
            "the fault `traffic-cut` lies between two places: `traffic-cut=linux:windows-2022`, not `linux`"
        );
        assert_eq!(
            error("service-answers-wrong=linux"),
            "the fault `service-answers-wrong` takes no parameter, not even `linux`"
        );
        assert_eq!(
            error("untainted=linux"),
            "the fault `untainted` is one of Windows nodes: `untainted=windows-2022`"
        );
        assert_eq!(
            error("node-not-ready=namespace/a"),
            "the fault `node-not-ready` is one of nodes, not of a namespace: `node-not-ready=windows-2022`"
        );
        assert_eq!(
            error("kube-proxy-dead=win"),
            "`win` is no place; there are all, windows, linux, windows-2019, windows-2022, \
             windows-2025 and node/NAME"
        );
        assert_eq!(
            error("untainted=windows-2022-a"),
            "`windows-2022-a` is no place; did you mean `node/windows-2022-a`? there are all, windows, windows-2019, \
             windows-2022, windows-2025 and node/NAME"
        );
        assert_eq!(
            error("untainted=moon"),
            "`moon` is no place; there are all, windows, windows-2019, windows-2022, windows-2025 \
             and node/NAME"
        );
        let of_pods = ProductFault::catalogue().find(|info| info.parameter == Parameter::Pods);
        let name = of_pods.expect("there are such").name;
        assert!(error(&format!("{name}=moon")).ends_with(", node/NAME and namespace/NAME"));
    }
}
