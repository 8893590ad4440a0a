//! Reaching the cluster: a client for one context, and proof that its server answers.

use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::client::{AuthError, ClientBuilder};
use kube::config::Config;
use tokio::time::{Instant, timeout};
use tower::util::MapFutureLayer;
use tower::{BoxError, Layer};
use winconform_core::config::{Durations, Limits};
use winconform_core::text::printable;
use winconform_core::way::{ApiReply, ApiRequest};

use super::kubeconfig::{Chosen, KubeconfigError, Sources, choose, unusable};
use crate::transport::{Api, Failure, Pace, causes, pause, words};

/// From the first packet to a standing TCP and TLS connection.
const CONNECT: Duration = Duration::from_secs(5);
/// All tries to reach the server; someone waits at a terminal.
const PATIENCE: Duration = Duration::from_secs(10);
/// Tries to reach the server.
const TRIES: u32 = 3;

/// Which cluster.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// The context; may be left out only where there is one.
    pub context: Option<String>,
    /// The kubeconfig; else `$KUBECONFIG`, `~/.kube/config`, or the pod's own.
    pub kubeconfig: Option<PathBuf>,
}

/// A cluster whose server answers.
#[derive(Clone)]
pub struct Cluster {
    /// Its API server.
    pub api: Api,
    /// The client underneath.
    pub client: kube::Client,
    /// The context it was reached by.
    pub context: String,
    /// What the kubeconfig calls it; in a pod there is none.
    pub name: Option<String>,
}

impl Cluster {
    /// The cluster that somebody else's client reaches, asked as one that [`connect`] has found.
    pub fn behind(
        client: kube::Client,
        context: &str,
        durations: Durations,
        limits: Limits,
    ) -> Self {
        let head = head_timeout(longest_head(&durations));
        let service = tower::service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        });
        let client = kube::Client::new(head.layer(service), "default");
        Self {
            api: Api::new(client.clone(), durations, limits),
            client,
            context: context.to_owned(),
            name: None,
        }
    }
}

/// Why there is no cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig gives no context to speak to.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// What the context says cannot be used for a client.
    #[error("the context `{}` cannot be used: {why}", printable(context))]
    Unusable {
        /// The context.
        context: String,
        /// Why.
        why: String,
    },
    /// No connection, or no answer.
    #[error(
        "the server {server} cannot be reached: {why}\n(check the address, the network and that the server runs)"
    )]
    Unreachable {
        /// Its address.
        server: String,
        /// What happened.
        why: String,
    },
    /// Its certificate is not trusted.
    #[error(
        "the certificate of {server} is not trusted: {why}\n(the certificate authority of the context belongs to another cluster, or is out of date)"
    )]
    Untrusted {
        /// Its address.
        server: String,
        /// Why.
        why: String,
    },
    /// TLS failed for another reason, such as a client certificate that was refused.
    #[error("no TLS connection to {server}: {why}")]
    Tls {
        /// Its address.
        server: String,
        /// Why.
        why: String,
    },
    /// No credential could be had.
    #[error("no credential for {server}: {why}\n(log in again)")]
    NoCredential {
        /// Its address.
        server: String,
        /// Why.
        why: String,
    },
    /// The server does not know who asks.
    #[error(
        "the server {server} does not accept the credential: {why}\n(it may have expired: log in again)"
    )]
    Unauthenticated {
        /// Its address.
        server: String,
        /// Its words.
        why: String,
    },
    /// The server does not let its version be read.
    #[error("the server {server} refuses to be asked for its version: {why}")]
    Forbidden {
        /// Its address.
        server: String,
        /// Its words.
        why: String,
    },
    /// Something answers that is no API server, or not now.
    #[error(
        "{server} does not answer as an API server does: {why}\n(is there a proxy in between?)"
    )]
    NotKubernetes {
        /// Its address.
        server: String,
        /// What it said.
        why: String,
    },
}

impl ConnectError {
    /// The exit code of the process: 2 for what is written wrong, 20 for a refusal to guess the
    /// cluster, 21 for a cluster out of reach.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Kubeconfig(
                KubeconfigError::ContextNotNamed { .. } | KubeconfigError::Ambiguous { .. },
            ) => 20,
            Self::Kubeconfig(_) | Self::Unusable { .. } => 2,
            Self::Unreachable { .. }
            | Self::Untrusted { .. }
            | Self::Tls { .. }
            | Self::NoCredential { .. }
            | Self::Unauthenticated { .. }
            | Self::Forbidden { .. }
            | Self::NotKubernetes { .. } => 21,
        }
    }
}

