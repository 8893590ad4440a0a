//! Sessions of real curls, old and new, of this machine and, under Wine, of Windows: what the tool reads of a server
//! that fails in some way is the same with each of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::wine;
use winconform_core::command::{self, Curl, HttpSession, Token};
use winconform_core::facts::Os;
use winconform_core::method::FailureClass::{self, *};
use winconform_core::method::{ExecRequest, Host, HttpGet, HttpReply, curl};

/// The paths of curls, in the form of PATH; `ci/windows-programs/run` builds them. One that ends in `.exe` is a
/// program of Windows; `launch.exe` beside it starts it.
const CURLS: &str = "WINCONFORM_TEST_CURLS";

/// How long a connection and a target may take.
const LIMIT: Duration = Duration::from_secs(2);

const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf";

/// A server: whether it reads the request, what it says, whether it then waits, and what it says then before it
/// closes. Data that it has not read turns that into a reset. Behind that the class of the failure, if it is one.
type Server = (
    &'static str,
    bool,
    &'static str,
    bool,
    &'static str,
    &'static [FailureClass],
);

const SERVERS: [Server; 11] = [
    (
        "answers",
        true,
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        false,
        "",
        &[],
    ),
    (
        "refuses by a status",
        true,
        "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
        false,
        "",
        &[],
    ),
    ("is slow", true, HALF, true, "half", &[]),
    ("hangs", true, "", true, "", &[NoAnswer]),
    ("hangs in the body", true, HALF, true, "", &[NoAnswer]),
    ("closes at once", true, "", false, "", &[Reset]),
    ("closes in the body", true, HALF, false, "", &[Reset]),
    ("resets", false, "", false, "", &[Reset]),
    (
        "resets in the head",
        false,
        "HTTP/1.1 200 OK\r\nConte",
        false,
        "",
        &[Reset],
    ),
    ("resets in the body", false, HALF, false, "", &[Reset]),
    (
        "speaks another protocol",
        true,
        "SSH-2.0-OpenSSH_9.2\r\n",
        false,
        "",
        &[WrongAnswer],
    ),
];

/// Wine 8 reports a reset as the end of a stream: curl ends with 52 where it otherwise does with 56. An end in the
/// head is an answer to every curl.
const NOT_UNDER_WINE: [&str; 1] = ["resets in the head"];

/// A target with the classes of its failure, none where it answers.
type Target = (String, HttpGet, &'static [FailureClass]);

fn listening() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    (listener, port)
}

fn serve(mut stream: TcpStream, (_, reads, first, waits, last, _): Server) -> std::io::Result<()> {
    if reads {
        let lines = BufReader::new(&stream).lines().map_while(Result::ok);
        lines.take_while(|line| !line.is_empty()).for_each(drop);
    } else {
        stream.peek(&mut [0])?;
    }
    stream.write_all(first.as_bytes())?;
    if waits {
        // The other end says nothing until it leaves
        let pause = if last.is_empty() {
            2 * LIMIT
        } else {
            LIMIT / 8
        };
        stream.set_read_timeout(Some(pause))?;
        let _ = stream.read(&mut [0]);
    }
    stream.write_all(last.as_bytes())
}

/// One target of each kind, and what is held open for them.
fn targets() -> (Vec<Target>, Vec<TcpStream>, TcpListener) {
    let get = |host: &str, port| HttpGet {
        host: Host::parse(host).expect("a host"),
        port,
        path: "/".to_owned(),
    };
    let mut targets: Vec<Target> = Vec::new();
    for server in SERVERS {
        let (listener, port) = listening();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(stream, server));
            }
        });
        targets.push((server.0.to_owned(), get("127.0.0.1", port), server.5));
    }
    targets.push((
        "is closed".to_owned(),
        get("127.0.0.1", listening().1),
        &[Refused, NotConnected],
    ));
    targets.push((
        "has no name".to_owned(),
        get("no-such-name.invalid", 80),
        &[Dns],
    ));
    // Its queue is full, so that it answers no further SYN
    let (silent, port) = listening();
    let address = silent.local_addr().expect("it is bound");
    let short = Duration::from_millis(200);
    let connect = || TcpStream::connect_timeout(&address, short).ok();
    let filling = std::iter::from_fn(connect).take(20_000).collect();
    targets.push(("is silent".to_owned(), get("127.0.0.1", port), &[Timeout]));
    // The last one answers: the session's exit code says nothing of the others
    targets.push(targets[0].clone());
    (targets, filling, silent)
}

/// The command that runs a request.
fn started(program: &Path, request: &ExecRequest, in_host_process: bool) -> Command {
    if is_of_windows(program) {
        let system = wine::prefix().join("drive_c/windows/system32/curl.exe");
        std::fs::copy(program, system).expect("it is installed");
        return wine::command(request, in_host_process);
    }
    let mut command = Command::new(program);
    command.args(&request.argv()[1..]);
    command
}

fn is_of_windows(program: &Path) -> bool {
    program
        .extension()
        .is_some_and(|extension| extension == "exe")
}

/// What a session comes to otherwise than it has to.
fn wrong(program: &Path, targets: &[Target], in_host_process: bool) -> Vec<String> {
    let os = if is_of_windows(program) {
        Os::Windows
    } else {
        Os::Linux
    };
    let gets: Vec<_> = targets.iter().map(|(_, get, _)| get.clone()).collect();
    let token = Token::parse("t0k").expect("a token");
    let session = HttpSession {
        curl: if os == Os::Windows {
            Curl::System
        } else {
            Curl::Linux
        },
        gets: gets.clone(),
        token: token.clone(),
        connect: LIMIT,
        total: LIMIT,
    };
    let request = command::Command::HttpSession(session)
        .on(os)
        .expect("a curl of this system");
    let reply = wine::reply(started(program, &request, in_host_process), &request);
    let replies = match curl::split(&gets, &token, &reply) {
        Ok(replies) => replies,
        Err(error) => return vec![format!("{}: {error}: {reply:?}", program.display())],
    };
    let mut wrong = Vec::new();
    for ((name, _, classes), reply) in targets.iter().zip(replies) {
        let class = match &reply {
            HttpReply::Failed { code, text } => Some(curl::classify(*code, text)),
            HttpReply::Answered { .. } | HttpReply::Unreached { .. } => None,
        };
        let is_right = match class {
            _ if is_of_windows(program) && NOT_UNDER_WINE.contains(&&**name) => true,
            None => classes.is_empty(),
            Some(class) => class.is_some_and(|class| classes.contains(&class)),
        };
        if !is_right {
            wrong.push(format!("{}: one that {name}: {reply:?}", program.display()));
        }
    }
    wrong
}

#[test]
fn every_curl_says_of_every_server_what_it_does() {
    let Some(curls) = std::env::var_os(CURLS) else {
        // Past the test harness, which keeps what passing tests print
        let name = "every_curl_says_of_every_server_what_it_does";
        writeln!(std::io::stderr(), "not run: {name}: {CURLS} is not set").expect("stderr is open");
        return;
    };
    let (mut targets, _filling, _silent) = targets();
    let mut found = Vec::new();
    for program in std::env::split_paths(&curls) {
        for in_host_process in [false, true] {
            // Each order twice over all: what one says must not depend on who comes before
            targets.reverse();
            let wrong = wrong(&program, &targets, in_host_process);
            let agree = targets.len() - wrong.len().min(targets.len());
            let way = if in_host_process {
                "by cmd"
            } else {
                "directly"
            };
            writeln!(
                std::io::stderr(),
                "{} {way}: {agree} of {}",
                program.display(),
                targets.len()
            )
            .expect("stderr is open");
            found.extend(wrong);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
