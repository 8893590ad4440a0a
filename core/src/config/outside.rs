//! What lies outside the cluster: how a run observes from there, and what pods are to reach there.

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;

use super::read::read_object_name;
use super::written::WrittenTarget;
use crate::document::{Decoder, Fields, Node};

/// What lies outside the cluster: how a run observes from there, and what pods should reach there.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Outside {
    /// Whether the machine that runs winconform should reach the nodes' addresses; only then a run observes `NodePorts` from there. `false` unless set.
    #[schemars(with = "Option<bool>")]
    pub reaches_nodes: bool,
    /// The HTTP proxy through which it reaches them, such as `http://192.0.2.1:3128`; none unless set.
    #[schemars(with = "Option<String>")]
    pub proxy: Option<Target>,
    /// Whether a run creates a Service of type `LoadBalancer` for each Windows pool. These Services have the annotations that keep the address internal in the clouds that know one; elsewhere it may be public. `false` unless set.
    #[schemars(with = "Option<bool>")]
    pub load_balancers: bool,
    /// Whether a run requests the address at which clouds serve a machine's metadata, 169.254.169.254, from Windows pods and nodes; security tools may report that. `false` unless set.
    #[schemars(with = "Option<bool>")]
    pub metadata: bool,
    /// Web servers that Windows pods should reach by name; Microsoft's page for connection tests unless set.
    #[schemars(with = "Option<Vec<WrittenTarget>>")]
    pub names: Vec<Target>,
    /// Web servers that Windows pods should reach by address; Cloudflare's 1.1.1.1 unless set.
    #[schemars(with = "Option<Vec<WrittenTarget>>")]
    pub addresses: Vec<Target>,
    /// A folder that a server of SMB shares, to which Windows pods should write as the account of a credential spec; none unless set.
    pub share: Option<Share>,
}

impl Default for Outside {
    /// Windows itself requests the first to learn whether it is on the internet (Microsoft, Network
    /// Connectivity Status Indicator); the second answers at its address alone.
    fn default() -> Self {
        let target = |url: &str, says: &str| Target {
            says: says.to_owned(),
            ..Target::parse(url).expect("a URL")
        };
        Self {
            reaches_nodes: false,
            proxy: None,
            load_balancers: false,
            metadata: false,
            names: vec![target(
                "http://www.msftconnecttest.com/connecttest.txt",
                "Microsoft Connect Test",
            )],
            addresses: vec![target("http://1.1.1.1/", "cloudflare")],
            share: None,
        }
    }
}

/// A folder that a server of SMB shares.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Share {
    /// Its path, such as `\\files.example.com\builds`, of ASCII letters, digits and `.`, `-`, `_`, `$`.
    pub path: String,
    /// The name of the `GMSACredentialSpec` whose account may write there.
    pub credential_spec: String,
}

/// A web server outside the cluster that speaks plain HTTP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// Its name or address; an IPv6 address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The path that is requested.
    pub path: String,
    /// A text in its answer, by which it is recognised.
    pub says: String,
}

impl Target {
    /// Parses a URL; `says` stays empty.
    pub fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?;
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, 80),
        };
        let host = match host.strip_prefix('[') {
            Some(rest) => {
                let inner = rest.strip_suffix(']')?;
                inner.parse::<std::net::Ipv6Addr>().ok()?;
                inner
            }
            None => host,
        };
        let of_hosts = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
        // curl gets the path in quotes, and its escape is the backslash
        let of_paths = |c: char| c.is_ascii_graphic() && !"\"\\<>#".contains(c);
        // curl leaves out fragments and dot segments
        let plain = path.split('?').next().unwrap_or_default();
        let plain = plain.replace("%2e", ".").replace("%2E", ".");
        let mut segments = plain.split('/');
        let valid = !segments.any(|one| matches!(one, "." | ".."))
            && !host.is_empty()
            && host.len() <= 253
            && host.chars().all(of_hosts)
            && (!host.contains(':') || host.parse::<IpAddr>().is_ok())
            && port != 0
            && path.len() <= LONGEST_PATH
            && path.chars().all(of_paths);
        valid.then(|| Self {
            host: host.to_owned(),
            port,
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            says: String::new(),
        })
    }

    /// Its address; `None` for a name.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl fmt::Display for Target {
    /// Its URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host, port, path, ..
        } = self;
        match self.address() {
            Some(IpAddr::V6(_)) => write!(f, "http://[{host}]:{port}{path}"),
            _ => write!(f, "http://{host}:{port}{path}"),
        }
    }
}

