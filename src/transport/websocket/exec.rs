//! Runs programs in containers through the API server, over a WebSocket client of its own.
//!
//! kube's `AttachedProcess` can wait for ever when the stream dies without a status. Here every
//! end of a stream ends the exec, and one without an exit status is an error, never success.

use std::time::Duration;

use bytes::Bytes;
use futures::{Sink, SinkExt, StreamExt};
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use winconform_core::method::{
    ErrorKind, ExecReply, ExecRequest, ExitStatus, ObservationError, PodRef, Result,
};
use winconform_core::text::printable;

use super::session::{CLOSE, STDIN, Session, is_not_started};
use super::upgrade::{Protocol, Socket, connect};
use crate::transport::api::Api;
use crate::transport::attempt::Failure;
use crate::transport::error_text::error_text;
use crate::transport::pace::{Pace, pause};
use crate::transport::path::encode;

/// The name execs are counted under.
const COUNTED: &str = "exec pods/exec";

/// Bytes of standard input in one message.
const CHUNK: usize = 16 << 10;

/// A try that brought no reply.
struct Failed {
    error: ObservationError,
    /// Whether another try may bring one.
    may_pass: bool,
    /// The server's `Retry-After`.
    after: Option<Duration>,
}

impl From<ObservationError> for Failed {
    fn from(error: ObservationError) -> Self {
        Self {
            may_pass: error.kind != ErrorKind::OutputTruncated,
            error,
            after: None,
        }
    }
}

impl Api {
    /// Runs a program in a container.
    pub async fn exec(&self, pod: &PodRef, request: &ExecRequest) -> Result<ExecReply> {
        self.exec_read(pod, request, |reply| Ok(reply.clone()))
            .await
    }

    /// Runs a program in a container and reads its output. Assertions change nothing, so this runs the
    /// program again when the transport fails, and when it does not recognise the output, which may be lost
    /// on the way (kubernetes#124571): up to `exec_tries` times in all.
    pub async fn exec_read<T>(
        &self,
        pod: &PodRef,
        request: &ExecRequest,
        read: impl Fn(&ExecReply) -> Result<T>,
    ) -> Result<T> {
        let path = path(pod, request);
        let mut pace = Pace::new(self.durations.transport_pause * 4);
        let (begun, mut outlasts, mut left) = (Instant::now(), true, self.limits.exec_tries);
        self.counts.sent(COUNTED);
        self.execs.sent(&pod.name);
        loop {
            self.may_write(COUNTED).await?;
            let failed = match self.exec_once(&path, request).await {
                Ok(reply) => match read(&reply) {
                    Err(lost) if lost.kind == ErrorKind::UnrecognisedOutput => lost.into(),
                    read => return read,
                },
                Err(failed) => failed,
            };
            left = left.saturating_sub(1);
            let refused = failed.error.kind == ErrorKind::Unauthenticated;
            let again = match failed.may_pass {
                true if left > 0 => true,
                // After an outage the exec has all its tries again
                true if outlasts => {
                    (outlasts, left) = (false, self.limits.exec_tries);
                    self.outlasted(begun).await == Some(true)
                }
                true => false,
                false => refused && self.may_be_accepted(begun),
            };
            if !again {
                return Err(failed.error);
            }
            pause(self.pause_after(failed.after, &mut pace)).await;
            self.counts.resent(COUNTED);
            self.execs.resent(&pod.name);
        }
    }

    /// Runs a program that changes something, at most once. `None` if it may have run, and nothing tells how it ended.
    pub async fn exec_unrepeated(
        &self,
        pod: &PodRef,
        request: &ExecRequest,
    ) -> Result<Option<ExecReply>> {
        self.counts.sent(COUNTED);
        self.execs.sent(&pod.name);
        self.may_write(COUNTED).await?;
        let path = path(pod, request);
        let connecting = connect(&self.client, &path, self.durations.exec_connect);
        match connecting.await {
            Ok((socket, _)) => Ok(self.converse(socket, request.stdin()).await.ok()),
            Err(refused @ Failure::NoReply { .. }) => read_refusal(refused)
                .map(Some)
                .map_err(|failed| failed.error),
            Err(_) => Ok(None),
        }
    }

    async fn exec_once(&self, path: &str, request: &ExecRequest) -> Result<ExecReply, Failed> {
        let connecting = connect(&self.client, path, self.durations.exec_connect);
        let (socket, protocol) = match connecting.await {
            Ok(connected) => connected,
            Err(error) => return read_refusal(error),
        };
        if request.stdin().is_some() && protocol == Protocol::V4 {
            let detail =
                "the server speaks only v4.channel.k8s.io, which cannot end standard input";
            return Err(Failed {
                error: ErrorKind::ExecTransport.error(detail),
                may_pass: false,
                after: None,
            });
        }
        Ok(self.converse(socket, request.stdin()).await?)
    }

