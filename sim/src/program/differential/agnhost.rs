use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::SIMULATED;
use super::sockets::{LOCAL, Scene, behaviour};
use super::tally::Tally;
use crate::base::log::Stream;
use crate::network::Origin;
use crate::program::kubernetes::{connect, netexec};
use crate::program::web::net::Server;
use crate::program::windows::network_table::Table;
use crate::topology::Os;
use crate::world::Page;

/// The agnhost that ci/agnhost/build built. Without one, since building it takes Go and minutes, the tests
/// print a note and end.
fn built(test: &str) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci/agnhost/build");
    let output = Command::new(script)
        .arg("--cached")
        .output()
        .expect("the script runs");
    let path = String::from_utf8(output.stdout).expect("a path");
    if output.status.success() {
        return Some(PathBuf::from(path.trim()));
    }
    // This bypasses the test harness, which captures what passing tests print
    writeln!(
        std::io::stderr(),
        "not run: {test}: ci/agnhost/build has not been run"
    )
    .expect("stderr is open");
    None
}

/// A text without the ports of clients.
fn without_ports(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    // `127.0.0.1:43688->`, `127.0.0.1:43688-\u003e`, and a lone address at the end
    while let Some((head, tail)) = rest.split_once("127.0.0.1:") {
        let digits = tail.chars().take_while(char::is_ascii_digit).count();
        let (port, after) = tail.split_at(digits);
        let client = after.starts_with("->") || after.starts_with("-\\u003e") || after.is_empty();
        out.push_str(head);
        out.push_str("127.0.0.1:");
        out.push_str(if client { "N" } else { port });
        rest = after;
    }
    out + rest
}

/// Compares what agnhost's `connect`, started so, prints and ends with.
fn compare_connects(start: impl Fn() -> Command, scene: &Scene, table: &Table, cases: &[&str]) {
    let mut tally = Tally::new(SIMULATED);
    let name = match table.os {
        Os::Linux => "agnhost connect, Linux",
        Os::Windows => "agnhost connect, Windows (Wine)",
    };
    for args in cases {
        let arguments = scene.filled(args);
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        let real = start()
            .arg("connect")
            .args(&arguments)
            .output()
            .expect("agnhost runs");
        let ran = connect::run(&arguments, table).expect("it is simulated");
        let text = |bytes: &[u8]| without_ports(&String::from_utf8_lossy(bytes));
        let real = (
            text(&real.stdout),
            text(&real.stderr),
            real.status.code().and_then(|code| u32::try_from(code).ok()),
        );
        let [out, errors] = [Stream::Out, Stream::Error].map(|of| text(&ran.all(of)));
        let simulated = (out, errors, Some(ran.code));
        let translated = (real.0.clone(), of_windows(&real.1), real.2);
        let difference = if real == simulated {
            None
        } else if translated == simulated {
            Some("in Wine's words alone".to_owned())
        } else {
            Some(differs(args, &real, &simulated))
        };
        tally.note(name, behaviour(args), difference);
    }
    tally.end();
}

fn differs<T: std::fmt::Debug>(what: &str, real: &T, simulated: &T) -> String {
    format!("{what:?}\n  real      {real:?}\n  simulated {simulated:?}")
}

/// Windows' text of an error (Microsoft, "Windows Sockets error codes", 10061) in place of Wine's.
fn of_windows(text: &str) -> String {
    let words =
        "connectex: No connection could be made because the target machine actively refused it.";
    text.replace("connectex: Connection refused.", words)
}

#[test]
fn connect_and_its_simulation_come_to_the_same() {
    let Some(agnhost) = built("connect_and_its_simulation_come_to_the_same") else {
        return;
    };
    let scene = Scene::new();
    let cases = [
        "{netexec}",
        "{refused}",
        "--timeout=1s {silent}",
        "--timeout=5s {refused}",
        "{mute}",
    ];
    compare_connects(|| Command::new(&agnhost), &scene, &scene.table, &cases);
}

