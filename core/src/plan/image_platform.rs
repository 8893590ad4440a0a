//! Which systems an image is for, as its registry's manifests say (OCI image specification,
//! `image-index.md` and `config.md`; Docker's manifest lists are of the same shape).

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::facts::{Os, Pool, PoolName, WindowsBuild};
use crate::fixture::FixtureName;
use crate::text::bound;

/// A system that an image is for.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct Platform {
    /// `linux`, `windows` or any other text of the registry; `None` where it names none.
    pub os: Option<String>,
    #[serde(default, rename = "os.version", deserialize_with = "read_version")]
    pub build: Option<WindowsBuild>,
}

fn read_version<'de, D: Deserializer<'de>>(from: D) -> Result<Option<WindowsBuild>, D::Error> {
    let version = Option::<String>::deserialize(from)?;
    Ok(version.as_deref().and_then(WindowsBuild::parse_kernel))
}

/// What the registry has for a tag.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Manifest {
    /// One image for each of these platforms.
    Index(Vec<Platform>),
    /// A single image; the blob of this digest says what it is for.
    Single {
        /// As in `sha256:…`.
        config: String,
    },
}

/// Whether a tag has an image for a pool.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Offer {
    Fits,
    /// It has none; the platforms it has instead.
    Lacks(Vec<Platform>),
    /// The registry did not say, for this reason.
    Unknown(String),
}

#[derive(Deserialize)]
struct Written {
    manifests: Option<Vec<Entry>>,
    config: Option<Descriptor>,
}

#[derive(Deserialize)]
struct Entry {
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
}

impl Manifest {
    /// Reads a manifest, or says what is wrong with it.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let written: Written = serde_json::from_slice(json)
            .map_err(|error| format!("its manifest is not understood: {error}"))?;
        match (written.manifests, written.config) {
            (Some(entries), _) => {
                // An entry without a platform may be of any: containerd tries it (`images.Manifest` in its
                // `core/images/image.go`)
                let platforms = entries.into_iter();
                let platforms = platforms.map(|entry| entry.platform.unwrap_or_default());
                Ok(Self::Index(platforms.collect()))
            }
            (None, Some(Descriptor { digest })) if is_digest(&digest) => {
                Ok(Self::Single { config: digest })
            }
            (None, _) => Err("its manifest names neither manifests nor a config".to_owned()),
        }
    }
}

/// Whether a text is a SHA-256 digest: nothing else may become part of a path.
fn is_digest(text: &str) -> bool {
    let hexadecimal = |c: char| c.is_ascii_hexdigit();
    let digest = text.strip_prefix("sha256:");
    digest.is_some_and(|hex| hex.len() == 64 && hex.chars().all(hexadecimal))
}

impl Platform {
    /// Reads the config of a single image, or says what is wrong with it.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let platform: Self = serde_json::from_slice(json)
            .map_err(|error| format!("its config is not understood: {error}"))?;
        match platform.os {
            Some(_) => Ok(platform),
            None => Err("its config names no system".to_owned()),
        }
    }

    /// Whether a host runs it under process isolation, or may as far as is known.
    fn runs_on(&self, pool: &Pool, any_build: bool) -> bool {
        let Some(os) = &self.os else {
            return true;
        };
        match pool.os {
            Os::Linux => os == "linux",
            Os::Windows => {
                let compatible = |image: WindowsBuild, host: WindowsBuild| {
                    [host, host.fitting()].contains(&image)
                };
                let fits = match (self.build, pool.build) {
                    (Some(image), Some(host)) => compatible(image, host),
                    (None, _) | (_, None) => true,
                };
                os == "windows" && (any_build || fits)
            }
        }
    }
}

/// The systems that images are for, each once: `linux`, `windows 10.0.20348`. Foreign text.
fn systems(platforms: &[Platform]) -> BTreeSet<String> {
    let named = platforms.iter().filter_map(|one| {
        // Attestations have `unknown` here, which is no system
        let os = one.os.as_ref().filter(|os| *os != "unknown")?;
        Some(match one.build {
            Some(build) => format!("{os} {build}"),
            None => os.clone(),
        })
    });
    // Several images for one system differ in what does not matter here
    named.collect()
}

