//! Sessions of real curls, old and new, which the tests split like those of probers.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};
use std::time::Duration;

use winconform_core::command::{self, Curl, HttpSession, Token};
use winconform_core::facts::Os;
use winconform_core::method::{ExecReply, ExecRequest, ExitStatus, Host, HttpGet, HttpReply, curl};

/// The paths of curls, in the form of PATH; `ci/windows-programs/curl` builds and names them.
const CURLS: &str = "WINCONFORM_TEST_CURLS";

/// A server that answers each connection once, and its port.
fn serving() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            let body = head.first().cloned().unwrap_or_default();
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    port
}

fn refusing() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

fn ran(program: &str, request: &ExecRequest) -> ExecReply {
    let mut child = Command::new(program)
        .args(&request.argv()[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("curl starts");
    let input = request.stdin().expect("a configuration");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("curl reads it");
    drop(stdin);
    let output = child.wait_with_output().expect("curl ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ExecReply {
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        exit: ExitStatus::Code(output.status.code().expect("it ends by itself").into()),
    }
}

#[test]
fn a_refusal_leaves_the_answers_of_the_other_targets() {
    let Some(curls) = std::env::var_os(CURLS) else {
        // Bypasses the test harness, which hides the output of passing tests
        writeln!(
            std::io::stderr(),
            "not run: a_refusal_leaves_the_answers_of_the_other_targets: {CURLS} is not set"
        )
        .expect("stderr is open");
        return;
    };
    let (serves, refuses) = (serving(), refusing());
    for (program, refused) in
        std::env::split_paths(&curls).flat_map(|path| [(path.clone(), 1), (path, 3)])
    {
        let program = program.to_str().expect("a path in UTF-8");
        let get = |index| HttpGet {
            host: Host::Address(Ipv4Addr::LOCALHOST.into()),
            port: if index == refused { refuses } else { serves },
            path: format!("/{index}"),
        };
        let gets: Vec<_> = (0..4).map(get).collect();
        let limit = Duration::from_secs(8);
        let token = Token::parse("t0k").expect("a token");
        let session = HttpSession {
            curl: Curl::Linux,
            gets: gets.clone(),
            token: token.clone(),
            connect: limit,
            total: limit,
        };
        let request = command::Command::HttpSession(session).on(Os::Linux);
        let reply = ran(program, &request.expect("of Linux"));
        let replies = curl::split(&gets, &token, &reply).expect(program);
        assert_eq!(replies.len(), gets.len(), "{program}");
        for (index, reply) in replies.into_iter().enumerate() {
            match reply {
                HttpReply::Failed { code: 7, .. } if index == refused => {}
                other => {
                    let body = format!("GET /{index} HTTP/1.1");
                    assert_eq!(
                        other,
                        HttpReply::Answered { status: 200, body },
                        "{program}"
                    );
                }
            }
        }
    }
}
