use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::sockets::{LOCAL, Scene};
use crate::program::http::Asked;
use crate::program::net::Server;
use crate::program::network_table::Table;
use crate::program::serve::Exchange;
use crate::program::{connect, netexec};
use crate::topology::Os;
use crate::world::Page;

/// The agnhost that ci/agnhost/build has made. These tests say so and end where there is none, since
/// making it takes Go and minutes.
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
    // Past the test harness, which keeps what passing tests print
    writeln!(
        std::io::stderr(),
        "not run: {test}: ci/agnhost/build has not been run"
    )
    .expect("stderr is open");
    None
}

/// A text without the port that a client was given.
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

#[test]
fn connect_and_its_simulation_come_to_the_same() {
    let Some(agnhost) = built("connect_and_its_simulation_come_to_the_same") else {
        return;
    };
    let scene = Scene::new();
    let udp_silent = UdpSocket::bind((LOCAL, 0)).expect("a free port");
    let udp_silent = udp_silent.local_addr().expect("it is bound").to_string();
    let mut differ = Vec::new();
    let cases: &[&[&str]] = &[
        &["{netexec}"],
        &["{refused}"],
        &["--timeout=300ms", "{silent}"],
        &["{silent}", "--timeout", "0.3s"],
        &["--timeout", "5s", "{refused}"],
        &["{mute}"],
        &["127.0.0.1"],
        &["::1:80"],
        &["127.0.0.1:abc"],
        &["127.0.0.1:70000"],
        &[],
        &["a", "b"],
        &["--foo", "a:1"],
        &["--timeout", "x", "a:1"],
        &["--timeout"],
        &["--protocol", "x", "{refused}"],
        &["--protocol=sctp", "--timeout=1s", "{refused}"],
        &["--protocol=udp", "--timeout=300ms", "{refused}"],
        &["--protocol=udp", "--timeout=300ms", "UDP"],
        &["--protocol=udp", "127.0.0.1"],
    ];
    for args in cases {
        let mut arguments = scene.arguments(args);
        let lost = arguments.iter_mut().filter(|arg| *arg == "UDP");
        lost.for_each(|arg| arg.clone_from(&udp_silent));
        let real = Command::new(&agnhost)
            .arg("connect")
            .args(&arguments)
            .output()
            .expect("agnhost runs");
        let mut table = Table {
            own: LOCAL,
            links: scene.table.links.clone(),
            ..Table::new(Os::Linux)
        };
        let silent = udp_silent
            .parse::<std::net::SocketAddr>()
            .expect("an address");
        let lost = crate::program::net::Datagram::Lost;
        table.datagrams.insert((silent.ip(), silent.port()), lost);
        let ran = connect::run(&arguments, &table);
        let text = |bytes: &[u8]| without_ports(&String::from_utf8_lossy(bytes));
        let real = (
            text(&real.stdout),
            text(&real.stderr),
            real.status.code().and_then(|code| u32::try_from(code).ok()),
        );
        let simulated = (text(&ran.stdout), text(&ran.stderr), Some(ran.code));
        if real != simulated {
            differ.push(format!(
                "{args:?}\n  real      {real:?}\n  simulated {simulated:?}"
            ));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// A real netexec; ended with the test.
struct Real {
    child: Child,
    http: u16,
    udp: u16,
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Real {
    fn start(agnhost: &Path) -> Self {
        let free = || {
            let on = TcpListener::bind((LOCAL, 0)).expect("a free port");
            on.local_addr().expect("it is bound").port()
        };
        let (http, udp) = (free(), free());
        let mut child = Command::new(agnhost)
            .args([
                "netexec",
                &format!("--http-port={http}"),
                &format!("--udp-port={udp}"),
            ])
            .stderr(Stdio::piped())
            .spawn()
            .expect("agnhost runs");
        // It logs that it listens over UDP after it does, and over HTTP right before
        let log = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut lines = log.lines();
        let started = lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.contains("Started UDP"));
        assert!(started.is_some(), "netexec starts");
        // Its log would fill the pipe
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let real = Self { child, http, udp };
        while TcpStream::connect((LOCAL, http)).is_err() {
            std::thread::yield_now();
        }
        real
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect((LOCAL, self.http)).expect("it listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Test: one\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn send(&self, payload: &str) -> Option<String> {
        let socket = UdpSocket::bind((LOCAL, 0)).expect("a free port");
        let limit = Some(Duration::from_millis(500));
        socket.set_read_timeout(limit).expect("a limit");
        socket
            .send_to(payload.as_bytes(), (LOCAL, self.udp))
            .expect("sent");
        let mut buffer = [0; 2048];
        let (count, _) = socket.recv_from(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..count]).into_owned())
    }
}

fn plain(answer: &str) -> String {
    let lines = answer
        .split('\n')
        .filter(|line| *line != "Connection: close\r")
        .map(|line| match line {
            _ if line.starts_with("Date: ") => "Date",
            // The client's port and the time have no fixed length
            _ if line.starts_with("Content-Length: ") => "Content-Length",
            _ if line.starts_with("NOW: ") => "NOW",
            _ => line,
        });
    without_ports(&lines.collect::<Vec<_>>().join("\n"))
}

/// Each path of netexec, with what makes it answer differently.
fn paths(scene: &Scene, real: &Real) -> Vec<String> {
    let dial = |rest: &str| format!("/dial?request=hostname&host=127.0.0.1&port={rest}");
    let port = |name: &str| {
        let address = scene.arguments(&[name]).concat();
        address.rsplit(':').next().expect("a port").to_owned()
    };
    let (refused, silent, mute, resets) = (
        port("{refused}"),
        port("{silent}"),
        port("{mute}"),
        port("{resets}"),
    );
    let mut paths: Vec<String> = [
        "/",
        "/other",
        "/hostname",
        "/hostName",
        "/clientip",
        "/serverport",
        "/healthz",
        "/readyz",
        "/echo?msg=a+b%20c",
        "/echo?msg=x&code=404",
        "/echo?msg=x&code=abc",
        "/echo",
        "/header",
        "/header?key=X-Test",
        "/header?key=Nonesuch",
        "/envvar",
        "/envvar?var=NONESUCH",
        "/redirect?location=/x&code=307",
        "/redirect?location=x",
        "/redirect?location=/x&code=y",
        "/upload",
        "/exit?code=x",
        "/exit?timeout=x",
        "/exit?wait=x",
        "/dial",
        "/dial?request=hostname&host=127.0.0.1&port=abc",
        "/dial?request=hostname&host=127.0.0.1&port=70000",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.extend([
        dial(&refused),
        dial(&format!("{refused}&tries=2")),
        dial(&format!("{refused}&tries=x")),
        dial(&format!("{refused}&protocol=udp")),
        dial(&format!("{refused}&protocol=x")),
        dial(&format!("{refused}&protocol=sctp")),
        dial(&resets),
        dial(&silent),
        dial(&mute),
        dial(&real.http.to_string()),
        dial(&format!("{}&tries=3", real.http)),
        dial(&format!("{}&protocol=udp", real.udp)),
        dial(&format!("{}&protocol=UDP&tries=2", real.udp)),
        format!(
            "/dial?request=echo%20Hi%3C&host=127.0.0.1&port={}&protocol=udp",
            real.udp
        ),
        format!(
            "/dial?request=nonsense&host=127.0.0.1&port={}&protocol=udp",
            real.udp
        ),
        format!("/dial?request=echo?msg=x&host=&port={}", real.http),
    ]);
    paths
}

#[test]
fn netexec_and_its_page_answer_the_same() {
    let Some(agnhost) = built("netexec_and_its_page_answer_the_same") else {
        return;
    };
    let real = Real::start(&agnhost);
    let hostname = real.get("/hostname");
    let hostname = hostname.rsplit('\n').next().unwrap_or_default();
    let scene = Scene::new();
    let mut table = Table {
        own: LOCAL,
        hostname: hostname.to_owned(),
        links: scene.table.links.clone(),
        netexec_udp: Some((LOCAL, real.udp)),
        ..Table::new(Os::Linux)
    };
    table = table.page(LOCAL, real.http, Page::Netexec);
    let server = Server {
        page: Page::Netexec,
        hostname: hostname.to_owned(),
        address: LOCAL,
        port: real.http,
        origin: None,
    };
    let paths = paths(&scene, &real);
    let mut differ = Vec::new();
    for path in &paths {
        let asked = Asked {
            headers: vec![
                ("X-Test".to_owned(), "one".to_owned()),
                ("Connection".to_owned(), "close".to_owned()),
            ],
            ..Asked::get(path)
        };
        let answer = server.answer(&asked, LOCAL, &table);
        let simulated = plain(&(answer.head() + &answer.body));
        let real = plain(&real.get(path));
        if real != simulated {
            differ.push(format!(
                "{path}\n  real      {real:?}\n  simulated {simulated:?}"
            ));
        }
    }
    for payload in [
        "hostname",
        " HostName\n",
        "echo Hi There",
        "echo",
        "clientip",
        "serverport",
        "envvar NONESUCH",
        "nonsense",
        "",
    ] {
        let exchange = Exchange {
            hostname,
            address: LOCAL,
            source: LOCAL,
        };
        let simulated =
            netexec::datagram(payload, exchange, real.udp).map(|text| without_ports(&text));
        let real = real.send(payload).map(|text| without_ports(&text));
        if real != simulated {
            differ.push(format!(
                "UDP {payload:?}\n  real      {real:?}\n  simulated {simulated:?}"
            ));
        }
    }
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ.join("\n")
    );
}
