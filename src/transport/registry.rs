//! Asking image registries which systems a tag is for: the API of OCI's distribution specification,
//! with the anonymous tokens of Docker's (`docs/content/spec/auth/token.md` of distribution).
//!
//! Nothing depends on an answer: a registry that does not answer, or not to everybody, leaves unknown
//! what it has. Credentials are never sent. Out of scope: proxies; what nodes see of a registry.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::header::{ACCEPT, AUTHORIZATION, LOCATION, USER_AGENT, WWW_AUTHENTICATE};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use tokio::time::timeout;
use winconform_core::plan::{Manifest, Platform};
use winconform_core::text::printable;

use super::env::Env;
use super::error_text::error_text;

/// Images asked for at once.
const AT_ONCE: usize = 8;
/// Bytes of one answer.
const KEPT: usize = 4 << 20;
/// How often an answer may send elsewhere.
const REDIRECTS: usize = 5;

/// The manifests that are understood.
const TYPES: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

type Http = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// The systems that images are for, each in the order of the images; or why nobody knows. `limit`
/// is for all requests for one image.
pub(crate) async fn platforms(
    env: &Env,
    images: &[String],
    limit: Duration,
) -> Vec<Result<Vec<Platform>, String>> {
    if images.is_empty() {
        return Vec::new();
    }
    let http = match client(env) {
        Ok(http) => http,
        Err(why) => return images.iter().map(|_| Err(why.clone())).collect(),
    };
    let each = images.iter().map(|image| {
        let http = http.clone();
        async move {
            let asked = timeout(limit, of_image(&http, image)).await;
            asked.unwrap_or_else(|_| Err(format!("no answer within {} s", limit.as_secs())))
        }
    });
    let each: Vec<_> = each.collect();
    let told = futures::stream::iter(each).buffered(AT_ONCE);
    told.collect().await
}

fn client(env: &Env) -> Result<Http, String> {
    if env.is_simulated() {
        return Err("there is no network but the one made up".to_owned());
    }
    let connector = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
        .map_err(|error| format!("this machine's certificate authorities: {error}"))?
        .https_or_http()
        .enable_http1()
        .build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// An image as its name leads to it.
struct Reference<'i> {
    /// Scheme and host.
    base: String,
    repository: &'i str,
    /// A tag or a digest.
    version: &'i str,
}

impl<'i> Reference<'i> {
    fn parse(image: &'i str) -> Result<Self, String> {
        let (host, rest) = image.split_once('/').unwrap_or_default();
        if !(host.contains(['.', ':']) || host == "localhost") || host == "docker.io" {
            return Err("Docker's registry has no name of its own to be asked by".to_owned());
        }
        let (repository, version) = match rest.split_once('@') {
            // With a digest the tag does not matter
            Some((named, digest)) => (named.split(':').next().unwrap_or_default(), digest),
            None => rest.rsplit_once(':').unwrap_or((rest, "latest")),
        };
        let scheme = if is_loopback(host) { "http" } else { "https" };
        Ok(Self {
            base: format!("{scheme}://{host}"),
            repository,
            version,
        })
    }

    fn uri(&self, what: &str, which: &str) -> Result<Uri, String> {
        let text = format!("{}/v2/{}/{what}/{which}", self.base, self.repository);
        text.parse().map_err(|_| "its name is no URL's".to_owned())
    }
}

/// Whether a host, with or without its port, is this machine: there alone HTTP will do.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    name == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback())
}

async fn of_image(http: &Http, image: &str) -> Result<Vec<Platform>, String> {
    let reference = Reference::parse(image)?;
    let manifest = reference.uri("manifests", reference.version)?;
    let mut token = None;
    let body = read(http, manifest, &mut token).await?;
    match Manifest::read(&body)? {
        Manifest::Index(platforms) => Ok(platforms),
        Manifest::Single { config } => {
            let blob = reference.uri("blobs", &config)?;
            let body = read(http, blob, &mut token).await?;
            Ok(vec![Platform::read(&body)?])
        }
    }
}

