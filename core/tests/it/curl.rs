//! Sessions of real curls, old and new, of this machine and, under Wine, of Windows: what the tool reads of a server
//! that fails in some way is the same with each of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::tally::Tally;
use crate::wine;
use winconform_core::command::{self, Curl, HttpSession, Token};
use winconform_core::facts::Os;
use winconform_core::method::FailureClass::{self, *};
use winconform_core::method::{ExecRequest, ExitStatus, Host, HttpGet, HttpReply, curl};

/// The paths of curls, in the form of PATH; `ci/windows-programs/run` builds them. One that ends in `.exe` is a
/// program of Windows; `launch.exe` beside it starts it.
pub(crate) const CURLS: &str = "WINCONFORM_TEST_CURLS";

/// Each curl as the table names it, and its version.
pub(crate) fn curls() -> Vec<(String, &'static str, PathBuf)> {
    let curls = std::env::var_os(CURLS).expect("they are named");
    let versions = ["7.54", "7.83", "8.12"].into_iter().cycle();
    let name = |(path, version): (PathBuf, _)| {
        let runs = match is_of_windows(&path) {
            true => "Windows (Wine)",
            false => "Linux",
        };
        (format!("curl {version}, {runs}"), version, path)
    };
    std::env::split_paths(&curls)
        .zip(versions)
        .map(name)
        .collect()
}

/// How long a connection and a target may take.
const LIMIT: Duration = Duration::from_secs(2);

/// A server for one kind of target.
#[derive(Clone, Copy)]
struct Server {
    /// What it does.
    name: &'static str,
    /// Data that it has not read turns its end into a reset.
    reads: Reads,
    says: &'static str,
    then: Then,
    /// The classes of the failure that may be seen; none if it answers.
    classes: &'static [FailureClass],
}

#[derive(Clone, Copy, PartialEq)]
enum Reads {
    Request,
    Nothing,
}

#[derive(Clone, Copy)]
enum Then {
    Closes,
    Hangs,
    /// Says this after a moment.
    Says(&'static str),
}

const fn server(
    name: &'static str,
    reads: Reads,
    says: &'static str,
    then: Then,
    classes: &'static [FailureClass],
) -> Server {
    Server {
        name,
        reads,
        says,
        then,
        classes,
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const NO: &str = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf";
const HEAD: &str = "HTTP/1.1 200 OK\r\nConte";
const SSH: &str = "SSH-2.0-OpenSSH_9.2\r\n";

const SERVERS: [Server; 11] = [
    server("answers", Reads::Request, OK, Then::Closes, &[]),
    server(
        "answers with an error",
        Reads::Request,
        NO,
        Then::Closes,
        &[],
    ),
    server("is slow", Reads::Request, HALF, Then::Says("half"), &[]),
    server("hangs", Reads::Request, "", Then::Hangs, &[NoAnswer]),
    server(
        "hangs in the body",
        Reads::Request,
        HALF,
        Then::Hangs,
        &[BrokenAnswer],
    ),
    server("closes at once", Reads::Request, "", Then::Closes, &[Reset]),
    server(
        "closes in the body",
        Reads::Request,
        HALF,
        Then::Closes,
        &[BrokenAnswer],
    ),
    server("resets", Reads::Nothing, "", Then::Closes, &[Reset]),
    server(
        "resets in the head",
        Reads::Nothing,
        HEAD,
        Then::Closes,
        &[BrokenAnswer],
    ),
    server(
        "resets in the body",
        Reads::Nothing,
        HALF,
        Then::Closes,
        &[BrokenAnswer],
    ),
    server(
        "speaks another protocol",
        Reads::Request,
        SSH,
        Then::Closes,
        &[WrongAnswer],
    ),
];

/// What a target does whose name is nowhere.
const NAMELESS: &str = "has no name";

/// A target with the classes of its failure, none where it answers.
type Target = (&'static str, HttpGet, &'static [FailureClass]);

fn listening() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    (listener, port)
}

fn serve(mut stream: TcpStream, server: Server) -> std::io::Result<()> {
    if server.reads == Reads::Request {
        let lines = BufReader::new(&stream).lines().map_while(Result::ok);
        lines.take_while(|line| !line.is_empty()).for_each(drop);
    } else {
        stream.peek(&mut [0])?;
    }
    stream.write_all(server.says.as_bytes())?;
    let (pause, last) = match server.then {
        Then::Closes => return Ok(()),
        Then::Hangs => (2 * LIMIT, ""),
        Then::Says(last) => (LIMIT / 8, last),
    };
    // The other end says nothing until it leaves
    stream.set_read_timeout(Some(pause))?;
    let _ = stream.read(&mut [0]);
    stream.write_all(last.as_bytes())
}

/// Answers each request, until the test ends.
pub(crate) fn answer(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        // A client may leave
        let _ = serve(stream, SERVERS[0]);
    }
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
        targets.push((server.name, get("127.0.0.1", port), server.classes));
    }
    targets.push((
        "refuses",
        get("127.0.0.1", listening().1),
        &[Refused, NotConnected],
    ));
    targets.push((NAMELESS, get("no-such-name.invalid", 80), &[Dns]));
    match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(listener) => {
            let port = listener.local_addr().expect("it is bound").port();
            std::thread::spawn(move || answer(&listener));
            targets.push(("answers by IPv6", get("::1", port), &[]));
        }
        // Past the test harness, which keeps what passing tests print
        Err(error) => {
            writeln!(std::io::stderr(), "not run: a target of IPv6: {error}").expect("it is open");
        }
    }
    // Its queue is full, so that it answers no further SYN
    let (silent, port) = listening();
    let address = silent.local_addr().expect("it is bound");
    let short = Duration::from_millis(200);
    let connect = || TcpStream::connect_timeout(&address, short).ok();
    let filling = std::iter::from_fn(connect).take(20_000).collect();
    targets.push(("is silent", get("127.0.0.1", port), &[Timeout]));
    // The last one answers: the session's exit code says nothing of the others
    targets.push(targets[0].clone());
    (targets, filling, silent)
}