/// Chooses the context, makes a client and asks the server for its version.
pub async fn connect(
    options: &ConnectOptions,
    durations: Durations,
    limits: Limits,
) -> Result<Cluster, ConnectError> {
    // It is the only provider built in; to have installed it before is fine
    let _ = rustls::crypto::ring::default_provider().install_default();
    let sources = Sources::of_process(options.kubeconfig.clone());
    let Chosen {
        context,
        cluster,
        config,
    } = choose(&sources, options.context.as_deref()).await?;
    let server = address(&config);
    let client = client(config, &durations).map_err(|error| match &error {
        kube::Error::InferKubeconfig(error) => unusable(&context, error).into(),
        // Certificates and keys may be quoted by TLS' own words
        kube::Error::RustlsTls(_) => ConnectError::Unusable {
            context: context.clone(),
            why: "its certificates or key are not valid".to_owned(),
        },
        error => ConnectError::Unusable {
            context: context.clone(),
            why: words(error),
        },
    })?;
    let api = Api::new(client.clone(), durations, limits);
    reach(&api, &server).await?;
    Ok(Cluster {
        api,
        client,
        context,
        name: cluster,
    })
}

/// The configuration of the chosen context, for a client of somebody else's.
pub async fn kube_config(options: &ConnectOptions) -> Result<Config, ConnectError> {
    let sources = Sources::of_process(options.kubeconfig.clone());
    Ok(choose(&sources, options.context.as_deref()).await?.config)
}

/// A client under whose every request, watches included, lies a time-out for the answer's head.
fn client(mut config: Config, durations: &Durations) -> Result<kube::Client, kube::Error> {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = None;
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&head_timeout(longest_head(durations)))
        .build())
}

/// The longest that anything waits for the head of an answer.
fn longest_head(durations: &Durations) -> Duration {
    let Durations {
        api_answer,
        dry_run_answer,
        write_answer,
        exec_connect,
        ..
    } = durations;
    *api_answer
        .max(dry_run_answer)
        .max(write_answer)
        .max(exec_connect)
}

/// A time-out for the head of an answer; its body, a watch's above all, may take longer.
fn head_timeout<F, R>(
    limit: Duration,
) -> MapFutureLayer<impl Fn(F) -> BoxFuture<'static, Result<R, BoxError>> + Clone>
where
    F: Future<Output = Result<R, BoxError>> + Send + 'static,
{
    MapFutureLayer::new(move |answer| {
        let ends = async move { timeout(limit, answer).await.map_err(BoxError::from)? };
        ends.boxed()
    })
}