/// Reads what lies outside; what is not set is as without.
pub(super) fn read(decoder: &mut Decoder<'_>, node: &Node) -> Option<Outside> {
    let mut fields = decoder.fields(node, "`outside`")?;
    let without = Outside::default();
    let outside = Outside {
        reaches_nodes: read_flag(decoder, &mut fields, "reaches-nodes"),
        proxy: fields.set(decoder, "proxy", |decoder, node| {
            read_url(decoder, node, "`proxy`")
        }),
        load_balancers: read_flag(decoder, &mut fields, "load-balancers"),
        metadata: read_flag(decoder, &mut fields, "metadata"),
        names: read_targets(decoder, &mut fields, "names").unwrap_or(without.names),
        addresses: read_targets(decoder, &mut fields, "addresses").unwrap_or(without.addresses),
        share: fields.set(decoder, "share", read_share),
    };
    fields.finish(decoder);
    Some(outside)
}

/// Whether a run does what is off unless set.
fn read_flag(decoder: &mut Decoder<'_>, fields: &mut Fields<'_>, key: &'static str) -> bool {
    let flag = fields.set(decoder, key, |decoder, node| {
        decoder.flag(node, &format!("`{key}`"))
    });
    flag.unwrap_or_default()
}

fn read_share(decoder: &mut Decoder<'_>, node: &Node) -> Option<Share> {
    let mut fields = decoder.fields(node, "`share`")?;
    let path = fields.read(decoder, "path", |decoder, node| {
        let hint = "the path of a folder of a share, such as `\\\\files.example.com\\builds`, of ASCII \
                    letters, digits and `.`, `-`, `_`, `$`";
        decoder.parsed(node, "`path`", ("is no such path", Some(hint)), |text| {
            is_of_share(text).then(|| text.to_owned())
        })
    });
    let credential_spec = fields.read(decoder, "credential-spec", |decoder, node| {
        read_object_name(decoder, node, "`credential-spec`", "a GMSACredentialSpec")
    });
    fields.finish(decoder);
    Some(Share {
        path: path?,
        credential_spec: credential_spec?,
    })
}

/// Whether a text is `\\SERVER\SHARE`, perhaps with folders behind it, and one word to `cmd`.
fn is_of_share(text: &str) -> bool {
    let in_names = |c: char| c.is_ascii_alphanumeric() || ".-_$".contains(c);
    // Windows drops dots at the end
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(in_names) && !name.ends_with('.');
    let names = text.strip_prefix(r"\\").map(|rest| rest.split('\\'));
    let is_path = names.is_some_and(|mut names| names.clone().count() > 1 && names.all(is_name));
    // The kubelet reads $$ in a variable as $
    is_path && text.len() <= LONGEST_SHARE && !text.contains("$$")
}

fn read_targets(
    decoder: &mut Decoder<'_>,
    fields: &mut Fields<'_>,
    key: &'static str,
) -> Option<Vec<Target>> {
    let node = fields.filled(key)?;
    decoder.kept(node, &format!("`{key}`"), |decoder, item| {
        let mut fields = decoder.fields(item, "what lies outside")?;
        let url = fields.read(decoder, "url", |decoder, node| {
            let target = read_url(decoder, node, "`url`")?;
            let hint = match (key, target.address()) {
                ("names", Some(_)) => "this host is an address: it belongs into `addresses`",
                ("addresses", None) => "this host is a name: it belongs into `names`",
                _ => return Some(target),
            };
            let message = format!("`url` of `{key}` is `{target}`");
            decoder.fail(node, message, Some(hint.to_owned()))
        });
        let says = fields.text(decoder, "says");
        fields.finish(decoder);
        let written = WrittenTarget {
            url: url?,
            says: says?,
        };
        Some(Target {
            says: written.says,
            ..written.url
        })
    })
}

fn read_url(decoder: &mut Decoder<'_>, node: &Node, what: &str) -> Option<Target> {
    let text = decoder.text(node, what)?;
    let target = Target::parse(text);
    if target.is_none() {
        let hint = "plain HTTP without user and password, such as `http://www.example.com/page` or \
                    `http://192.0.2.1:3128`";
        // The URL may have a password, and the place shows which one it is
        let message = format!("{what} is not a URL of the kind that winconform supports");
        decoder.report(node, message, Some(hint.to_owned()));
    }
    target
}

/// The most bytes of a URL's path: one session requests many of them.
const LONGEST_PATH: usize = 1024;

/// The most bytes of the path of a share; a file there has 260 (Microsoft, `MAX_PATH`).
const LONGEST_SHARE: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    const TABLES: &str = include_str!("outside.yaml");

    #[test]
    fn urls_read_as_they_print() {
        for (url, printed) in rows::<(String, String)>(TABLES, "read") {
            assert_eq!(
                Target::parse(&url).map(|url| url.to_string()).as_deref(),
                Some(&*printed)
            );
        }
        for url in rows::<String>(TABLES, "refused") {
            assert_eq!(Target::parse(&url), None, "{url}");
        }
    }

    #[test]
    fn a_share_is_one_word_to_a_shell() {
        for text in rows::<String>(TABLES, "shares") {
            assert!(is_of_share(&text), "{text}");
        }
        for text in rows::<String>(TABLES, "no-shares") {
            assert!(!is_of_share(&text), "{text}");
        }
    }
}