impl Offer {
    /// Whether a tag has a platform that fits a pool; with `any_build` the build does not matter.
    pub fn for_pool(platforms: &[Platform], pool: &Pool, any_build: bool) -> Self {
        match platforms.iter().any(|one| one.runs_on(pool, any_build)) {
            true => Self::Fits,
            false => Self::Lacks(platforms.to_vec()),
        }
    }

    /// The offer's word.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits => f.write_str("the registry has it for these nodes"),
            Self::Unknown(reason) => {
                write!(f, "whether it is for these nodes is not known: {reason}")
            }
            Self::Lacks(platforms) => {
                let shown: Vec<_> = systems(platforms).into_iter().collect();
                write!(f, "NOT for these nodes: {}", has(&shown))
            }
        }
    }
}

fn has(systems: &[String]) -> String {
    match systems {
        [] => "the registry has it for no system".to_owned(),
        some => format!("the registry has it for {} alone", some.join(", ")),
    }
}

/// An image that a registry does not have for the nodes that are to run it. They may get it another way, so
/// this decides nothing.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unoffered {
    pub image: String,
    pub pool: PoolName,
    pub build: Option<WindowsBuild>,
    /// The fixtures whose pods run it there.
    pub fixtures: BTreeSet<FixtureName>,
    /// The first systems that the registry has it for, such as `windows 10.0.17763`; foreign text.
    pub has: Vec<String>,
}

impl Unoffered {
    /// How many systems are kept.
    const KEPT: usize = 20;
    /// The most bytes of each.
    const SYSTEM: usize = 60;

    /// What follows from a registry's answer; `None` unless it is sure that nothing fits.
    pub fn from_offer(
        image: &str,
        (name, pool): (&PoolName, &Pool),
        fixtures: &BTreeSet<FixtureName>,
        offer: &Offer,
    ) -> Option<Self> {
        let Offer::Lacks(platforms) = offer else {
            return None;
        };
        let has = systems(platforms).into_iter().take(Self::KEPT);
        Some(Self {
            image: image.to_owned(),
            pool: name.clone(),
            build: pool.build,
            fixtures: fixtures.clone(),
            has: has
                .map(|mut system| {
                    bound(&mut system, Self::SYSTEM);
                    system
                })
                .collect(),
        })
    }
}

impl fmt::Display for Unoffered {
    /// Foreign text: not fit for a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { image, pool, .. } = self;
        write!(f, "{image} is not for {pool}")?;
        if let Some(build) = self.build {
            write!(f, " ({build})")?;
        }
        write!(f, ": {}", has(&self.has))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(os: Os, build: Option<WindowsBuild>) -> Pool {
        Pool {
            os,
            build,
            nodes: Vec::new(),
            spared: Vec::new(),
            excluded: Vec::new(),
            unusable: Vec::new(),
            taints: Vec::new(),
            handlers: None,
            runtimes: BTreeSet::new(),
        }
    }

    fn windows(build: WindowsBuild) -> Pool {
        pool(Os::Windows, Some(build))
    }