/// Asks for the version until the server answers, but not for long.
async fn reach(api: &Api, server: &str) -> Result<(), ConnectError> {
    let request = ApiRequest::get("/version");
    let deadline = Instant::now() + PATIENCE;
    let mut pace = Pace::new(api.durations().transport_pause * 4);
    for tried in 1.. {
        let left = deadline.saturating_duration_since(Instant::now());
        let failure = match timeout(left, api.send_once(&request)).await {
            Ok(Ok(reply)) => return read_version(&reply, server),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::NoAnswer(PATIENCE),
        };
        let next = pace.step();
        let (error, worth_it) = classify(failure, server);
        if !worth_it || tried >= TRIES || Instant::now() + next >= deadline {
            return Err(error);
        }
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
    let why = words(&failure);
    let error = match failure {
        Failure::Connection(error) => return classify_connection(&error, server),
        Failure::NoReply { status: 401, .. } => ConnectError::Unauthenticated { server, why },
        Failure::NoReply { .. } | Failure::TooLarge(_) | Failure::Invalid(_) => {
            ConnectError::NotKubernetes { server, why }
        }
        Failure::NoAnswer(_)
        | Failure::Stalled(_)
        | Failure::Stale { .. }
        | Failure::Broken(_)
        | Failure::Throttled { .. } => ConnectError::Unreachable { server, why },
    };
    (error, true)
}

fn classify_connection(error: &kube::Error, server: String) -> (ConnectError, bool) {
    let why = words(error);
    if causes(error).any(<dyn std::error::Error>::is::<AuthError>) {
        return (ConnectError::NoCredential { server, why }, false);
    }
    let tls = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            let why = printable(&reason.to_string());
            (ConnectError::Untrusted { server, why }, false)
        }
        Some(_) => (ConnectError::Tls { server, why }, false),
        None => (ConnectError::Unreachable { server, why }, true),
    }
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

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    use http::{Request, Response};
    use http_body_util::Full;
    use kube::client::Body;

    /// What the fake server does.
    #[derive(Clone, Copy)]
    enum Server {
        Answers(u16, &'static str),
        Refuses,
        Hangs,
        HasAnotherAuthority,
        WantsACertificate,
    }
    use Server::{Answers, Hangs, HasAnotherAuthority, Refuses, WantsACertificate};

    async fn reached(server: Server) -> Result<(), ConnectError> {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            match server {
                Answers(status, body) => {
                    let body = Full::new(bytes::Bytes::from_static(body.as_bytes()));
                    Ok(Response::builder()
                        .status(status)
                        .body(body)
                        .expect("a response"))
                }
                Refuses => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
                Hangs => std::future::pending().await,
                HasAnotherAuthority => {
                    let unknown = rustls::CertificateError::UnknownIssuer;
                    Err(io::Error::other(rustls::Error::InvalidCertificate(unknown)))
                }
                WantsACertificate => {
                    let alert = rustls::AlertDescription::CertificateRequired;
                    Err(io::Error::other(rustls::Error::AlertReceived(alert)))
                }
            }
        });
        let client = kube::Client::new(service, "default");
        let api = Api::new(client, Durations::default(), Limits::default());
        reach(&api, "10.0.0.1:6443").await
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_tells_its_version_is_reached() {
        let version = r#"{"major":"1","minor":"37","gitVersion":"v1.37.0"}"#;
        reached(Answers(200, version)).await.expect("reached");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dry_run_may_take_as_long_as_webhooks_do() {
        let service = tower::service_fn(|_: Request<Body>| async {
            pause(Duration::from_secs(30)).await;
            let body = Full::new(bytes::Bytes::from_static(b"{\"kind\":\"Pod\"}"));
            Ok::<_, io::Error>(Response::new(body))
        });
        let client = kube::Client::new(service, "default");
        let cluster = Cluster::behind(client, "c", Durations::default(), Limits::default());
        let path = "/api/v1/namespaces/default/pods";
        let dry = ApiRequest::get(format!("{path}?dryRun=All"));
        let reply = cluster.api.send_once(&dry).await.expect("an answer");
        assert_eq!(reply.status, 200);
        let plain = cluster.api.send_once(&ApiRequest::get(path)).await;
        assert!(matches!(plain, Err(Failure::NoAnswer(_))), "{plain:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn each_way_of_not_reaching_it_has_its_words() {
        for (server, begin, words) in [
            (
                Refuses,
                "the server 10.0.0.1:6443 cannot be reached",
                "connection refused",
            ),
            (
                Hangs,
                "the server 10.0.0.1:6443 cannot be reached",
                "no answer within 10s",
            ),
            (
                HasAnotherAuthority,
                "the certificate of 10.0.0.1:6443 is not trusted",
                "UnknownIssuer",
            ),
            (
                WantsACertificate,
                "no TLS connection to 10.0.0.1:6443",
                "CertificateRequired",
            ),
            (
                Answers(401, r#"{"message":"Unauthorized"}"#),
                "the server 10.0.0.1:6443 does not accept the credential",
                "Unauthorized",
            ),
            (
                Answers(403, r#"{"message":"rbac"}"#),
                "the server 10.0.0.1:6443 refuses",
                "rbac",
            ),
            (
                Answers(502, "<html>"),
                "10.0.0.1:6443 does not answer as an API server does",
                "status 502: <html>",
            ),
            (
                Answers(200, "{}"),
                "10.0.0.1:6443 does not answer as an API server does",
                "200",
            ),
        ] {
            let begun = Instant::now();
            let error = reached(server).await.expect_err("not reached");
            let said = error.to_string();
            assert!(said.starts_with(begin) && said.contains(words), "{said}");
            assert_eq!(error.exit_code(), 21);
            assert!(begun.elapsed() <= PATIENCE, "{said}: {:?}", begun.elapsed());
        }
    }

    #[test]
    fn exit_codes_tell_a_wrong_file_from_a_refusal_to_guess() {
        let known = vec!["a".to_owned(), "b".to_owned()];
        let unnamed = KubeconfigError::ContextNotNamed {
            known: known.clone(),
            current: None,
        };
        assert_eq!(ConnectError::from(unnamed).exit_code(), 20);
        let unknown = KubeconfigError::UnknownContext {
            name: "c".to_owned(),
            known,
        };
        assert_eq!(ConnectError::from(unknown).exit_code(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn every_request_of_the_client_ends_though_the_server_says_nothing() {
        let silent = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Full<bytes::Bytes>>, BoxError>>()
        });
        let layered = ClientBuilder::new(silent, "default")
            .with_layer(&head_timeout(Duration::from_secs(15)))
            .build();
        let begun = Instant::now();
        let error = layered
            .send(Request::new(Body::empty()))
            .await
            .expect_err("ends");
        assert_eq!(begun.elapsed(), Duration::from_secs(15));
        assert!(words(&error).contains("elapsed"), "{error}");
    }
}