/// What stands at a path of a registry, with a token for everybody where it wants one.
async fn read(http: &Http, uri: Uri, token: &mut Option<String>) -> Result<Bytes, String> {
    let mut answer = get(http, uri.clone(), token.as_deref()).await?;
    if answer.status() == StatusCode::UNAUTHORIZED && token.is_none() {
        *token = Some(anonymous(http, &uri, answer.headers()).await?);
        answer = get(http, uri, token.as_deref()).await?;
    }
    match answer.status() {
        StatusCode::OK => Ok(answer.into_body()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(CREDENTIALS.to_owned()),
        StatusCode::NOT_FOUND => {
            Err("its registry has nothing of this name (status 404)".to_owned())
        }
        status => Err(format!(
            "its registry answered with status {}",
            status.as_u16()
        )),
    }
}

const CREDENTIALS: &str = "its registry wants credentials";

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// A token of the service that the refusal names.
async fn anonymous(http: &Http, refused: &Uri, headers: &HeaderMap) -> Result<String, String> {
    let mut challenges = headers.get_all(WWW_AUTHENTICATE).iter();
    let bearer = challenges.find_map(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let bearer = bearer.ok_or(CREDENTIALS)?;
    let realm = parameter(bearer, "realm").ok_or(CREDENTIALS)?;
    let own = |key| Some(format!("{key}={}", super::encode(parameter(bearer, key)?)));
    let query: Vec<_> = ["service", "scope"].into_iter().filter_map(own).collect();
    let mark = if realm.contains('?') { '&' } else { '?' };
    let uri = format!("{realm}{mark}{}", query.join("&"));
    let uri: Uri = uri.parse().map_err(|_| CREDENTIALS.to_owned())?;
    if !may_follow(refused, &uri) {
        return Err(format!("its registry sends to {}", shown(&uri)));
    }
    let answer = get(http, uri, None).await?;
    let token: Option<Token> = serde_json::from_slice(answer.body()).ok();
    let token = token.and_then(|token| token.token.or(token.access_token));
    match (answer.status(), token) {
        (StatusCode::OK, Some(token)) => Ok(token),
        _ => Err(CREDENTIALS.to_owned()),
    }
}

/// The value of `key="value"` in a challenge (RFC 9110, section 11.2).
fn parameter<'b>(bearer: &'b str, key: &str) -> Option<&'b str> {
    let mut rest = bearer;
    loop {
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        if name.trim_start_matches([',', ' ']) == key {
            return Some(value);
        }
        rest = after;
    }
}

/// The answer at a URI, wherever that sends.
async fn get(http: &Http, uri: Uri, token: Option<&str>) -> Result<Response<Bytes>, String> {
    let (mut at, mut token) = (uri, token);
    for _ in 0..=REDIRECTS {
        let agent = concat!("winconform/", env!("CARGO_PKG_VERSION"));
        let mut request = Request::get(at.clone()).header(ACCEPT, TYPES);
        request = request.header(USER_AGENT, agent);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request
            .body(Empty::new())
            .map_err(|_| "its registry's answer cannot be followed".to_owned())?;
        let answer = http.request(request).await;
        let answer = answer.map_err(|error| format!("{}: {}", shown(&at), error_text(&error)))?;
        let (head, body) = answer.into_parts();
        if !head.status.is_redirection() {
            let body = Limited::new(body, KEPT).collect().await;
            let body = body.map_err(|error| format!("{}: {}", shown(&at), error_text(&*error)))?;
            return Ok(Response::from_parts(head, body.to_bytes()));
        }
        let to = head.headers.get(LOCATION).and_then(|to| to.to_str().ok());
        let to = to
            .and_then(|to| resolved(&at, to))
            .ok_or("its registry sends nowhere")?;
        if !may_follow(&at, &to) {
            return Err(format!("its registry sends to {}", shown(&to)));
        }
        if to.authority() != at.authority() {
            token = None;
        }
        at = to;
    }
    Err("its registry sends from one place to the next".to_owned())
}

/// Where a `Location` leads; of relative ones those that begin with a slash.
fn resolved(from: &Uri, to: &str) -> Option<Uri> {
    if to.starts_with('/') && !to.starts_with("//") {
        let authority = from.authority()?;
        return format!("{}://{authority}{to}", from.scheme_str()?)
            .parse()
            .ok();
    }
    to.parse().ok()
}

/// Whether one place may send to another: over TLS, and to this machine only from this machine.
fn may_follow(from: &Uri, to: &Uri) -> bool {
    let [from_here, to_here] = [from, to].map(|uri| uri.host().is_some_and(is_loopback));
    match to.scheme_str() {
        Some("https") => !to_here || from_here,
        Some("http") => to_here && from_here,
        _ => false,
    }
}

