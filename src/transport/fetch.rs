//! Sends plain HTTP requests from this machine, outside the cluster, each over a new connection.
//!
//! What the target does is a reply. A failure of this machine or its proxy is an observation error, and so is
//! every request that the proxy leaves unanswered, for whatever reason.

use std::io;

use futures::{StreamExt, stream};
use http::header::{CONNECTION, HOST};
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use winconform_core::config::{Durations, Target};
use winconform_core::method::{ErrorKind, FailureClass, HttpGet, HttpReply, Result};

use super::env::{Env, Stream};
use super::error_text::error_text;

/// The number of requests in flight at once.
const AT_ONCE: usize = 8;

/// The bytes kept of one body; no expectation needs more.
const KEPT: usize = 64 << 10;

/// Gets every target once, through `proxy` if there is one. The replies are in the order of `gets`.
pub(crate) async fn fetch(
    env: &Env,
    gets: &[HttpGet],
    proxy: Option<&Target>,
    durations: &Durations,
) -> Vec<Result<HttpReply>> {
    let send = |get: &HttpGet| one(env.clone(), get.clone(), proxy.cloned(), durations.clone());
    let each: Vec<_> = gets.iter().map(send).collect();
    stream::iter(each).buffered(AT_ONCE).collect().await
}

async fn one(
    env: Env,
    get: HttpGet,
    proxy: Option<Target>,
    durations: Durations,
) -> Result<HttpReply> {
    let limit = durations.http_total;
    let exchange = timeout(limit, connected(&env, &get, proxy.as_ref(), &durations)).await;
    let reply = exchange.unwrap_or_else(|_| {
        let text = format!("no answer within {limit:?}");
        Ok(unreached(FailureClass::NoAnswer, text))
    })?;
    match (reply, proxy) {
        (HttpReply::Unreached { text, .. }, Some(proxy)) => {
            let target = format!("{}:{}", get.host, get.port);
            let detail = format!("the proxy {proxy} gives no answer for {target}: {text}");
            Err(ErrorKind::NoView.error(detail))
        }
        (reply, _) => Ok(reply),
    }
}

async fn connected(
    env: &Env,
    get: &HttpGet,
    proxy: Option<&Target>,
    durations: &Durations,
) -> Result<HttpReply> {
    let target = format!("{}:{}", get.host, get.port);
    let limit = durations.http_connect;
    let stream = match proxy {
        None => timeout(limit, env.connect(&get.host.to_string(), get.port)).await,
        Some(Target { host, port, .. }) => timeout(limit, env.connect(host, *port)).await,
    };
    let (class, why) = match stream {
        Ok(Ok(stream)) => return Ok(ask(get, stream, &target, proxy.is_some()).await),
        Ok(Err(error)) => (class(&error), error.to_string()),
        Err(_) => {
            let why = format!("no connection within {limit:?}");
            (Some(FailureClass::Timeout), why)
        }
    };
    let detail = match (class, proxy) {
        (Some(class), None) => return Ok(unreached(class, why)),
        (None, None) => format!("no connection to {target} can be opened here: {why}"),
        (_, Some(proxy)) => format!("the proxy {proxy} is not reached: {why}"),
    };
    Err(ErrorKind::NoView.error(detail))
}

/// How the target failed a connection, or `None` for a failure of this machine. A missing route is one too: a
/// VPN that is down here gives the same error as a distant router.
fn class(error: &io::Error) -> Option<FailureClass> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Some(FailureClass::Refused),
        io::ErrorKind::TimedOut => Some(FailureClass::Timeout),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
            Some(FailureClass::Reset)
        }
        _ => None,
    }
}

async fn ask(get: &HttpGet, stream: Box<dyn Stream>, host: &str, by_proxy: bool) -> HttpReply {
    let uri = if by_proxy {
        get.url()
    } else {
        get.path.clone()
    };
    let request = Request::get(uri)
        .header(HOST, host)
        .header(CONNECTION, HeaderValue::from_static("close"))
        .body(Empty::<Bytes>::new());
    let answered = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let request = match request {
            Ok(request) => request,
            Err(error) => return Ok(unreached(FailureClass::NotConnected, error.to_string())),
        };
        let exchange = async {
            let response = sender.send_request(request).await?;
            let status = response.status().as_u16();
            let broken = |error| unreached(FailureClass::BrokenAnswer, error_text(&error));
            let body = text(response.into_body()).await;
            let answered = body.map(|body| HttpReply::Answered { status, body });
            Ok::<_, hyper::Error>(answered.unwrap_or_else(broken))
        };
        // The connection makes progress only while it is polled, and ends with its one exchange
        let (mut connection, mut exchange) = (std::pin::pin!(connection), std::pin::pin!(exchange));
        tokio::select! {
            biased;
            answer = &mut exchange => answer,
            driven = &mut connection => {
                driven?;
                exchange.await
            }
        }
    };
    answered.await.unwrap_or_else(|error: hyper::Error| {
        let class = match error.is_parse() {
            true => FailureClass::WrongAnswer,
            false => FailureClass::Reset,
        };
        unreached(class, error_text(&error))
    })
}

