use std::net::IpAddr;
use std::time::Duration;

use super::*;
use crate::base::log::Stream;
use crate::program::web::net::{Link, NotFound, Speaks};
use crate::program::windows::network_table::Table;
use crate::world::Page;

const SILENT: [u8; 4] = [192, 0, 2, 1];

impl Build {
    /// A build outside the closed set.
    pub(crate) fn of_the_machine(os: Os, version: (u32, u32, u32), cares: bool) -> Self {
        Self { os, version, cares }
    }
}

/// A web server, and one address for each kind of failure.
pub(super) fn net(os: Os) -> Table {
    Table::new(os)
        .page([10, 244, 2, 5], 80, Page::WinWebserver)
        .page([10, 244, 2, 6], 80, Page::Netexec)
        .link(SILENT, 80, Link::TimedOut)
        .link([192, 0, 2, 2], 80, Link::NoRoute)
        .peer([192, 0, 2, 3], 80, Speaks::Resets)
        .peer([192, 0, 2, 4], 80, Speaks::Silence)
        .name("web", Ok(IpAddr::from([10, 244, 2, 5])))
        .name("slow", Err(NotFound::TimedOut))
}

fn curl_as(build: &Build, input: &str) -> Ran {
    perform(build, input.as_bytes(), &net(build.os)).expect("it is simulated")
}

/// A session with these options and one target.
fn one(options: &str, host: &str) -> String {
    format!(
        "silent\nshow-error\nheader = \"Connection: close\"\n{options}url = \"http://{host}/\"\n"
    )
}

fn out(ran: &Ran) -> String {
    String::from_utf8_lossy(&ran.all(Stream::Out)).into_owned()
}

fn err(ran: &Ran) -> String {
    String::from_utf8_lossy(&ran.all(Stream::Error)).into_owned()
}

const SWEEP: &str = r#"silent
show-error
globoff
noproxy = "*"
connect-timeout = 4
max-time = 8
header = "Connection: close"
write-out = "\n@@t0k %{http_code} %{exitcode} %{url_effective}\n%{stderr}"
url = "http://10.244.2.5:80/"
url = "http://192.0.2.1:80/"
"#;

#[test]
fn a_sweep_from_its_input() {
    let ran = curl_as(&Build::SYSTEM32, SWEEP);
    let body = "<html><body><H1>Windows Container Web Server</H1><p>IP 10.244.2.5 callerCount 1 </body></html>";
    let expected =
        format!("{body}\n@@t0k 200 0 http://10.244.2.5:80/\n\n@@t0k 000 28 http://192.0.2.1:80/\n");
    assert_eq!(
        out(&ran),
        expected,
        "output is binary once a body went there"
    );
    assert_eq!(
        err(&ran),
        "curl: (28) Connection timed out after 4001 milliseconds\r\n"
    );
    assert_eq!(ran.code, 28, "the last transfer's");
    assert_eq!(ran.lasted().0, Duration::from_millis(4005));
}

#[test]
fn what_fails_is_told_when_it_fails() {
    let sweep = format!("{SWEEP}url = \"http://192.0.2.2:80/\"\n");
    let ran = curl_as(&Build::SYSTEM32, &sweep);
    let mut at = Duration::ZERO;
    let mut complaints = Vec::new();
    for piece in &ran.pieces {
        at += piece.took;
        if piece.bytes.starts_with(b"curl: (") {
            complaints.push(at);
        }
    }
    assert_eq!(complaints, [Duration::from_millis(4005), ran.lasted().0]);
    assert!(complaints[0] < ran.lasted().0);
}

#[test]
fn refusals_read_as_curl_of_that_age_and_system_writes_them() {
    let refused = |build| err(&curl_as(build, &one("", "10.244.2.5:81")));
    assert_eq!(
        refused(&Build::SYSTEM32),
        "curl: (7) Failed to connect to 10.244.2.5 port 81 after 2045 ms: Could not connect to server\r\n"
    );
    assert_eq!(
        refused(&Build::ALPINE),
        "curl: (7) Failed to connect to 10.244.2.5 port 81 after 0 ms: Could not connect to server\n"
    );
    assert_eq!(
        refused(&Build::AGNHOST_WINDOWS),
        "curl: (7) Failed to connect to 10.244.2.5 port 81: Connection refused\r\n"
    );
}

#[test]
fn without_a_limit_the_system_gives_up() {
    let old = curl_as(&Build::AGNHOST_WINDOWS, &one("", "192.0.2.1"));
    assert_eq!(
        err(&old),
        "curl: (7) Failed to connect to 192.0.2.1 port 80: Timed out\r\n"
    );
    assert_eq!((old.code, old.lasted().0.as_secs()), (7, 21));
    assert_eq!(curl_as(&Build::SYSTEM32, &one("", "192.0.2.1")).code, 28);
}

#[test]
fn names_that_do_not_resolve() {
    let ran = curl_as(&Build::SYSTEM32, &one("", "nowhere.test"));
    assert_eq!(
        (err(&ran).as_str(), ran.code),
        ("curl: (6) Could not resolve host: nowhere.test\r\n", 6)
    );
}

#[test]
fn silence_is_complete_without_show_error() {
    assert_eq!(
        err(&curl_as(
            &Build::ALPINE,
            &one("", "10.244.2.5:81").replace("show-error\n", "")
        )),
        ""
    );
}

