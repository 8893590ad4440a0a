//! Connects to the cluster of one context, and proves that its server answers.

use crate::transport::Env;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use kube::client::AuthError;
use kube::config::Config;
use rustls::CertificateError;
use tokio::time::{Instant, timeout};
use tower::util::service_fn;
use tower::{BoxError, Layer};
use winconform_core::config::{Durations, Limits};
use winconform_core::method::{ApiReply, ApiRequest};
use winconform_core::text::printable;

use super::client::{client, head_timeout, longest_head, named};
use super::credential::{Credential, CredentialError};
use super::kubeconfig::{Chosen, KubeconfigError, Sources, choose, unusable};
use super::proxy::ProxyError;
use crate::transport::{Api, Failure, Pace, causes, error_text, pause};

/// The limit of all tries to reach the server, while a user waits at a terminal.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of tries to reach the server.
const TRIES: u32 = 3;

#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// The context; it may be left out only if there is exactly one.
    pub context: Option<String>,
    /// The kubeconfig; else `$KUBECONFIG`, `~/.kube/config`, or the service account of this pod.
    pub kubeconfig: Option<PathBuf>,
}

/// A cluster whose server answers.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub api: Api,
    pub context: String,
    /// The cluster's name in the kubeconfig; `None` in a pod.
    pub name: Option<String>,
    /// Whether the server's certificate is not verified, so that nothing proves which cluster answers.
    pub unverified: bool,
}

impl Cluster {
    /// The cluster that a given client reaches, with the same time-outs as after [`connect`].
    pub fn behind(
        env: Env,
        client: kube::Client,
        context: &str,
        durations: Durations,
        limits: Limits,
    ) -> Self {
        let head = head_timeout(longest_head(&durations));
        let service = service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        });
        let client = kube::Client::new(head.layer(service), "default");
        Self {
            api: Api::new(env, client, durations, limits),
            context: context.to_owned(),
            name: None,
            unverified: false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig gives no context to use.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The context's settings cannot be used for a client.
    #[error("the context `{}` cannot be used: {why}", printable(context))]
    Unusable { context: String, why: String },
    /// No connection, or no answer.
    #[error(
        "the server {server} cannot be reached: {why}\n(check the address, the network and that the server runs)"
    )]
    Unreachable { server: String, why: String },
    /// The proxy does not reach the server.
    #[error(
        "the server {server} cannot be reached through {why}\n(check that the proxy runs and forwards to the server; to connect without the proxy, add the server to NO_PROXY)"
    )]
    Proxy {
        server: String,
        /// The proxy, and what happened.
        why: String,
    },
    /// The server's certificate is not trusted.
    #[error(
        "the certificate of {server} is not trusted: {why}\n(the certificate authority of the context belongs to another cluster, or is out of date)"
    )]
    Untrusted { server: String, why: String },
    /// TLS failed for another reason, such as a client certificate that was refused.
    #[error("no TLS connection to {server}: {why}")]
    Tls { server: String, why: String },
    /// The credential could not be obtained.
    #[error("no credential for {server}: {why}")]
    NoCredential {
        server: String,
        /// Why, and what to do next.
        why: String,
    },
    /// The server does not accept the credential.
    #[error(
        "the server {server} does not accept the credential: {why}\n(it may have expired: log in again)"
    )]
    Unauthenticated { server: String, why: String },
    /// The server forbids this account to read its version.
    #[error("the server {server} refuses to be asked for its version: {why}")]
    Forbidden { server: String, why: String },
    /// The answer is not an API server's, or the API server does not work now.
    #[error(
        "{server} does not answer as an API server does: {why}\n(is there a proxy in between?)"
    )]
    NotKubernetes { server: String, why: String },
}

impl ConnectError {
    /// The exit code of the process: 2 for bad input, 20 if the user must name the cluster, 21 if the cluster
    /// cannot be reached.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Kubeconfig(
                KubeconfigError::ContextNotNamed { .. } | KubeconfigError::Ambiguous { .. },
            ) => 20,
            Self::Kubeconfig(_) | Self::Unusable { .. } => 2,
            Self::Unreachable { .. }
            | Self::Proxy { .. }
            | Self::Untrusted { .. }
            | Self::Tls { .. }
            | Self::NoCredential { .. }
            | Self::Unauthenticated { .. }
            | Self::Forbidden { .. }
            | Self::NotKubernetes { .. } => 21,
        }
    }
}