/// The first `KEPT` bytes of a body, as text.
async fn text(mut body: Incoming) -> Result<String, hyper::Error> {
    let mut kept = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            kept.extend_from_slice(&data);
        }
        if kept.len() > KEPT {
            kept.truncate(KEPT);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

fn unreached(class: FailureClass, text: String) -> HttpReply {
    HttpReply::Unreached { class, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::BoxFuture;
    use jiff::Timestamp;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use winconform_core::method::Host;

    /// Starts a server that sends `says` to one client, and returns the request that it reads.
    async fn server(says: &'static [u8]) -> (SocketAddr, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("bound");
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut head = vec![0; 1024];
            let read = stream.read(&mut head).await.expect("a request");
            stream.write_all(says).await.expect("it reads");
            String::from_utf8_lossy(&head[..read]).into_owned()
        });
        (address, asked)
    }

    fn get(address: SocketAddr) -> HttpGet {
        HttpGet {
            host: Host::Address(address.ip()),
            port: address.port(),
            path: "/page".to_owned(),
        }
    }

    async fn got(address: SocketAddr, proxy: Option<&Target>) -> Result<HttpReply> {
        got_in(&Env::system(), address, proxy).await
    }

    async fn got_in(env: &Env, address: SocketAddr, proxy: Option<&Target>) -> Result<HttpReply> {
        let mut replies = fetch(env, &[get(address)], proxy, &Durations::default()).await;
        replies.remove(0)
    }

    #[tokio::test]
    async fn what_the_target_does_is_the_answer() {
        let (page, asked) = server(b"HTTP/1.1 404 x\r\nContent-Length: 2\r\n\r\nhi").await;
        let body = "hi".to_owned();
        let answered = HttpReply::Answered { status: 404, body };
        assert_eq!(got(page, None).await, Ok(answered));
        let head = asked.await.expect("asked");
        assert!(head.starts_with("GET /page HTTP/1.1"), "{head}");
        let half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
        for (says, expected) in [
            (&b"SSH-2.0-OpenSSH\r\n"[..], FailureClass::WrongAnswer),
            (b"", FailureClass::Reset),
            (half, FailureClass::BrokenAnswer),
        ] {
            let (address, _asked) = server(says).await;
            let reply = got(address, None).await;
            let Ok(HttpReply::Unreached { class, .. }) = reply else {
                panic!("{reply:?}")
            };
            assert_eq!(class, expected, "{}", String::from_utf8_lossy(says));
        }
        let free = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let nobody = free.local_addr().expect("bound");
        drop(free);
        let reply = got(nobody, None).await;
        let refused = FailureClass::Refused;
        assert!(matches!(reply, Ok(HttpReply::Unreached { class, .. }) if class == refused));
    }

    #[tokio::test]
    async fn a_proxy_is_given_the_whole_url_and_its_absence_is_trouble() {
        let (at, asked) = server(b"HTTP/1.1 504 x\r\nContent-Length: 9\r\n\r\ntimed out").await;
        let proxy = Target::parse(&format!("http://{at}")).expect("a URL");
        let node: SocketAddr = "192.0.2.1:30080".parse().expect("an address");
        let body = "timed out".to_owned();
        let answered = HttpReply::Answered { status: 504, body };
        assert_eq!(got(node, Some(&proxy)).await, Ok(answered));
        let head = asked.await.expect("asked");
        let line = "GET http://192.0.2.1:30080/page HTTP/1.1";
        assert!(head.starts_with(line), "{head}");
        assert!(head.contains("host: 192.0.2.1:30080"), "{head}");
        let error = got(node, Some(&proxy)).await.expect_err("it has gone");
        assert_eq!(error.kind, ErrorKind::NoView);
        for says in [&b""[..], b"SSH-2.0-OpenSSH\r\n"] {
            let (at, _asked) = server(says).await;
            let proxy = Target::parse(&format!("http://{at}")).expect("a URL");
            let error = got(node, Some(&proxy)).await.expect_err("it is no answer");
            assert_eq!(error.kind, ErrorKind::NoView);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_proxy_and_a_machine_without_a_way_are_trouble() {
        type Dialled = fn() -> io::Result<Box<dyn Stream>>;
        let dials: [(&str, Dialled); 3] = [
            ("http://192.0.2.9:3128", || {
                let (near, far) = tokio::io::duplex(1024);
                std::mem::forget(far);
                Ok(Box::new(near))
            }),
            ("", || Err(io::ErrorKind::NetworkUnreachable.into())),
            ("", || Err(io::ErrorKind::HostUnreachable.into())),
        ];
        for (proxy, dialled) in dials {
            let dial: Arc<super::super::env::Dial> =
                Arc::new(move |_: &str, _| -> BoxFuture<'static, _> {
                    Box::pin(async move { dialled() })
                });
            let env = Env::simulated(Timestamp::UNIX_EPOCH, 1, dial);
            let node: SocketAddr = "192.0.2.1:30080".parse().expect("an address");
            let error = got_in(&env, node, Target::parse(proxy).as_ref()).await;
            let error = error.expect_err("it is no answer");
            assert_eq!(error.kind, ErrorKind::NoView, "{error}");
        }
    }
}