#[test]
fn limits_end_in_the_words_of_the_version() {
    let at = |version, options: &str| {
        let build = Build {
            version,
            ..Build::SYSTEM32
        };
        let ran = curl_as(&build, &one(options, "192.0.2.1"));
        (ran.code, err(&ran).trim_end().to_owned())
    };
    let connect = "connect-timeout = 4\n";
    let all = "max-time = 4\nconnect-timeout = 5\n";
    let plain = "curl: (28) Connection timed out after 4001 milliseconds";
    for version in [(7, 55, 1), (7, 77, 0), (8, 11, 0), (8, 14, 1)] {
        assert_eq!(at(version, connect), (28, plain.to_owned()));
    }
    assert_eq!(
        at((7, 88, 1), connect).1,
        "curl: (28) Failed to connect to 192.0.2.1 port 80 after 4001 ms: Timeout was reached"
    );
    for version in [(7, 79, 1), (7, 83, 1)] {
        assert_eq!(
            at(version, connect).1,
            "curl: (28) Connection timeout after 4001 ms"
        );
    }
    assert_eq!(at((7, 88, 1), all).1, plain);
    assert_eq!(at((7, 66, 0), "").0, 7);
    assert_eq!(
        at((7, 67, 0), ""),
        (
            28,
            "curl: (28) Failed to connect to 192.0.2.1 port 80: Timed out".to_owned()
        )
    );
}

#[test]
fn cut_and_silent_connections() {
    let windows = |options: &str, host| err(&curl_as(&Build::SYSTEM32, &one(options, host)));
    assert_eq!(
        windows("", "192.0.2.3"),
        "curl: (56) Recv failure: Connection was reset\r\n"
    );
    assert_eq!(
        windows("max-time = 8\n", "192.0.2.4"),
        "curl: (28) Operation timed out after 8001 milliseconds with 0 bytes received\r\n"
    );
    assert_eq!(
        windows("connect-timeout = 3\n", "slow"),
        "curl: (28) Resolving timed out after 3001 milliseconds\r\n"
    );
}

#[test]
fn what_is_not_simulated_is_refused() {
    let good = one("", "web");
    assert!(perform(&Build::ALPINE, good.as_bytes(), &net(Os::Linux)).is_some());
    for input in [
        one("nonesuch = 1\n", "web"),
        one("write-out = \"%{json}\"\n", "web"),
        good.clone() + "next\n",
        good.replace("http:", "https:"),
        good.replace("silent\n", ""),
        good.replace("Connection", "X"),
        good.replace("/\"\n", "/"),
        String::new(),
    ] {
        let told = perform(&Build::ALPINE, input.as_bytes(), &net(Os::Linux));
        assert_eq!(told, None, "{input}");
    }
}

#[test]
fn what_failed_is_told_at_once_and_what_answered_in_blocks() {
    let input = |urls: &str| {
        let config = "silent\nshow-error\nconnect-timeout = 4\nheader = \"Connection: close\"\n";
        urls.split(' ').fold(config.to_owned(), |config, host| {
            config + &format!("url = \"http://{host}/\"\n")
        })
    };
    let told = |urls: &str| curl_as(&Build::ALPINE, &input(urls)).pieces;
    let pieces = told("192.0.2.1 192.0.2.1 10.244.2.5");
    let each: Vec<_> = pieces
        .iter()
        .map(|piece| (piece.stream, piece.took.as_secs()))
        .collect();
    // Two time out, and curl writes the page when it ends
    assert_eq!(
        each,
        [(Stream::Error, 4), (Stream::Error, 4), (Stream::Out, 0)]
    );
    // Full blocks of pages appear before the end
    let pieces = told(&("10.244.2.5 ".repeat(50) + "192.0.2.1"));
    let whole = pieces.iter().find(|piece| piece.stream == Stream::Out);
    assert_eq!(whole.map(|piece| piece.bytes.len()), Some(BLOCK));
}

#[test]
fn only_who_speaks_tls_answers_it() {
    let servers = net(Os::Windows)
        .peer([192, 0, 2, 5], 443, Speaks::Tls)
        .peer([192, 0, 2, 6], 443, Speaks::Captive)
        .peer([192, 0, 2, 7], 443, Speaks::Resets);
    let blind = |url: &str| {
        let mut options = Options::of_one("20", url)?;
        options.blind = true;
        transfers(&Build::SYSTEM32, &options, &servers)
    };
    let ended = |url: &str| {
        let ran = blind(url).expect("it is simulated");
        (ran.code, out(&ran), err(&ran))
    };
    assert_eq!(
        ended("https://192.0.2.5/version"),
        (0, String::new(), String::new())
    );
    let invalid = "curl: (35) schannel: next InitializeSecurityContext failed: SEC_E_INVALID_TOKEN (0x80090308) - \
        The token supplied to the function is invalid\r\n";
    assert_eq!(
        ended("https://192.0.2.6:443/version"),
        (35, String::new(), invalid.to_owned())
    );
    let reset = "curl: (35) Recv failure: Connection was reset\r\n";
    assert_eq!(
        ended("https://192.0.2.7:443/version"),
        (35, String::new(), reset.to_owned())
    );
    assert_eq!(blind("http://10.244.2.5:80/"), None, "it prints nothing");
    let sees = Options::of_one("20", "https://192.0.2.5/version").expect("options");
    assert_eq!(transfers(&Build::SYSTEM32, &sees, &servers), None);
}
