//! The first request: its credential and headers, and the proxies on its way.

use std::fs;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use winconform::cluster::{ConnectOptions, connect};
use winconform_core::config::{Durations, Limits};

use super::kubeconfig::kubeconfig;
use super::server::{Answer, Server, status};
use super::tool::{Said, Tool, check};

/// The protocol before HTTP.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Before {
    Nothing,
    Connect,
    Socks,
}

/// A server that is its own proxy, and a note of each message that it got.
fn server(before: Before) -> (Server, Arc<Mutex<Vec<String>>>) {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let kept = noted.clone();
    let server = Server::start(move |stream| Box::pin(answer(stream, before, kept.clone())));
    (server, noted)
}

/// Answers until the client closes.
async fn answer(mut stream: TcpStream, before: Before, noted: Arc<Mutex<Vec<String>>>) {
    let note = |what| noted.lock().expect("not poisoned").push(what);
    if before == Before::Socks {
        note(greet(&mut stream).await.expect("SOCKS is spoken"));
    }
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let head = String::from_utf8(head).expect("a head is text");
        let reply = if head.starts_with("CONNECT") && before == Before::Connect {
            "HTTP/1.1 200 Connection established\r\n\r\n"
        } else if head.contains("CONNECT") {
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
        } else if head.contains("upgrade: websocket") {
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        } else if head.contains("GET /version") && !head.contains("Bearer s3cr3t") {
            "HTTP/1.1 200 OK\r\ncontent-length: 24\r\n\r\n{\"gitVersion\":\"v1.37.0\"}"
        } else {
            "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}"
        };
        note(head);
        if stream.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Answers a SOCKS greeting (RFC 1928 and 1929); returns the user and the target.
async fn greet(stream: &mut TcpStream) -> std::io::Result<String> {
    async fn counted(stream: &mut TcpStream) -> std::io::Result<String> {
        let mut bytes = vec![0; stream.read_u8().await?.into()];
        stream.read_exact(&mut bytes).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
    stream.read_u8().await?;
    let methods = counted(stream).await?;
    let mut who = String::new();
    if methods.contains('\u{2}') {
        stream.write_all(&[5, 2]).await?;
        stream.read_u8().await?;
        who = counted(stream).await?;
        let password = counted(stream).await?;
        who = format!("{who}:{password}@");
        stream.write_all(&[1, 0]).await?;
    } else {
        stream.write_all(&[5, 0]).await?;
    }
    stream.read_exact(&mut [0; 4]).await?;
    let host = counted(stream).await?;
    let port = stream.read_u16().await?;
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    Ok(format!("{who}{host}:{port}"))
}

/// The errors of `plan` with a kubeconfig and environment variables.
fn said(kubeconfig: &str, variables: &[(&str, String)]) -> String {
    let tool = Tool::new();
    tool.write("config", kubeconfig);
    let mut command = tool.command(&["plan", "--kubeconfig", "config"]);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let said = Said::from(command.output().expect("the tool starts")).errors();
    assert!(!said.contains("hunter2"), "{said}");
    said.replace(tool.path("").to_str().expect("UTF-8"), "FOLDER/")
}

#[test]
fn plain_requests_and_upgrades_go_by_the_proxy() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for (before, scheme, first) in [
        (
            Before::Connect,
            "http",
            "CONNECT cluster.test:6443 HTTP/1.1\r\n",
        ),
        (Before::Socks, "socks5", "bob:hunter2%@cluster.test:6443"),
    ] {
        let (proxy, noted) = server(before);
        let url = format!(
            "    proxy-url: {scheme}://bob:hunter2%25@{}\n",
            proxy.address
        );
        let tool = Tool::new();
        let kubeconfig =
            kubeconfig("http://cluster.test:6443", &url).replace("token: ", "password: ");
        tool.write("config", kubeconfig);
        let options = ConnectOptions {
            context: None,
            kubeconfig: Some(tool.path("config")),
        };
        runtime.block_on(async {
            let cluster = connect(&options, Durations::default(), Limits::default()).await;
            let upgrade = http::Request::get("/exec")
                .header("connection", "upgrade")
                .header("upgrade", "websocket")
                .body(kube::client::Body::empty());
            let cluster = cluster.expect("the server answers");
            let answer = cluster.api.client().send(upgrade.expect("a request")).await;
            let answer = answer.expect("an answer");
            assert_eq!(answer.status(), 101);
            hyper::upgrade::on(answer).await.expect("it stands");
        });
        let noted = noted.lock().expect("not poisoned").clone();
        assert!(noted[0].starts_with(first), "{noted:?}");
        let authorization = "Proxy-Authorization: Basic Ym9iOmh1bnRlcjIl\r\n";
        let named = noted[0].contains(authorization);
        assert!(named || before == Before::Socks, "{noted:?}");
        let agents = noted
            .iter()
            .filter(|head| head.contains("user-agent: winconform/"));
        assert_eq!(agents.count(), 2, "{noted:?}");
    }
}

#[test]
fn proxies_of_the_environment_that_do_not_help_are_named() {
    let kubeconfig = kubeconfig("http://192.0.2.1:6443", "");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    let (refusing, _server) = {
        let (server, _) = server(Before::Nothing);
        (server.address.to_string(), server)
    };
    for (name, at) in [("closed", closed), ("refusing", refusing)] {
        let proxy = ("http_proxy", format!("http://bob:hunter2@{at}"));
        // An extra comma does not stop the tool
        let said = said(&kubeconfig, &[proxy, ("no_proxy", "a.test,".to_owned())]);
        check(
            &format!("contact-proxy-{name}"),
            &said.replace(&at, "PROXY"),
        );
    }
    let odd = ("HTTP_PROXY", "ftp://bob:hunter2@proxy.test".to_owned());
    check("contact-proxy-odd", &said(&kubeconfig, &[odd]));
}

#[test]
fn tokens_lose_the_space_around_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    fs::write(&file, "s3cr3t\n").expect("written");
    for credential in [
        format!("{{tokenFile: '{}'}}", file.display()),
        "\n    token: |\n      s3cr3t".to_owned(),
        "{token: ' s3cr3t '}".to_owned(),
        r#"{auth-provider: {name: oidc, config: {id-token: "s3cr3t\n"}}}"#.to_owned(),
    ] {
        let (server, noted) = server(Before::Nothing);
        let kubeconfig = kubeconfig(&format!("http://{}", server.address), "");
        let kubeconfig = kubeconfig.replace("{token: s3cr3t-t0ken}", &credential);
        let said = said(&kubeconfig, &[]);
        assert!(said.contains("does not accept the credential"), "{said}");
        let head = noted.lock().expect("not poisoned").concat();
        assert!(head.contains("authorization: Bearer s3cr3t\r\n"), "{head}");
    }
    let odd = kubeconfig("http://127.0.0.1:1", "").replace("s3cr3t-t0ken", r#""hunter2\u0001""#);
    check("contact-odd-token", &said(&odd, &[]));
}

#[test]
fn a_simulator_takes_the_same_token() {
    let (server, noted) = server(Before::Nothing);
    let kubeconfig = kubeconfig(&format!("http://{}", server.address), "");
    let tool = Tool::new();
    tool.write(
        "config",
        kubeconfig.replace("{token: s3cr3t-t0ken}", r#"{token: "nodes\n"}"#),
    );
    let said = tool.run(&["simulate", "--join", "config"]);
    assert_eq!(said.code, Some(2), "{}", said.all());
    let head = noted.lock().expect("not poisoned").concat();
    assert!(head.contains("authorization: Bearer nodes\r\n"), "{head}");
}

#[test]
fn what_answers_is_quoted_without_secrets() {
    let link = "<a href=\"https://login.test/?token=hunter2&sig=hunter2\">";
    let refused = "Authorization: Bearer hunter2";
    for (code, why) in [(502, link), (401, refused)] {
        let server = Server::http(move |_| match code {
            401 => status(code, why),
            _ => Answer::Text(code, why),
        });
        let said = said(&kubeconfig(&format!("http://{}", server.address), ""), &[]);
        assert!(
            said.contains("***") && said.ends_with("exit 21\n"),
            "{said}"
        );
    }
}

#[test]
fn a_certificate_that_is_not_verified_is_warned_of() {
    let (server, _) = Server::https(|_| Answer::Json(200, json!({"gitVersion": "v1.37.0"})));
    let address = format!("https://{}", server.address);
    let unverified = kubeconfig(&address, "    insecure-skip-tls-verify: true\n");
    let tool = Tool::new();
    tool.write("config", &unverified);
    let said = tool.run(&["plan", "--kubeconfig", "config"]).stderr;
    let warned = "warning: the server's certificate is not verified (`insecure-skip-tls-verify`)";
    assert!(said.starts_with(warned), "{said}");
}

#[test]
fn plugins_that_give_no_credential_are_named() {
    for (name, plugin) in [
        (
            "missing",
            "command: aws-iam-authenticator-nope, installHint: \"brew\\e[0m install it\"",
        ),
        (
            "failing",
            "command: sh, args: ['-c', 'echo token expired >&2; echo password=hunter2 >&2; exit 3']",
        ),
        ("empty", "command: 'true'"),
        ("odd", "command: echo, args: [hunter2]"),
    ] {
        let version = "apiVersion: client.authentication.k8s.io/v1";
        let exec = format!("exec: {{{version}, {plugin}}}");
        let kubeconfig = kubeconfig("http://127.0.0.1:1", "").replace("token: s3cr3t-t0ken", &exec);
        let path = ("PATH", std::env::var("PATH").expect("there is one"));
        check(
            &format!("contact-plugin-{name}"),
            &said(&kubeconfig, &[path]),
        );
    }
    let gcp = "auth-provider: {name: gcp, config: {cmd-path: /bin/sleep, cmd-args: '1000'}}";
    let kubeconfig = kubeconfig("http://127.0.0.1:1", "").replace("token: s3cr3t-t0ken", gcp);
    check("contact-auth-provider", &said(&kubeconfig, &[]));
}