/// Windows repeats a refused connection for two seconds, and Wine does not: no limit here is shorter.
#[test]
fn connect_of_windows_and_its_simulation_come_to_the_same() {
    let Some(agnhost) = named("connect_of_windows_and_its_simulation_come_to_the_same") else {
        return;
    };
    let scene = Scene::new();
    let table = Table {
        own: LOCAL,
        links: scene.table.links.clone(),
        ..Table::new(Os::Windows)
    };
    let start = || {
        let mut command = Command::new("wine");
        command.arg(&agnhost);
        command
    };
    let cases = [
        "{netexec}",
        "{refused}",
        "--timeout=1s {silent}",
        "--timeout=5s {refused}",
        "--timeout=5s {netexec}",
        "{mute}",
    ];
    compare_connects(start, &scene, &table, &cases);
}

#[test]
fn what_agnhost_of_windows_lacks_under_wine_is_known() {
    let Some(agnhost) = named("what_agnhost_of_windows_lacks_under_wine_is_known") else {
        return;
    };
    let mut tally = Tally::new(SIMULATED);
    let suffixes = Command::new("wine")
        .arg(&agnhost)
        .arg("dns-suffix")
        .output();
    let suffixes = suffixes.expect("Wine runs");
    let difference = (!suffixes.status.success()).then(|| format!("{suffixes:?}"));
    tally.note("agnhost dns-suffix, Windows (Wine)", "answers", difference);
    let (http, udp) = (Real::free(), Real::free());
    let mut netexec = Command::new("wine");
    let ports = [format!("--http-port={http}"), format!("--udp-port={udp}")];
    netexec.arg(&agnhost).arg("netexec").args(ports);
    let quiet = netexec.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = quiet.spawn().expect("Wine runs");
    let udp = Some(udp);
    let mut real = Real { child, http, udp };
    let log = real.child.stderr.take().expect("it is piped");
    let mut lines = BufReader::new(log).lines().map_while(Result::ok);
    // It ends where it cannot listen
    let of_udp = lines.find(|line| line.contains("UDP")).expect("it tells");
    let difference = (!of_udp.contains("Started UDP")).then_some(of_udp);
    tally.note(NETEXEC_OF_WINDOWS, "answers by UDP", difference);
    tally.end();
}

/// The path of agnhost for Windows, which runs under Wine; `ci/windows-programs/run` names it.
const OF_WINDOWS: &str = "WINCONFORM_TEST_AGNHOST_EXE";

/// That agnhost; without one, the tests print a note and end.
fn named(test: &str) -> Option<PathBuf> {
    let agnhost = std::env::var_os(OF_WINDOWS);
    if agnhost.is_none() {
        writeln!(
            std::io::stderr(),
            "not run: {test}: {OF_WINDOWS} is not set"
        )
        .expect("it is open");
    }
    agnhost.map(PathBuf::from)
}

/// A real netexec, which ends with the test.
struct Real {
    child: Child,
    http: u16,
    /// Nothing under Wine 8, where it cannot listen over UDP.
    udp: Option<u16>,
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Real {
    fn free() -> u16 {
        let on = TcpListener::bind((LOCAL, 0)).expect("a free port");
        on.local_addr().expect("it is bound").port()
    }

    /// One of Windows, which ends when `/exit` is asked for.
    fn under_wine(agnhost: &Path) -> Self {
        let http = Self::free();
        let ports = [format!("--http-port={http}"), "--udp-port=-1".to_owned()];
        let mut command = Command::new("wine");
        command.arg(agnhost).arg("netexec").args(ports);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().expect("Wine runs");
        while TcpStream::connect((LOCAL, http)).is_err() {
            assert!(child.try_wait().expect("a child").is_none(), "it goes on");
            std::thread::yield_now();
        }
        Self {
            child,
            http,
            udp: None,
        }
    }

    fn start(agnhost: &Path) -> Self {
        let (http, udp) = (Self::free(), Self::free());
        let mut child = Command::new(agnhost)
            .args([
                "netexec",
                &format!("--http-port={http}"),
                &format!("--udp-port={udp}"),
            ])
            .stderr(Stdio::piped())
            .spawn()
            .expect("agnhost runs");
        // netexec logs "Started UDP" after it listens over UDP, and right before it listens over HTTP
        let log = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut lines = log.lines();
        let started = lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.contains("Started UDP"));
        assert!(started.is_some(), "netexec starts");
        // A full pipe would block it
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let udp = Some(udp);
        let real = Self { child, http, udp };
        while TcpStream::connect((LOCAL, http)).is_err() {
            std::thread::yield_now();
        }
        real
    }

