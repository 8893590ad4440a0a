//! A client of an API server: its connections, proxies, time-outs, and the headers of each request.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderValue, USER_AGENT};
use http::{Request, StatusCode, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use kube::config::Config;
use tokio::time::timeout;
use tower::util::{BoxCloneService, MapErrLayer, MapFutureLayer, option_layer, service_fn};
use tower::{BoxError, Layer, Service, ServiceExt as _};
use winconform_core::config::Durations;

use super::credential::Credential;
use super::proxy::Proxy;

/// The limit from the first packet to an open TCP and TLS connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The limit from the first packet to an open TCP connection, through a proxy if there is one. Shorter than
/// `CONNECT`, so that the error names a silent proxy instead of the server.
const TCP: Duration = Duration::from_secs(4);

/// A client that adds the program's `User-Agent` to each request that has none.
pub fn named(client: kube::Client, program: &str) -> kube::Client {
    use std::env::consts::{ARCH, OS};
    let agent = format!("{program}/{} ({OS}/{ARCH})", env!("CARGO_PKG_VERSION"));
    let agent = HeaderValue::try_from(agent).expect("names of programs and machines are plain");
    let service = service_fn(move |mut request: Request<Body>| {
        let client = client.clone();
        request
            .headers_mut()
            .entry(USER_AGENT)
            .or_insert_with(|| agent.clone());
        async move { client.send(request).await }
    });
    kube::Client::new(service, "default")
}

/// A client, through `proxy` if given. Every request, a watch too, has a time-out for the answer's head.
pub(crate) fn client(
    config: &Config,
    proxy: Option<&Proxy>,
    credential: Option<Arc<Credential>>,
    durations: &Durations,
) -> Result<kube::Client, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let limit = longest_head(durations);
    let Some(proxy) = proxy else {
        return over(tcp, None, config, credential, limit);
    };
    match proxy.url.scheme_str() {
        Some("socks5" | "socks5h") => {
            let mut socks = SocksV5::new(proxy.url.clone(), tcp);
            if let Some((user, password)) = proxy.intercept.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            over(socks, Some(proxy), config, credential, limit)
        }
        Some("https") => {
            // The cluster's certificate authority does not vouch for the proxy
            let provider = rustls::crypto::ring::default_provider();
            let tls = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider);
            let tls = tls.map_err(|error| kube::Error::Service(error.into()))?;
            let tls = tls.https_or_http().enable_http1().wrap_connector(tcp);
            over(tunnel(proxy, tls), Some(proxy), config, credential, limit)
        }
        _ => over(tunnel(proxy, tcp), Some(proxy), config, credential, limit),
    }
}

fn tunnel<C>(proxy: &Proxy, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.url.clone(), connector);
    match proxy.intercept.basic_auth() {
        Some(user) => tunnel.with_auth(user.clone()),
        None => tunnel,
    }
}

/// A client over `connector`. kube's own client gives no user to a SOCKS proxy.
fn over<H>(
    connector: H,
    proxy: Option<&Proxy>,
    config: &Config,
    credential: Option<Arc<Credential>>,
    limit: Duration,
) -> Result<kube::Client, kube::Error>
where
    H: Service<Uri> + Clone + Send + Sync + 'static,
    H::Response: Connection + Read + Write + Send + Unpin + 'static,
    H::Future: Send + 'static,
    H::Error: Into<BoxError>,
{
    let connector = MapErrLayer::new(H::Error::into).layer(connector);
    let connector = head_timeout(TCP).layer(connector);
    let connector = MapErrLayer::new(Proxy::blame(proxy)).layer(connector);
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let connector = head_timeout(CONNECT).layer(connector);
    let http = HttpClient::builder(TokioExecutor::new()).build(connector);
    let http = MapErrLayer::new(BoxError::from).layer(http);
    let http = head_timeout(limit).layer(http);
    let http = config.extra_headers_layer()?.layer(http);
    let http = option_layer(config.auth_layer()?).layer(http);
    let http = BoxCloneService::new(config.base_uri_layer().layer(http));
    let service = service_fn(move |mut request: Request<Body>| {
        let (http, credential) = (http.clone(), credential.clone());
        async move {
            let Some(credential) = credential else {
                return http.oneshot(request).await;
            };
            let header = Arc::clone(&credential).header().await?;
            let headers = request.headers_mut();
            headers.insert(AUTHORIZATION, header.clone());
            let answered = http.oneshot(request).await?;
            if answered.status() == StatusCode::UNAUTHORIZED {
                credential.expire(&header).await;
            }
            Ok(answered)
        }
    });
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

/// The longest limit of any request for the head of an answer.
pub(crate) fn longest_head(durations: &Durations) -> Duration {
    let longest = durations.api_answer.max(durations.dry_run_answer);
    longest
        .max(durations.write_answer)
        .max(durations.exec_connect)
}

/// A layer that limits the time to the head of an answer; a body, above all a watch's, may take longer.
pub(crate) fn head_timeout<F, R>(
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;
    use http_body_util::Full;
    use tokio::time::Instant;

    use crate::transport::error_text;

    #[tokio::test(start_paused = true)]
    async fn every_request_of_the_client_ends_though_the_server_says_nothing() {
        let silent = service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Full<bytes::Bytes>>, BoxError>>()
        });
        let layered = head_timeout(Duration::from_secs(15)).layer(silent);
        let layered = kube::Client::new(layered, "default");
        let begun = Instant::now();
        let error = layered
            .send(Request::new(Body::empty()))
            .await
            .expect_err("ends");
        assert_eq!(begun.elapsed(), Duration::from_secs(15));
        assert!(error_text(&error).contains("elapsed"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_says_nothing_is_named() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = silent.local_addr().expect("it is bound");
        for scheme in ["http", "socks5"] {
            let server = Uri::from_static("http://192.0.2.1:6443");
            let proxy = Proxy::choose(Some(&format!("{scheme}://{at}")), &server);
            let proxy = proxy.expect("it is one");
            let config = Config::new(server);
            let client = client(&config, proxy.as_ref(), None, &Durations::default());
            let client = client.expect("a client");
            let sent = client.send(Request::new(Body::empty())).await;
            let said = error_text(&sent.expect_err("it says nothing"));
            let named = format!("the proxy {scheme}://{at} (of the kubeconfig's `proxy-url`)");
            assert!(said.starts_with(&named), "{said}");
        }
    }
}