    /// Writes standard input and reads until the stream ends.
    async fn converse(&self, socket: Socket, stdin: Option<&str>) -> Result<ExecReply> {
        let idle = self.durations.exec_idle;
        // How long output may still follow an exit status
        let tail = self.durations.transport_pause * 4;
        let (mut sink, mut stream) = socket.split();
        let mut session = Session::default();
        let mut deadline = Instant::now() + idle;
        let lost = {
            let mut feeding = std::pin::pin!(feed(&mut sink, stdin));
            let mut fed = false;
            loop {
                let message = tokio::select! {
                    biased;
                    // A broken write shows in reading too, after the server's last messages
                    _ = &mut feeding, if !fed => {
                        fed = true;
                        deadline = Instant::now() + idle;
                        continue;
                    }
                    message = timeout_at(deadline, stream.next()) => message,
                };
                let data = match message {
                    Err(_) => {
                        let detail = format!("silent for {idle:?}");
                        break ErrorKind::ExecTransport.error(detail);
                    }
                    Ok(None | Some(Ok(Message::Close(_)))) => break without_status(),
                    Ok(Some(Err(error))) => break broken(&error),
                    Ok(Some(Ok(Message::Binary(data)))) => data,
                    Ok(Some(Ok(Message::Text(text)))) => Bytes::from(text),
                    // A live connection does not prove a live program
                    Ok(Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)))) => {
                        continue;
                    }
                };
                if session.read_message(&data, self.limits.exec_output)? {
                    deadline = Instant::now() + if session.is_over() { tail } else { idle };
                }
            }
        };
        session.finish(lost)
    }
}

/// Writes all of standard input and its end.
async fn feed<S>(sink: &mut S, stdin: Option<&str>) -> Result<(), SocketError>
where
    S: Sink<Message, Error = SocketError> + Unpin,
{
    let Some(stdin) = stdin else { return Ok(()) };
    for chunk in stdin.as_bytes().chunks(CHUNK) {
        sink.send(Message::Binary([&[STDIN], chunk].concat().into()))
            .await?;
    }
    sink.send(Message::Binary(Bytes::from_static(&[CLOSE, STDIN])))
        .await
}

fn without_status() -> ObservationError {
    ErrorKind::ExitStatusLost.error("the session was closed without an exit status")
}

fn broken(error: &SocketError) -> ObservationError {
    match error {
        SocketError::ConnectionClosed | SocketError::AlreadyClosed => without_status(),
        SocketError::Capacity(_) => {
            ErrorKind::OutputTruncated.error("a message larger than any is kept")
        }
        other => ErrorKind::ExecTransport.error(printable(&other.to_string())),
    }
}

/// What a refused upgrade means.
fn read_refusal(failure: Failure) -> Result<ExecReply, Failed> {
    let mut said = error_text(&failure);
    if let Failure::NoReply {
        status: 403, text, ..
    } = &failure
    {
        said.push_str(why_forbidden(text));
    }
    let (kind, may_pass, after) = match failure {
        Failure::NoReply {
            status: 500..=599,
            text,
            ..
        } if is_not_started(&text) => {
            let exit = ExitStatus::NotStarted(text);
            return Ok(ExecReply {
                stdout: String::new(),
                stderr: String::new(),
                exit,
            });
        }
        Failure::NoReply { status, after, .. } => match status {
            401 => (ErrorKind::Unauthenticated, false, None),
            403 => (ErrorKind::Forbidden, false, None),
            429 => (ErrorKind::Throttled, true, after),
            500..=599 => (ErrorKind::ApiUnavailable, true, after),
            _ => (ErrorKind::ExecTransport, true, None),
        },
        _ => (ErrorKind::ExecTransport, true, None),
    };
    Err(Failed {
        error: kind.error(format!("exec: {said}")),
        may_pass,
        after,
    })
}

/// The cause that the server does not name in a 403.
fn why_forbidden(text: &str) -> &'static str {
    if text.trim_start().starts_with("Forbidden (user=") {
        // The kubelet's message (kubernetes 1.37.0, `pkg/kubelet/server/server.go`, `InstallAuthFilter`)
        return ": the kubelet refuses the API server, whatever the account of this run may do";
    }
    match text.contains("cannot") {
        // The server names a missing `get`
        true => "",
        // It answers a missing `create` with no more than "forbidden" (KEP-4006,
        // `AuthorizePodWebsocketUpgradeCreatePermission`)
        false => ": the account cannot create pods/exec, it seems",
    }
}