/// The host, which is all of a URI that may be told: tokens stand in queries.
fn shown(uri: &Uri) -> String {
    printable(uri.host().unwrap_or("nowhere"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use super::*;
    use http::Response;
    use http_body_util::Full;
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::net::TcpListener;
    use winconform_core::facts::WindowsBuild;

    const LIMIT: Duration = Duration::from_secs(10);
    const BLOB: &str = "sha256:00000000000000000000000000000000000000000000000000000000000000aa";
    const LIST: &str = r#"{"schemaVersion": 2, "manifests": [
        {"digest": "sha256:a", "platform": {"architecture": "amd64", "os": "windows",
         "os.version": "10.0.20348.2762"}}]}"#;

    /// A registry on this machine; the requests it saw, each with its credential.
    pub(crate) async fn registry() -> (String, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (own, log) = (host.clone(), seen.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (own, log) = (own.clone(), log.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let answer = answer(&own, &request);
                    let agent = request.headers().get(USER_AGENT).expect("a name");
                    assert!(agent.as_bytes().starts_with(b"winconform/"));
                    let credential = request.headers().get(AUTHORIZATION);
                    let credential = credential.map_or("", |own| own.to_str().expect("text"));
                    let line = format!("{} {credential}", request.uri());
                    log.lock().expect("not poisoned").push(line);
                    async move { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        (host, seen)
    }

    fn answer(own: &str, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let token = request.headers().get(AUTHORIZATION);
        let is_let_in = token.is_some_and(|token| token == "Bearer everybody");
        let body = |text: String| Full::new(Bytes::from(text));
        let plain = |text: String| Response::new(body(text));
        let empty = |response: http::response::Builder| {
            response.body(body(String::new())).expect("a response")
        };
        let status = |code: u16| empty(Response::builder().status(code));
        let elsewhere = |to: String| empty(Response::builder().status(307).header(LOCATION, to));
        match request.uri().path() {
            "/v2/windows/servercore/manifests/ltsc2022" => plain(LIST.to_owned()),
            "/v2/windows/iis/manifests/one" => {
                plain(format!(r#"{{"config": {{"digest": "{BLOB}"}}}}"#))
            }
            path if path == format!("/v2/windows/iis/blobs/{BLOB}") => {
                elsewhere(format!("http://{own}/data"))
            }
            "/data" => plain(r#"{"os": "windows", "os.version": "10.0.17763.1"}"#.to_owned()),
            "/v2/e2e/agnhost/manifests/2.66.1" => {
                elsewhere("/v2/moved/manifests/2.66.1".to_owned())
            }
            "/v2/moved/manifests/2.66.1" if is_let_in => plain(LIST.to_owned()),
            // The same server under another name, which does not see the token, however often asked
            "/v2/chain/manifests/1" if is_let_in => elsewhere(format!(
                "http://{}/first",
                own.replace("127.0.0.1", "localhost")
            )),
            "/first" => elsewhere("/second".to_owned()),
            "/second" => plain(LIST.to_owned()),
            "/v2/moved/manifests/2.66.1" | "/v2/chain/manifests/1" => {
                let bearer = format!(
                    "Bearer realm=\"http://{own}/token\",service=\"s\",scope=\"repository:e2e:pull\""
                );
                let response = Response::builder().status(401);
                empty(response.header(WWW_AUTHENTICATE, bearer))
            }
            "/token" => plain(r#"{"token": "everybody"}"#.to_owned()),
            "/v2/private/manifests/1" => status(401),
            "/v2/away/manifests/1" => elsewhere("http://192.0.2.1/".to_owned()),
            "/v2/round/manifests/1" => elsewhere("/v2/round/manifests/1".to_owned()),
            "/v2/huge/manifests/1" => plain("x".repeat(KEPT + 1)),
            "/v2/page/manifests/1" => plain("<html>log in</html>".to_owned()),
            _ => status(404),
        }
    }

    async fn asked(image: &str) -> (Result<Vec<Platform>, String>, Vec<String>) {
        let (host, seen) = registry().await;
        let mut told = platforms(&Env::system(), &[format!("{host}/{image}")], LIMIT).await;
        let seen = seen.lock().expect("not poisoned").clone();
        (told.remove(0), seen)
    }

    #[tokio::test]
    async fn lists_and_single_images_are_read() {
        let windows = |build| Platform {
            os: Some("windows".to_owned()),
            build: Some(build),
        };
        let (told, seen) = asked("windows/servercore:ltsc2022").await;
        assert_eq!(told, Ok(vec![windows(WindowsBuild::SERVER_2022)]));
        assert_eq!(seen.len(), 1);
        let (told, seen) = asked("windows/iis:one").await;
        assert_eq!(told, Ok(vec![windows(WindowsBuild::SERVER_2019)]));
        assert_eq!(seen.len(), 3);
    }

    #[tokio::test]
    async fn a_token_for_everybody_is_asked_for() {
        let (told, seen) = asked("e2e/agnhost:2.66.1").await;
        assert_eq!(told.map(|all| all.len()), Ok(1));
        let tokens: Vec<_> = seen.iter().filter(|line| line.contains("/token")).collect();
        assert_eq!(tokens, ["/token?service=s&scope=repository%3Ae2e%3Apull "]);
        let last = seen.last().expect("a request");
        assert!(last.ends_with("Bearer everybody"), "{last}");
    }

    #[tokio::test]
    async fn a_token_goes_to_no_other_host() {
        let (told, seen) = asked("chain:1").await;
        assert_eq!(told.map(|all| all.len()), Ok(1));
        let led: Vec<_> = seen.iter().skip(3).map(String::as_str).collect();
        assert_eq!(led, ["/first ", "/second "]);
    }

    #[tokio::test]
    async fn what_no_registry_tells_is_unknown() {
        for (image, why) in [
            ("private:1", "its registry wants credentials"),
            (
                "none:1",
                "its registry has nothing of this name (status 404)",
            ),
            ("away:1", "its registry sends to 192.0.2.1"),
            ("round:1", "its registry sends from one place to the next"),
            ("huge:1", "127.0.0.1: length limit exceeded"),
            ("page:1", "its manifest is not understood"),
        ] {
            let (told, _) = asked(image).await;
            let said = told.expect_err(image);
            assert!(said.starts_with(why), "{said}");
        }
        let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = closed.local_addr().expect("an address");
        drop(closed);
        let images = [format!("{host}/a:1"), "busybox:1".to_owned()];
        let told = platforms(&Env::system(), &images, LIMIT).await;
        let [Err(refused), Err(docker)] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert!(refused.starts_with("127.0.0.1: "), "{refused}");
        assert!(docker.starts_with("Docker's registry"), "{docker}");
    }

    #[tokio::test]
    async fn one_that_does_not_answer_is_not_waited_for() {
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = silent.local_addr().expect("an address");
        let told = platforms(&Env::system(), &[format!("{host}/a:1")], Duration::ZERO).await;
        assert_eq!(told, [Err("no answer within 0 s".to_owned())]);
    }

    #[tokio::test(start_paused = true)]
    async fn names_lead_to_registries() {
        for (image, uri) in [
            ("a.example/b/c:1", "https://a.example/v2/b/c/manifests/1"),
            (
                "a.example:5000/b",
                "https://a.example:5000/v2/b/manifests/latest",
            ),
            (
                "localhost:5000/b:1",
                "http://localhost:5000/v2/b/manifests/1",
            ),
            ("[::1]:5000/b:1", "http://[::1]:5000/v2/b/manifests/1"),
            (
                "a.example/b:1@sha256:0",
                "https://a.example/v2/b/manifests/sha256:0",
            ),
        ] {
            let own = Reference::parse(image).expect(image);
            let led = own.uri("manifests", own.version).expect(image);
            assert_eq!(led.to_string(), uri);
        }
        let uri = |text: &'static str| Uri::from_static(text);
        for (from, to, follows) in [
            ("https://a/", "https://b/", true),
            ("https://a/", "http://b/", false),
            ("https://a/", "https://localhost/", false),
            ("https://a/", "http://127.0.0.1/", false),
            ("http://127.0.0.1/", "http://127.0.0.1:2/", true),
            ("http://127.0.0.1/", "http://b/", false),
        ] {
            assert_eq!(may_follow(&uri(from), &uri(to)), follows, "{from} {to}");
        }
    }
}
