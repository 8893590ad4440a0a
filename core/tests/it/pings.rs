//! Sessions of pings, with and without a curl before them, as Windows gets them: what the tool reads of targets that
//! answer, or do not, is the same in a process container and in a `HostProcess` one.
//!
//! Wine 8 is Windows neither in which of `a && b || c` it runs nor in what its ping ends with: these tests take the
//! branch that Windows takes, and compare the rest.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::time::Duration;

use winconform_core::command::{Command, Curl, HttpSession, Token};
use winconform_core::facts::Os;
use winconform_core::method::ping::{self, session};
use winconform_core::method::{
    ExecReply, ExitStatus, FailureClass, Host, HttpGet, HttpReply, ReachAnswer, curl,
};

use crate::curl::{CURLS, PARSED, curls, is_of_windows};
use crate::tally::Tally;
use crate::wine;

const LIMIT: Duration = Duration::from_secs(2);

/// No machine is in this group, so that none answers (RFC 2365).
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 255, 0, 9));

fn token() -> Token {
    Token::parse("t0k").expect("a token")
}

const PING: &str = "ping of Wine";

/// A session in which all fail, or all succeed.
struct Session {
    gets: Vec<HttpGet>,
    targets: Vec<IpAddr>,
    fail: bool,
}

impl Session {
    fn new(port: u16, targets: &[IpAddr], fail: bool) -> Self {
        let get = HttpGet {
            host: Host::Address(Ipv4Addr::LOCALHOST.into()),
            port,
            path: "/".to_owned(),
        };
        Self {
            gets: vec![get; 2],
            targets: targets.to_vec(),
            fail,
        }
    }

    /// What the tool gets of it, as Windows would send it.
    fn reply(&self, tally: &mut Tally, curl: Option<Curl>, in_host_process: bool) -> ExecReply {
        let after = curl.map(|curl| HttpSession {
            curl,
            gets: self.gets.clone(),
            token: token(),
            connect: LIMIT,
            total: LIMIT,
        });
        let pings = Command::Pings {
            targets: self.targets.clone(),
            token: token(),
            after,
        };
        let request = pings.on(Os::Windows).expect("Windows has it");
        let run = || {
            let process = wine::command(request.argv(), in_host_process);
            wine::reply(process, request.stdin())
        };
        // Under load, Wine's cmd now and then ends without a word; Windows' says how each ping ended
        let is_said = |reply: &ExecReply| !reply.stdout.is_empty();
        let mut reply = std::iter::repeat_with(run)
            .take(3)
            .find(is_said)
            .expect("cmd says something");
        // The words of `echo`, which Wine's cmd says in both branches
        let other = if self.fail { " 0" } else { " 1" };
        let is_other = |line: &str| line.starts_with("@@t0k ") && line.trim_end().ends_with(other);
        let is_of_cmd = |line: &str| is_other(line) && line.split(' ').count() == 3;
        let lines = reply.stdout.split_inclusive('\n');
        let of_windows: String = lines.filter(|line| !is_of_cmd(line)).collect();
        let difference = (of_windows != reply.stdout).then(|| "runs both".to_owned());
        tally.note("cmd of Wine", "a && b || c", difference);
        reply.stdout = of_windows;
        reply.exit = ExitStatus::Code(0);
        reply
    }

    /// Compares what the tool reads with what the targets do; the curl before the pings is named.
    fn look(&self, tally: &mut Tally, curl: Option<(&str, Curl)>, in_host_process: bool) {
        let reply = self.reply(tally, curl.map(|(_, curl)| curl), in_host_process);
        let read = || {
            let (of_curl, of_pings) = match curl {
                Some(_) => session::apart(&token(), &reply)?,
                None => (reply.clone(), reply.clone()),
            };
            let got = match curl {
                Some(_) => curl::split(&self.gets, &token(), &of_curl)?,
                None => Vec::new(),
            };
            Ok((got, session::split(&self.targets, &token(), &of_pings)?))
        };
        let (got, echoes) = match read() {
            Ok(read) => read,
            Err::<_, winconform_core::method::ObservationError>(error) => {
                return tally.note(PING, PARSED, Some(format!("{error}: {reply:?}")));
            }
        };
        tally.note(PING, PARSED, None);
        for reply in got {
            let is_right = match &reply {
                HttpReply::Answered { status, body } => {
                    !self.fail && (*status, &**body) == (200, "ok")
                }
                HttpReply::Failed { code, .. } => self.fail && *code == 7,
                HttpReply::Unreached { .. } => false,
            };
            let behaviour = if self.fail { "refuses" } else { "answers" };
            let difference = (!is_right).then(|| format!("{reply:?}"));
            tally.note(curl.expect("it is named").0, behaviour, difference);
        }
        for (target, echo) in self.targets.iter().zip(echoes) {
            let read = ping::read(*target, &echo);
            let is_right = match &read {
                Err(_) => false,
                Ok(ReachAnswer::Answered(_)) => !self.fail,
                Ok(ReachAnswer::Failed { class, .. }) => {
                    self.fail && *class == FailureClass::Timeout
                }
            };
            let behaviour = match (self.fail, target.is_ipv6()) {
                (_, true) => "is silent, by IPv6",
                (true, _) => "is silent",
                (false, _) => "answers",
            };
            let difference = (!is_right).then(|| format!("{read:?} of {echo:?}"));
            tally.note(PING, behaviour, difference);
        }
    }
}

#[test]
fn what_pings_behind_any_curl_come_to_is_told() {
    if !wine::is_set(CURLS, "what_pings_behind_any_curl_come_to_is_told") {
        return;
    }
    let _alone = wine::alone();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = |listener: &TcpListener| listener.local_addr().expect("it is bound").port();
    let open = port(&listener);
    std::thread::spawn(move || crate::curl::answer(&listener));
    let closed = port(&TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
    let six = "fd00::7".parse().expect("an address");
    let [one, two] = [1, 2].map(|last| IpAddr::from([127, 0, 0, last]));
    let sessions = [
        Session::new(open, &[one, two], false),
        Session::new(closed, &[NOBODY, six], true),
    ];
    let mut tally = Tally::new("what the tool reads of targets through pings, and what they do");
    let mut look = |curl: Option<(&str, Curl)>| {
        for session in &sessions {
            for in_host_process in [false, true] {
                session.look(&mut tally, curl, in_host_process);
            }
        }
    };
    look(None);
    let of_windows = curls()
        .into_iter()
        .filter(|(.., program)| is_of_windows(program));
    // Each form with one of them; the search path has the system's folder
    let forms = [Curl::System, Curl::Agnhost, Curl::Windows];
    for ((name, _, program), curl) in of_windows.zip(forms) {
        wine::install(&program, "curl.exe");
        wine::install(&program, "../../curl/AMD64/curl.exe");
        look(Some((name.as_str(), curl)));
    }
    let nobody = NOBODY.to_string();
    let alone = ["C:\\Windows\\System32\\ping.exe", "-n", "1", &nobody];
    let ExecReply { exit, .. } = wine::reply(wine::command(&alone.map(str::to_owned), false), None);
    let difference = (exit != ExitStatus::Code(1)).then(|| format!("{exit:?}"));
    tally.note(PING, "ends with 1 without a reply", difference);
    tally.end();
}