    /// In the shape of mcr.microsoft.com's and registry.k8s.io's lists.
    fn list() -> Vec<Platform> {
        let text = r#"{"schemaVersion": 2,
            "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json",
            "manifests": [
              {"mediaType": "application/vnd.docker.distribution.manifest.v2+json", "size": 1,
               "digest": "sha256:aa", "platform": {"architecture": "amd64", "os": "linux"}},
              {"mediaType": "application/vnd.docker.distribution.manifest.v2+json", "size": 1,
               "digest": "sha256:bb", "platform": {"architecture": "amd64", "os": "windows",
               "os.version": "10.0.17763.6414"}},
              {"mediaType": "application/vnd.docker.distribution.manifest.v2+json", "size": 1,
               "digest": "sha256:cc", "platform": {"architecture": "amd64", "os": "windows",
               "os.version": "10.0.20348.2762", "os.features": ["win32k"]}},
              {"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 1,
               "digest": "sha256:dd", "platform": {"architecture": "unknown", "os": "unknown"}}
            ]}"#;
        match Manifest::read(text.as_bytes()) {
            Ok(Manifest::Index(platforms)) => platforms,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_list_has_what_hosts_can_run_of_it() {
        let list = list();
        assert_eq!(list.len(), 4);
        let other = WindowsBuild::parse_label("10.0.25398").expect("a build");
        for (pool, fits) in [
            (pool(Os::Linux, None), true),
            (windows(WindowsBuild::SERVER_2019), true),
            (windows(WindowsBuild::SERVER_2022), true),
            (windows(WindowsBuild::SERVER_2025), true),
            (windows(other), false),
        ] {
            assert_eq!(
                Offer::for_pool(&list, &pool, false) == Offer::Fits,
                fits,
                "{pool:?}"
            );
        }
        let without_2022: Vec<_> = list
            .iter()
            .filter(|one| one.build != Some(WindowsBuild::SERVER_2022))
            .cloned()
            .collect();
        let lacks = Offer::for_pool(&without_2022, &windows(WindowsBuild::SERVER_2025), false);
        let said = "NOT for these nodes: the registry has it for linux, windows 10.0.17763 alone";
        assert_eq!(lacks.to_string(), said);
        let any = Offer::for_pool(&without_2022, &windows(WindowsBuild::SERVER_2025), true);
        assert_eq!(any, Offer::Fits);
        let none = Offer::for_pool(&list[..0], &pool(Os::Linux, None), true);
        assert!(none.to_string().ends_with("for no system"), "{none}");
    }

    #[test]
    fn a_windows_image_that_tells_no_build_may_be_of_any() {
        let config = br#"{"architecture": "amd64", "os": "windows", "rootfs": {}}"#;
        let one = [Platform::read(config).expect("a config")];
        let offer = Offer::for_pool(&one, &windows(WindowsBuild::SERVER_2022), false);
        assert_eq!(offer, Offer::Fits);
        let linux = Offer::for_pool(&one, &pool(Os::Linux, None), false);
        assert!(matches!(linux, Offer::Lacks(_)), "{linux:?}");
    }

    #[test]
    fn an_entry_that_names_no_platform_may_be_of_any() {
        let text = br#"{"manifests": [{"digest": "sha256:aa", "platform": {"os": "linux"}},
            {"digest": "sha256:bb"}]}"#;
        let Ok(Manifest::Index(list)) = Manifest::read(text) else {
            panic!("a list");
        };
        let pool = windows(WindowsBuild::SERVER_2022);
        assert_eq!(Offer::for_pool(&list, &pool, false), Offer::Fits);
        assert!(matches!(
            Offer::for_pool(&list[..1], &pool, false),
            Offer::Lacks(_)
        ));
    }

    #[test]
    fn only_what_is_sure_is_told_of_and_not_without_bounds() {
        let pool = windows(WindowsBuild::SERVER_2022);
        let name = PoolName::windows(WindowsBuild::SERVER_2022);
        let fixtures = BTreeSet::from([FixtureName::IIS]);
        let told = |offer| Unoffered::from_offer("a/iis:1", (&name, &pool), &fixtures, &offer);
        assert_eq!(told(Offer::Fits), None);
        assert_eq!(
            told(Offer::Unknown("it wants credentials".to_owned())),
            None
        );
        let platform = |os: String| Platform {
            os: Some(os),
            build: None,
        };
        let hostile = (0..100).map(|n| platform(format!("{n}{}", "x".repeat(1000))));
        let told = |list| told(Offer::Lacks(list)).expect("it is sure");
        let many = told(hostile.collect());
        assert!(many.to_string().len() < 2000, "{many}");
        let old = Platform {
            os: Some("windows".to_owned()),
            build: Some(WindowsBuild::SERVER_2019),
        };
        assert_eq!(
            told(vec![old.clone(), old]).to_string(),
            "a/iis:1 is not for windows-2022 (10.0.20348): the registry has it for windows \
             10.0.17763 alone"
        );
    }

    #[test]
    fn what_is_no_manifest_is_not_read_as_one() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let single = format!(r#"{{"schemaVersion": 2, "config": {{"digest": "{digest}"}}}}"#);
        assert_eq!(
            Manifest::read(single.as_bytes()),
            Ok(Manifest::Single { config: digest })
        );
        for text in [
            "<html>",
            "{}",
            "[]",
            r#"{"manifests": 5}"#,
            r#"{"config": {"digest": "../../../secrets"}}"#,
        ] {
            assert!(Manifest::read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Platform::read(b"{}").is_err());
    }
}
