//! Scripted servers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::Either;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ordered_watch as watch;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

/// A request as a script sees it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Json,
}

/// An answer of a script.
pub(crate) enum Answer {
    Json(u16, Json),
    Text(u16, &'static str),
    /// A head and a body that never comes.
    Open,
    /// An answer held back until the value is true.
    After(watch::Receiver<bool>, Box<Self>),
}

/// A refusal as the API server words it.
pub(crate) fn status(code: u16, message: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code,
    });
    Answer::Json(code, status)
}

/// The behaviour of a server that speaks no HTTP.
#[derive(Clone, Copy)]
pub(crate) enum Manners {
    /// Accepts and says nothing.
    Silent,
    /// Closes at once.
    Curt,
    /// Closes after the first request.
    Rude,
    /// Answers in another protocol.
    Foreign,
}

/// A server on a port of its own until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Server {
    /// Answers HTTP as the script says.
    pub(crate) fn http(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let script: Script = Arc::new(script);
        Self::start(move |stream| Box::pin(serve(stream, Arc::clone(&script))))
    }

    /// Like `http`, over TLS; returns the PEM of its certificate, too, which is its own authority.
    pub(crate) fn https(
        script: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> (Self, String) {
        let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])
            .expect("a certificate can be made");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring speaks them")
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], key)
            .expect("the key is the certificate's");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let script: Script = Arc::new(script);
        let server = Self::start(move |stream| {
            let (acceptor, script) = (acceptor.clone(), Arc::clone(&script));
            Box::pin(async move {
                // A client that does not trust the certificate hangs up
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, script).await;
                }
            })
        });
        (server, issued.cert.pem())
    }

    /// A server that speaks no HTTP.
    pub(crate) fn mannered(manners: Manners) -> Self {
        Self::start(move |mut stream| {
            Box::pin(async move {
                // Unread bytes at the close would turn it into a reset, now and then
                let mut bytes = vec![0; 1 << 16];
                match manners {
                    Manners::Curt => {}
                    Manners::Silent => std::future::pending().await,
                    Manners::Rude => {
                        let _ = stream.read(&mut bytes).await;
                    }
                    Manners::Foreign => {
                        let _ = stream.read(&mut bytes).await;
                        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").await;
                        let _ = stream.shutdown().await;
                    }
                }
            })
        })
    }

    pub(crate) fn start(
        serve: impl Fn(TcpStream) -> futures::future::BoxFuture<'static, ()> + Send + 'static,
    ) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a port of this machine");
        let address = listener.local_addr().expect("it is bound");
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Self {
            address,
            runtime: Some(runtime),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

type Script = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

async fn serve(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, script: Script) {
    let service = service_fn(move |request| answer(request, Arc::clone(&script)));
    // A client may hang up
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    request: Request<Incoming>,
    script: Script,
) -> Result<Response<AnswerBody>, hyper::Error> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let request = Asked {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
    };
    let mut answer = script(&request);
    while let Answer::After(mut until, then) = answer {
        // If the sender is gone, the answer goes out at once
        let _ = until.wait_for(|now| *now).await;
        answer = *then;
    }
    let (status, content, body) = match answer {
        Answer::Json(status, json) => (
            status,
            "application/json",
            Either::Left(json.to_string().into()),
        ),
        Answer::Text(status, text) => (status, "text/html", Either::Left(text.into())),
        Answer::Open | Answer::After(..) => (200, "application/json", Either::Right(())),
    };
    let body = match body {
        Either::Left(bytes) => Full::<Bytes>::new(bytes).boxed_unsync(),
        Either::Right(()) => StreamBody::new(futures::stream::pending()).boxed_unsync(),
    };
    let response = Response::builder()
        .status(status)
        .header("Content-Type", content);
    Ok(response
        .body(body)
        .expect("a status and a header that are valid"))
}
