//! Clients that send nonsense, or too slowly, or nothing get an error or are cut off, and leave nothing.

use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use crate::server::{Server, ServerOptions};
use crate::wire::loopback::{Loopback, Stream};

/// Longer than any timeout of the server.
const LONG: Duration = Duration::from_mins(2);

const VERSION: &str = "GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

async fn served() -> (Server, SocketAddr) {
    served_on(Loopback::in_memory(Timestamp::UNIX_EPOCH)).await
}

async fn served_on(loopback: Loopback) -> (Server, SocketAddr) {
    let options = ServerOptions {
        loopback,
        ..ServerOptions::default()
    };
    let server = Server::start(&options).expect("it starts");
    let address = server.listen(0).await.expect("there is a port");
    (server, address)
}

/// Sends words with the administrator's token, without which the server does not listen.
async fn says((server, address): (&Server, SocketAddr), words: &str) -> Box<dyn Stream> {
    let token = server.shared.state().token.as_str().to_owned();
    let token = format!("\r\nauthorization: Bearer {token}\r\nhost: x\r\n");
    let words = words.replacen("\r\nhost: x\r\n", &token, 1);
    let mut stream = server
        .shared
        .kubelets
        .loopback
        .connect(address)
        .await
        .expect("it listens");
    stream.write_all(words.as_bytes()).await.expect("it reads");
    stream
}

/// Returns all that the server sends until it hangs up, and after how long it does.
async fn heard(mut stream: Box<dyn Stream>) -> (String, Duration) {
    let began = Instant::now();
    let mut bytes = Vec::new();
    let read = timeout(LONG, stream.read_to_end(&mut bytes)).await;
    read.expect("it hangs up").expect("in order");
    (
        String::from_utf8_lossy(&bytes).into_owned(),
        began.elapsed(),
    )
}

/// The `code` of the status that an answer holds.
fn status(answer: &str) -> Option<u64> {
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let body: Value = serde_json::from_str(body).ok()?;
    (body["kind"] == "Status").then(|| body["code"].as_u64())?
}

#[tokio::test(start_paused = true)]
async fn whoever_never_finishes_is_cut_off() {
    let (server, address) = served().await;
    for (words, code) in [
        ("", None),
        ("GET /version HTT", None),
        ("GET /version HTTP/1.1\r\nhost: x\r\nx-y: ", None),
    ] {
        let (answer, after) = heard(says((&server, address), words).await).await;
        assert_eq!(status(&answer), code, "{words:?}: {answer}");
        assert!(after < LONG / 2, "{words:?}: {after:?}");
        assert!(after > Duration::from_secs(20), "{words:?}: {after:?}");
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_http_is_answered_at_once() {
    let (server, address) = served().await;
    for (words, begins) in [
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n", "HTTP/1.1 400"),
        ("hello\r\n\r\n", "HTTP/1.1 400"),
        ("GET /version HTTP/9.9\r\n\r\n", "HTTP/1.1 400"),
        ("SSH-2.0-OpenSSH_9.2\r\n", ""),
    ] {
        let (answer, after) = heard(says((&server, address), words).await).await;
        assert!(answer.starts_with(begins), "{words:?}: {answer}");
        assert!(after < LONG / 2, "{words:?}: {after:?}");
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let (answer, _) = heard(says((&server, address), &long).await).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    for (line, code) in [
        ("BREW /api/v1/pods", 501),
        ("POST /version", 501),
        ("GET /api/v1/namespaces/default/pods/x/portforward", 501),
        ("POST /api/v1/namespaces/default/pods/x/attach", 501),
        ("POST /api/v1/namespaces/default/pods/x/exec?tty=1", 501),
        ("GET /../../etc/passwd", 501),
        ("DELETE /apis/windows.k8s.io/v1/things/a", 404),
    ] {
        let words = format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let (answer, _) = heard(says((&server, address), &words).await).await;
        assert_eq!(status(&answer), Some(code), "{line}: {answer}");
    }
    server.stop().await;
}

/// The same over TLS, with clients that speak no TLS and one that does.
#[tokio::test]
async fn clients_that_speak_no_tls_do_not_disturb_the_others() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (server, address) = served_on(Loopback::default()).await;
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(says((&server, address), "").await);
    }
    for words in [VERSION, "\u{0}\u{0}\u{0}\u{0}\u{0}", "\u{16}\u{3}\u{1}"] {
        let mut stream = says((&server, address), words).await;
        stream.shutdown().await.expect("it is open");
        let mut answer = Vec::new();
        // A TLS alert, or nothing
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.len() < 16, "{answer:?}");
    }
    let config = Kubeconfig::from_yaml(&server.kubeconfig(address)).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("a configuration")).expect("a client");
    let version = client.apiserver_version().await.expect("an answer");
    assert_eq!(version.major, "1");
    drop(crowd);
    server.stop().await;
}