/// The command that runs a request.
fn started(program: &Path, request: &ExecRequest, in_host_process: bool) -> Command {
    if is_of_windows(program) {
        wine::install(program, "curl.exe");
        return wine::command(request.argv(), in_host_process);
    }
    let mut command = Command::new(program);
    command.args(&request.argv()[1..]);
    command
}

pub(crate) fn is_of_windows(program: &Path) -> bool {
    program
        .extension()
        .is_some_and(|extension| extension == "exe")
}

/// What a program does whose sessions the tool can read.
pub(crate) const PARSED: &str = "session is read";

/// Compares what the tool reads of the targets with what they do.
fn observe(
    tally: &mut Tally,
    name: &str,
    program: &Path,
    targets: &[Target],
    in_host_process: bool,
) {
    let (curl, os) = system(program);
    let gets: Vec<_> = targets.iter().map(|(_, get, _)| get.clone()).collect();
    let token = Token::parse("t0k").expect("a token");
    let session = HttpSession {
        curl,
        gets: gets.clone(),
        token: token.clone(),
        connect: LIMIT,
        total: LIMIT,
    };
    let request = command::Command::HttpSession(session)
        .on(os)
        .expect("a curl of this system");
    let reply = wine::reply(started(program, &request, in_host_process), request.stdin());
    let replies = match curl::split(&gets, &token, &reply) {
        Ok(replies) => replies,
        Err(error) => return tally.note(name, PARSED, Some(format!("{error}: {reply:?}"))),
    };
    tally.note(name, PARSED, None);
    for ((behaviour, _, classes), reply) in targets.iter().zip(replies) {
        let class = match &reply {
            HttpReply::Failed { code, text } => Some(curl::classify(*code, text)),
            HttpReply::Unreached { class, .. } => Some(Some(*class)),
            HttpReply::Answered { .. } => None,
        };
        let is_right = match class {
            None => classes.is_empty(),
            Some(class) => class.is_some_and(|class| classes.contains(&class)),
        };
        tally.note(name, behaviour, (!is_right).then(|| format!("{reply:?}")));
    }
}

/// Compares what the tool gets of one request with what a target does that answers, and one without a name.
fn observe_one(
    tally: &mut Tally,
    name: &str,
    program: &Path,
    targets: &[Target],
    in_host_process: bool,
) {
    let (_, os) = system(program);
    for (at, prints, code) in [(SERVERS[0].name, "ok", 0), (NAMELESS, "", 6)] {
        let target = targets.iter().find(|(behaviour, ..)| *behaviour == at);
        let (_, get, _) = target.expect("it is there").clone();
        let request = command::Command::Get(get).on(os).expect("it has");
        let reply = wine::reply(started(program, &request, in_host_process), None);
        let is_right = reply.stdout == prints && reply.exit == ExitStatus::Code(code);
        let behaviour = format!("{at}, to one request");
        tally.note(name, &behaviour, (!is_right).then(|| format!("{reply:?}")));
    }
}

fn system(program: &Path) -> (Curl, Os) {
    match is_of_windows(program) {
        true => (Curl::System, Os::Windows),
        false => (Curl::Linux, Os::Linux),
    }
}

#[test]
fn every_curl_says_which_it_is_and_of_every_server_what_it_does() {
    if !wine::is_set(
        CURLS,
        "every_curl_says_which_it_is_and_of_every_server_what_it_does",
    ) {
        return;
    }
    let _alone = wine::alone();
    let (mut targets, _filling, _silent) = targets();
    let mut tally = Tally::new("what the tool reads of servers through curl, and what they do");
    for (name, version, program) in curls() {
        let (curl, os) = system(&program);
        let request = command::Command::CurlVersion(curl).on(os).expect("it has");
        let reply = wine::reply(started(&program, &request, true), request.stdin());
        let is_right = curl::version(&reply.stdout).is_some_and(|read| read.starts_with(version));
        let difference = (!is_right).then(|| format!("{reply:?}"));
        tally.note(&name, "tells its version", difference);
        let of_host_process: &[bool] = if is_of_windows(&program) {
            &[false, true]
        } else {
            &[false]
        };
        for in_host_process in of_host_process {
            observe_one(&mut tally, &name, &program, &targets, *in_host_process);
            for _ in 0..2 {
                observe(&mut tally, &name, &program, &targets, *in_host_process);
                // What one says must not depend on who comes before
                targets.reverse();
            }
        }
    }
    tally.end();
}