    /// The status and the body of an answer.
    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect((LOCAL, self.http)).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        (status.expect("a status"), plain(body))
    }

    fn send(&self, payload: &str) -> Option<String> {
        let socket = UdpSocket::bind((LOCAL, 0)).expect("a free port");
        let limit = Some(Duration::from_millis(500));
        socket.set_read_timeout(limit).expect("a limit");
        socket
            .send_to(payload.as_bytes(), (LOCAL, self.udp?))
            .expect("sent");
        let mut buffer = [0; 2048];
        let (count, _) = socket.recv_from(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..count]).into_owned())
    }
}

fn plain(body: &str) -> String {
    match body.starts_with("NOW: ") {
        true => "NOW".to_owned(),
        false => without_ports(body),
    }
}

/// The simulated paths of netexec, with arguments that change the answer.
fn paths(scene: &Scene, real: &Real) -> Vec<String> {
    let refused = scene.filled("{refused}");
    let refused = refused.rsplit(':').next().expect("a port");
    let dial = |request: &str, port: &str| {
        format!("/dial?host=127.0.0.1&port={port}&protocol=udp&request={request}&tries=1")
    };
    let plain = [
        "/",
        "/other",
        "/hostname",
        "/hostName",
        "/clientip",
        "/healthz",
        "/echo?msg=a+b%20c",
        "/echo",
    ];
    let mut paths = plain.map(str::to_owned).to_vec();
    // Without its UDP server it never says that it is healthy (`netexec.go`, `serverReady`)
    paths.retain(|path| path != "/healthz" || real.udp.is_some());
    if let Some(own) = real.udp {
        let own = own.to_string();
        let dials = [
            ("hostname", refused),
            ("hostname", &own),
            ("nonsense", &own),
        ];
        paths.extend(dials.map(|(request, port)| dial(request, port)));
    }
    paths
}

#[test]
fn netexec_and_its_page_answer_the_same() {
    let Some(agnhost) = built("netexec_and_its_page_answer_the_same") else {
        return;
    };
    compare(&Real::start(&agnhost), Os::Linux);
}

#[test]
fn netexec_of_windows_and_its_page_answer_the_same() {
    let Some(agnhost) = named("netexec_of_windows_and_its_page_answer_the_same") else {
        return;
    };
    let real = Real::under_wine(&agnhost);
    compare(&real, Os::Windows);
    // A kill ends what started it, and not the program itself
    let mut stream = TcpStream::connect((LOCAL, real.http)).expect("it listens");
    let _ = stream.write_all(b"GET /exit?code=0 HTTP/1.1\r\nHost: a\r\n\r\n");
    let _ = stream.read(&mut [0]);
}

fn compare(real: &Real, os: Os) {
    let (_, hostname) = real.get("/hostname");
    let scene = Scene::new();
    let mut table = Table {
        own: LOCAL,
        hostname: hostname.clone(),
        links: scene.table.links.clone(),
        netexec_udp: real.udp.map(|port| (LOCAL, port)),
        ..Table::new(os)
    };
    table = table.page(LOCAL, real.http, Page::Netexec);
    let server = Server {
        page: Page::Netexec,
        hostname: hostname.clone(),
        address: LOCAL,
        origin: Origin::Outside,
    };
    let paths = paths(&scene, real);
    let mut tally = Tally::new(SIMULATED);
    let name = match os {
        Os::Linux => "agnhost netexec, Linux",
        Os::Windows => NETEXEC_OF_WINDOWS,
    };
    for path in &paths {
        let answer = server.answer(path, LOCAL, &table);
        let simulated = (answer.status, plain(&answer.body));
        let real = real.get(path);
        let difference = (real != simulated).then(|| differs(path, &real, &simulated));
        tally.note(name, "answers", difference);
    }
    let payloads = ["hostname", " HostName\n", "nonsense", ""];
    for payload in payloads.iter().filter(|_| real.udp.is_some()) {
        let simulated = netexec::datagram(payload, &hostname).map(|text| without_ports(&text));
        let real = real.send(payload).map(|text| without_ports(&text));
        let difference = (real != simulated).then(|| differs(payload, &real, &simulated));
        tally.note(name, "answers by UDP", difference);
    }
    tally.end();
}

const NETEXEC_OF_WINDOWS: &str = "agnhost netexec, Windows (Wine)";