/// Chooses the context, builds a client and asks the server for its version.
pub async fn connect(
    options: &ConnectOptions,
    durations: Durations,
    limits: Limits,
) -> Result<Cluster, ConnectError> {
    // This is the only provider built in, so an earlier installation installed the same
    let _ = rustls::crypto::ring::default_provider().install_default();
    let sources = Sources::of_process(options.kubeconfig.clone());
    let Chosen {
        context,
        cluster,
        mut config,
        proxy,
    } = choose(&sources, options.context.as_deref()).await?;
    let server = address(&config);
    // kube's own providers run commands without limit, and panic on a token with a newline
    if let Some(mut provider) = config.auth_info.auth_provider.take() {
        match provider.config.remove("id-token") {
            Some(token) if provider.name == "oidc" => config.auth_info.token = Some(token.into()),
            _ => {
                let why = format!(
                    "the auth-provider `{}` is not supported\n\
                     (use a credential plugin: `exec` in place of `auth-provider`)",
                    printable(&provider.name)
                );
                return Err(ConnectError::Unusable { context, why });
            }
        }
    }
    let env = Env::system();
    let credential = Credential::extract(&env, &mut config.auth_info).await;
    let credential = credential.map_err(|error| {
        let target = format!("{server} (context `{}`)", printable(&context));
        no_credential(&error, target)
    })?;
    let client = client(&config, proxy.as_ref(), credential, &durations);
    let client = client.map_err(|error| match error {
        kube::Error::InferKubeconfig(error) => unusable(&context, &error).into(),
        error => ConnectError::Unusable {
            context: context.clone(),
            why: match &error {
                // A TLS error may quote certificates and keys
                kube::Error::RustlsTls(_) => "its certificates or key are not valid".to_owned(),
                error => error_text(error),
            },
        },
    })?;
    let api = Api::new(env, named(client, "winconform"), durations, limits);
    reach(&api, &server).await?;
    Ok(Cluster {
        api,
        context,
        name: cluster,
        unverified: config.accept_invalid_certs,
    })
}

/// Asks for the version until the server answers, at most `TRIES` times within `PATIENCE`.
async fn reach(api: &Api, server: &str) -> Result<(), ConnectError> {
    let request = ApiRequest::get("/version");
    let deadline = Instant::now() + PATIENCE;
    let mut pace = Pace::new(api.durations().transport_pause * 4);
    let mut earlier = None;
    for tried in 1.. {
        let left = deadline.saturating_duration_since(Instant::now());
        let failure = match timeout(left, api.send_once(&request)).await {
            Ok(Ok(reply)) => return read_version(&reply, server),
            Ok(Err(failure)) => failure,
            // The error of an earlier try says more, such as which proxy is silent
            Err(_) => match earlier {
                Some(error) => return Err(error),
                None => Failure::NoAnswer(PATIENCE),
            },
        };
        let next = pace.step();
        let (error, worth_it) = classify(failure, server);
        if !worth_it || tried >= TRIES || Instant::now() + next >= deadline {
            return Err(error);
        }
        earlier = Some(error);
        pause(next).await;
    }
    unreachable!("the tries are bounded")
}

fn read_version(reply: &ApiReply, server: &str) -> Result<(), ConnectError> {
    let server = server.to_owned();
    let why = reply.message();
    match reply.status {
        200 if reply.body["gitVersion"].is_string() => Ok(()),
        401 => Err(ConnectError::Unauthenticated { server, why }),
        403 => Err(ConnectError::Forbidden { server, why }),
        status => {
            let why = format!("status {status}: {}", printable(&reply.body.to_string()));
            Err(ConnectError::NotKubernetes { server, why })
        }
    }
}

/// What a failure means, and whether another try is worth it.
fn classify(failure: Failure, server: &str) -> (ConnectError, bool) {
    let server = server.to_owned();
    let why = error_text(&failure);
    let error = match failure {
        Failure::Connection(error) => return classify_connection(&error, server),
        Failure::NoReply { status: 401, .. } => ConnectError::Unauthenticated { server, why },
        Failure::NoReply { status: 429, .. } => ConnectError::Unreachable { server, why },
        Failure::NoReply { .. } | Failure::TooLarge(_) | Failure::Invalid(_) | Failure::NoExec => {
            ConnectError::NotKubernetes { server, why }
        }
        Failure::NoAnswer(_) | Failure::Stalled(_) | Failure::Stale { .. } | Failure::Broken(_) => {
            ConnectError::Unreachable { server, why }
        }
    };
    (error, true)
}

fn classify_connection(error: &kube::Error, server: String) -> (ConnectError, bool) {
    let why = error_text(error);
    if causes(error).any(<dyn Error>::is::<ProxyError>) {
        return (ConnectError::Proxy { server, why }, true);
    }
    if let Some(error) = causes(error).find_map(|cause| cause.downcast_ref::<CredentialError>()) {
        return (no_credential(error, server), false);
    }
    if causes(error).any(<dyn Error>::is::<AuthError>) {
        return (ConnectError::NoCredential { server, why }, false);
    }
    let is_parse = |cause: &hyper::Error| cause.is_parse();
    if causes(error)
        .filter_map(|cause| cause.downcast_ref())
        .any(is_parse)
    {
        let why = format!("{why}; if it speaks TLS, its address has to begin with https://");
        return (ConnectError::NotKubernetes { server, why }, false);
    }
    let tls = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            let why = match printable(&reason.to_string()) {
                _ if let CertificateError::ExpiredContext { not_after, .. } = reason => {
                    let end = i64::try_from(not_after.as_secs()).unwrap_or(i64::MAX);
                    let end = Timestamp::from_second(end).unwrap_or(Timestamp::MAX);
                    format!("it expired at {end}: renew that of the server")
                }
                why if why.contains("CaUsedAsEndEntity") => {
                    "it is that of an authority itself (CA:TRUE); give the server one that the \
                     authority has signed"
                        .to_owned()
                }
                why => why,
            };
            (ConnectError::Untrusted { server, why }, false)
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            let why = format!("{why}; if it speaks no TLS, its address has to begin with http://");
            (ConnectError::Tls { server, why }, false)
        }
        Some(_) => (ConnectError::Tls { server, why }, false),
        None => (ConnectError::Unreachable { server, why }, true),
    }
}