fn path(pod: &PodRef, request: &ExecRequest) -> String {
    let stdin = request.stdin().is_some();
    let mut path = format!(
        "/api/v1/namespaces/{}/pods/{}/exec?container={}&stdin={stdin}&stdout=true&stderr=true",
        encode(&pod.namespace),
        encode(&pod.name),
        encode(&pod.container),
    );
    for argument in request.argv() {
        path.push_str(&format!("&command={}", encode(argument)));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::env::Env;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use winconform_core::command::{Command, Curl, Host, HttpGet, HttpSession, Token};
    use winconform_core::facts::Os;

    use http::Request;
    use hyper_util::rt::TokioIo;
    use kube::Client;
    use kube::client::Body;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio_tungstenite::accept_hdr_async;
    use tokio_tungstenite::tungstenite::handshake::server;
    use winconform_core::config::{Durations, Limits};

    /// What the fake server does with one try.
    #[derive(Clone)]
    enum Script {
        /// Speaks this protocol, sends these messages and ends the stream in this way.
        Speaks(&'static str, Vec<Vec<u8>>, End),
        /// Answers with these bytes.
        Says(&'static str),
    }

    #[derive(Clone, Copy)]
    enum End {
        Close,
        Reset,
        Silence,
        /// Answers with what it read up to the end of standard input.
        Echo,
    }
    use Script::{Says, Speaks};

    const V5: &str = "v5.channel.k8s.io";
    const SUCCESS: &str = r#"{"status":"Success"}"#;

    fn message(channel: u8, text: &str) -> Vec<u8> {
        [&[channel], text.as_bytes()].concat()
    }

    /// Answers with this status and body.
    fn says(status: &str, body: &str) -> Script {
        let length = body.len();
        Says(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").leak())
    }

    async fn serve(mut io: DuplexStream, script: Script) {
        let (protocol, messages, end) = match script {
            Says(bytes) => {
                let mut head = [0; 4096];
                let _ = io.read(&mut head).await;
                let _ = io.write_all(bytes.as_bytes()).await;
                return;
            }
            Speaks(protocol, messages, end) => (protocol, messages, end),
        };
        #[expect(
            clippy::result_large_err,
            reason = "the callback's type is tungstenite's"
        )]
        let choose = |request: &server::Request, mut response: server::Response| {
            assert!(request.headers()["sec-websocket-protocol"].to_str().is_ok());
            let chosen = protocol.parse().expect("a header");
            response
                .headers_mut()
                .insert("sec-websocket-protocol", chosen);
            Ok(response)
        };
        let mut socket = accept_hdr_async(io, choose).await.expect("a handshake");
        for message in messages {
            let message = Message::Binary(message.into());
            socket.send(message).await.expect("sent");
        }
        match end {
            End::Close => {
                let _ = socket.close(None).await;
                while socket.next().await.is_some_and(|message| message.is_ok()) {}
            }
            End::Reset => {}
            End::Silence => std::future::pending().await,
            End::Echo => {
                let mut read = vec![1];
                while let Some(Ok(Message::Binary(data))) = socket.next().await {
                    match data.as_ref() {
                        [CLOSE, STDIN] => break,
                        [STDIN, data @ ..] => read.extend_from_slice(data),
                        other => panic!("{other:?}"),
                    }
                }
                for message in [read, message(3, SUCCESS)] {
                    let message = Message::Binary(message.into());
                    socket.send(message).await.expect("sent");
                }
                std::future::pending::<()>().await;
            }
        }
    }

    /// A session of curl, which reads the path from its standard input.
    fn session(path: &str) -> Command {
        let get = HttpGet {
            host: Host::parse("10.0.0.1").expect("an address"),
            port: 80,
            path: path.to_owned(),
        };
        Command::HttpSession(HttpSession {
            curl: Curl::Linux,
            gets: vec![get],
            token: Token::parse("t").expect("a token"),
            connect: Duration::from_secs(4),
            total: Duration::from_secs(8),
        })
    }

    /// Runs a program, or curl with a path, against a server that follows the scripts in turn and repeats the last.
    async fn run(scripts: Vec<Script>, path: Option<&str>) -> (Result<ExecReply>, usize) {
        run_and_read(scripts, path, |reply| Ok(reply.clone())).await
    }

    /// Like `run`, and reads the output with `read`.
    async fn run_and_read<T>(
        scripts: Vec<Script>,
        path: Option<&str>,
        read: impl Fn(&ExecReply) -> Result<T>,
    ) -> (Result<T>, usize) {
        let (api, begun) = behind(scripts);
        let command = path.map_or(Command::WhoAmI, session);
        let request = command.on(Os::Linux).expect("of Linux");
        let reply = api.exec_read(&pod(), &request, read).await;
        let tried = begun.load(Ordering::Relaxed);
        let mut counts = api.counts().into_iter();
        let resent = counts.find(|(name, _)| name.starts_with("resent"));
        assert_eq!(resent.map_or(0, |(_, count)| count), tried as u64 - 1);
        (reply, tried)
    }

    fn pod() -> PodRef {
        PodRef {
            namespace: "a".into(),
            name: "b".into(),
            container: "main".into(),
        }
    }

    /// A client of a server that follows the scripts, and how many execs were begun there.
    fn behind(scripts: Vec<Script>) -> (Api, Arc<AtomicUsize>) {
        let begun = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&begun);
        let service = tower::service_fn(move |request: Request<Body>| {
            // The server answers a request for its version at once
            let is_exec = request.uri().path().ends_with("/exec");
            let tried = count.fetch_add(usize::from(is_exec), Ordering::Relaxed);
            let script = match is_exec {
                true => scripts[tried.min(scripts.len() - 1)].clone(),
                false => Says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
            };
            async move {
                let (ours, theirs) = tokio::io::duplex(1 << 16);
                tokio::spawn(serve(theirs, script));
                let (mut sender, connection) =
                    hyper::client::conn::http1::handshake(TokioIo::new(ours)).await?;
                tokio::spawn(connection.with_upgrades());
                sender.send_request(request).await
            }
        });
        let limits = Limits {
            exec_output: 1000,
            ..Limits::default()
        };
        let (client, durations) = (Client::new(service, "default"), Durations::default());
        (Api::new(Env::system(), client, durations, limits), begun)
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_something_is_tried_once() {
        let request = Command::WhoAmI.on(Os::Linux).expect("of Linux");
        let half = |end| Speaks(V5, vec![message(1, "half")], end);
        for (script, expected) in [
            (done(End::Close), Ok(Some(ExitStatus::Code(0)))),
            (half(End::Close), Ok(None)),
            (half(End::Reset), Ok(None)),
            (half(End::Silence), Ok(None)),
            (Says("nonsense"), Ok(None)),
            (says("429 Slow", "{}"), Err(ErrorKind::Throttled)),
            (says("502 Bad", "<html>"), Err(ErrorKind::ApiUnavailable)),
            (says("403 Forbidden", "{}"), Err(ErrorKind::Forbidden)),
        ] {
            let (api, begun) = behind(vec![script]);
            let reply = api.exec_unrepeated(&pod(), &request).await;
            let came_to = reply.map(|reply| reply.map(|reply| reply.exit));
            assert_eq!(came_to.map_err(|error| error.kind), expected);
            assert_eq!(begun.load(Ordering::Relaxed), 1);
        }
    }

    fn done(end: End) -> Script {
        let messages = vec![message(1, "out"), message(2, "err"), message(3, SUCCESS)];
        Speaks(V5, messages, end)
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_ran_is_told_however_the_stream_ends() {
        for end in [End::Close, End::Reset, End::Silence] {
            let (reply, tried) = run(vec![done(end)], None).await;
            let reply = reply.expect("a reply");
            assert_eq!([&*reply.stdout, &*reply.stderr], ["out", "err"]);
            assert_eq!((reply.exit, tried), (ExitStatus::Code(0), 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn standard_input_is_written_and_ended() {
        let path = format!("/{}", "é".repeat(200));
        let (reply, _) = run(vec![Speaks(V5, vec![], End::Echo)], Some(&path)).await;
        let request = session(&path).on(Os::Linux).expect("of Linux");
        assert_eq!(Some(&*reply.expect("a reply").stdout), request.stdin());
    }

    #[tokio::test(start_paused = true)]
    async fn v4_cannot_end_standard_input() {
        let v4 = Speaks("v4.channel.k8s.io", vec![message(3, SUCCESS)], End::Close);
        assert!(run(vec![v4.clone()], None).await.0.is_ok());
        let (reply, tried) = run(vec![v4], Some("/")).await;
        assert_eq!(reply.expect_err("an error").kind, ErrorKind::ExecTransport);
        assert_eq!(tried, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_exit_status_is_never_success() {
        let output = vec![message(1, "200 OK")];
        for (end, kind) in [
            (End::Close, ErrorKind::ExitStatusLost),
            (End::Reset, ErrorKind::ExecTransport),
            (End::Silence, ErrorKind::ExecTransport),
        ] {
            let (reply, tried) = run(vec![Speaks(V5, output.clone(), end)], None).await;
            assert_eq!(reply.expect_err("an error").kind, kind);
            assert_eq!(tried, Limits::default().exec_tries as usize);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lost_output_and_broken_tries_have_three_retries_together() {
        let read = |reply: &ExecReply| match reply.stdout.as_str() {
            "out" => Ok("read"),
            _ => Err(ErrorKind::UnrecognisedOutput.error("cut off")),
        };
        let lost = Speaks(V5, vec![message(3, SUCCESS)], End::Close);
        let broken = Speaks(V5, vec![message(1, "out")], End::Reset);
        let scripts = vec![lost.clone(), broken.clone(), lost.clone(), broken];
        let (told, tried) = run_and_read(scripts, None, read).await;
        assert_eq!(told.expect_err("lost").kind, ErrorKind::ExecTransport);
        assert_eq!(tried, 4);
        let scripts = vec![lost.clone(), lost, done(End::Close)];
        let (told, tried) = run_and_read(scripts, None, read).await;
        assert_eq!((told.expect("it is told"), tried), ("read", 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_try_is_begun_again() {
        let busy = says("429 Too Many Requests\r\nRetry-After: 1", "{}");
        let cut = Speaks(V5, vec![message(1, "half")], End::Reset);
        let (reply, tried) = run(vec![cut, busy, done(End::Close)], None).await;
        assert_eq!((reply.expect("a reply").stdout.as_str(), tried), ("out", 3));
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_told_apart() {
        use ErrorKind::{ApiUnavailable, ExecTransport, Forbidden, Throttled};
        for (said, kind, tries) in [
            (says("403 Forbidden", r#"{"message":"rbac"}"#), Forbidden, 1),
            (says("404 Not Found", "{}"), ExecTransport, 4),
            (says("429 Slow", "{}"), Throttled, 4),
            (says("502 Bad", "<html>"), ApiUnavailable, 4),
            (says("200 OK", "OK"), ExecTransport, 4),
            (Says("nonsense"), ExecTransport, 4),
        ] {
            let (reply, tried) = run(vec![said], None).await;
            let error = reply.expect_err("an error");
            assert_eq!((error.kind, tried), (kind, tries), "{error}");
        }
        let body =
            r#"{"message":"failed to exec in container: executable file not found in $PATH"}"#;
        let (reply, tried) = run(vec![says("500 Error", body)], None).await;
        let exit = reply.expect("a reply").exit;
        assert!(matches!(exit, ExitStatus::NotStarted(_)), "{exit:?}");
        assert_eq!(tried, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn too_much_output_is_trouble_at_once() {
        let flood = Speaks(V5, vec![message(1, &"x".repeat(2000))], End::Silence);
        let (reply, tried) = run(vec![flood], None).await;
        let kind = reply.expect_err("an error").kind;
        assert_eq!((kind, tried), (ErrorKind::OutputTruncated, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn who_refuses_is_told() {
        let kubelet = "Forbidden (user=kube-apiserver-kubelet-client, verb=get, resource=nodes, \
                       subresource(s)=[proxy])";
        let get = r#"{"message":"pods \"a\" is forbidden: User \"b\" cannot get resource \"pods/exec\""}"#;
        for (said, account, refused_by_kubelet) in [
            (kubelet, false, true),
            (get, false, false),
            (r#"{"message":"forbidden"}"#, true, false),
        ] {
            let (reply, _) = run(vec![says("403 Forbidden", said)], None).await;
            let detail = reply.expect_err("an error").detail;
            let told = (
                detail.contains("the account cannot"),
                detail.contains("the kubelet refuses the API server"),
            );
            assert_eq!(told, (account, refused_by_kubelet), "{detail}");
        }
    }

    #[test]
    fn arguments_stay_arguments() {
        let pod = PodRef {
            namespace: "a/b".into(),
            name: "c".into(),
            container: "d&e".into(),
        };
        let token = Token::parse("t").expect("a token");
        let request = Command::Streams(token).on(Os::Windows).expect("of Windows");
        assert_eq!(
            path(&pod, &request),
            "/api/v1/namespaces/a%2Fb/pods/c/exec?container=d%26e&stdin=false&stdout=true\
             &stderr=true&command=C%3A%5CWindows%5CSystem32%5Ccmd.exe&command=%2Fc\
             &command=echo%20t%26%20echo%20E-t%201%3E%262%26%20exit%207"
        );
    }
}