fn no_credential(error: &CredentialError, server: String) -> ConnectError {
    let why = format!("{}\n({})", error.why, error.hint);
    ConnectError::NoCredential { server, why }
}

/// The server's address without a user name or password.
fn address(config: &Config) -> String {
    let url = &config.cluster_url;
    let host = printable(url.host().unwrap_or_default());
    match url.port_u16() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    use http::{Request, Response};
    use http_body_util::Full;
    use kube::client::Body;
    use rustls::pki_types::UnixTime;

    /// The error's text after requests that all fail in this way, or with `None` never end.
    async fn said(fails: fn() -> Option<rustls::Error>) -> String {
        let service = service_fn(move |_: Request<Body>| async move {
            match fails() {
                Some(error) => Err::<Response<Body>, _>(io::Error::other(error)),
                None => std::future::pending().await,
            }
        });
        let client = kube::Client::new(service, "default");
        let (durations, limits) = (Durations::default(), Limits::default());
        let api = Api::new(Env::system(), client, durations, limits);
        let error = reach(&api, "10.0.0.1:6443").await.expect_err("not reached");
        assert_eq!(error.exit_code(), 21);
        error.to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn a_dry_run_may_take_as_long_as_webhooks_do() {
        let service = service_fn(|_: Request<Body>| async {
            pause(Duration::from_secs(30)).await;
            let body = Full::new(bytes::Bytes::from_static(b"{\"kind\":\"Pod\"}"));
            Ok::<_, io::Error>(Response::new(body))
        });
        let client = kube::Client::new(service, "default");
        let (durations, limits) = (Durations::default(), Limits::default());
        let cluster = Cluster::behind(Env::system(), client, "c", durations, limits);
        let path = "/api/v1/namespaces/default/pods";
        let dry = ApiRequest::get(format!("{path}?dryRun=All"));
        let reply = cluster.api.send_once(&dry).await.expect("an answer");
        assert_eq!(reply.status, 200);
        let plain = cluster.api.send_once(&ApiRequest::get(path)).await;
        assert!(matches!(plain, Err(Failure::NoAnswer(_))), "{plain:?}");
    }

    /// `tests/it/bad_input` tests servers that answer or refuse otherwise against the whole tool.
    #[tokio::test(start_paused = true)]
    async fn what_ends_before_an_answer_has_its_words() {
        type Fails = fn() -> Option<rustls::Error>;
        let rows: [(Fails, &str, &str); 5] = [
            (
                || None,
                "the server 10.0.0.1:6443 cannot be reached",
                "no answer within 10s",
            ),
            (
                || Some(CertificateError::UnknownIssuer.into()),
                "the certificate of 10.0.0.1:6443 is not trusted",
                "UnknownIssuer",
            ),
            (
                || {
                    let [time, not_after] = [2_000_000_000, 1_767_225_600]
                        .map(|secs| UnixTime::since_unix_epoch(Duration::from_secs(secs)));
                    Some(CertificateError::ExpiredContext { time, not_after }.into())
                },
                "the certificate of 10.0.0.1:6443 is not trusted",
                "it expired at 2026-01-01T00:00:00Z",
            ),
            (
                || {
                    let own = std::sync::Arc::new(io::Error::other("CaUsedAsEndEntity"));
                    let own = rustls::OtherError(own);
                    Some(CertificateError::Other(own).into())
                },
                "the certificate of 10.0.0.1:6443 is not trusted",
                "it is that of an authority itself (CA:TRUE)",
            ),
            (
                || {
                    let alert = rustls::AlertDescription::CertificateRequired;
                    Some(rustls::Error::AlertReceived(alert))
                },
                "no TLS connection to 10.0.0.1:6443",
                "CertificateRequired",
            ),
        ];
        for (fails, begin, words) in rows {
            let begun = Instant::now();
            let said = said(fails).await;
            assert!(said.starts_with(begin) && said.contains(words), "{said}");
            assert!(begun.elapsed() <= PATIENCE, "{said}: {:?}", begun.elapsed());
        }
    }
}
