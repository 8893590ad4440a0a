use std::net::IpAddr;
use std::time::Duration;

use super::*;
use crate::log::Stream;
use crate::program::net::{Link, Lookup, Speaks};
use crate::program::table::Table;
use crate::program::tests::argv;
use crate::world::Page;

const SILENT: [u8; 4] = [192, 0, 2, 1];

/// A web server, and addresses of every way to fail.
pub(super) fn net(os: Os) -> Table {
    Table::new(os)
        .page([10, 244, 2, 5], 80, Page::WinWebserver)
        .page([10, 244, 2, 6], 80, Page::Netexec)
        .link(SILENT, 80, Link::TimedOut)
        .link([192, 0, 2, 2], 80, Link::NoRoute)
        .peer([192, 0, 2, 3], 80, Speaks::Resets)
        .peer([192, 0, 2, 4], 80, Speaks::Silence)
        .name("web", Lookup::Address(IpAddr::from([10, 244, 2, 5])))
        .name("slow", Lookup::TimedOut)
}

fn curl_as(build: &Build, args: &[&str], input: &str) -> Ran {
    run(build, &argv(args), input.as_bytes(), &net(build.os))
}

fn out(ran: &Ran) -> String {
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

fn err(ran: &Ran) -> String {
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

const SWEEP: &str = r#"silent
show-error
globoff
noproxy = "*"
connect-timeout = 4
max-time = 8
write-out = "\n@@t0k %{http_code} %{size_download}\n"
url = "http://10.244.2.5:80/"
url = "http://192.0.2.1:80/"
"#;

#[test]
fn a_sweep_from_its_input() {
    let ran = curl_as(&Build::SYSTEM32, &["-q", "-K", "-"], SWEEP);
    let body = "<html><body><H1>Windows Container Web Server</H1><p>IP 10.244.2.5 callerCount 1 </body></html>";
    let expected = format!("{body}\n@@t0k 200 {}\n\n@@t0k 000 0\n", body.len());
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
    assert_eq!(ran.took, Duration::from_millis(4005));
}

#[test]
fn what_fails_is_told_when_it_fails() {
    let sweep = format!("{SWEEP}url = \"http://192.0.2.2:80/\"\n");
    let ran = curl_as(&Build::SYSTEM32, &["-q", "-K", "-"], &sweep);
    let (pieces, ..) = ran.pieces();
    let mut at = Duration::ZERO;
    let mut complaints = Vec::new();
    for piece in pieces {
        at += piece.took;
        if piece.bytes.starts_with(b"curl: (") {
            complaints.push(at);
        }
    }
    assert_eq!(complaints, [Duration::from_millis(4005), ran.took]);
    assert!(complaints[0] < ran.took);
}

#[test]
fn before_7_66_a_part_that_fails_ends_the_run_and_a_url_does_not() {
    let results = |version, between: &[&str]| {
        let build = Build {
            version,
            ..Build::ALPINE
        };
        let (part, refused) = (
            ["-w", "@%{http_code}", "http://web/"],
            "http://10.244.2.5:81/",
        );
        let args = [&["-sq"][..], &part, &[refused], between, &part].concat();
        out(&curl_as(&build, &args, "")).matches('@').count()
    };
    for (version, results_of_two_parts) in [((7, 65, 3), 2), ((7, 66, 0), 3)] {
        assert_eq!(results(version, &["--next"]), results_of_two_parts);
        assert_eq!(results(version, &[]), 3);
    }
}

#[test]
fn the_same_from_the_command_line() {
    let ran = curl_as(
        &Build::ALPINE,
        &[
            "-qsSg",
            "--noproxy",
            "*",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code} %{remote_ip}\\n",
            "http://10.244.2.5/",
        ],
        "",
    );
    assert_eq!(
        (out(&ran).as_str(), err(&ran).as_str(), ran.code),
        ("200 10.244.2.5\n", "", 0)
    );
    let ran = curl_as(
        &Build::SYSTEM32,
        &[
            "-sS",
            "-o",
            "NUL",
            "-w",
            "%{http_code}\\n",
            "http://10.244.2.5/",
        ],
        "",
    );
    assert_eq!(
        out(&ran),
        "200\r\n",
        "text mode as long as no body goes to the output"
    );
}

#[test]
fn refusals_read_as_curl_of_that_age_and_system_writes_them() {
    let refused = |build| err(&curl_as(build, &["-sS", "http://10.244.2.5:81/"], ""));
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
    let old = curl_as(&Build::AGNHOST_WINDOWS, &["-sS", "http://192.0.2.1/"], "");
    assert_eq!(
        err(&old),
        "curl: (7) Failed to connect to 192.0.2.1 port 80: Timed out\r\n"
    );
    assert_eq!((old.code, old.took.as_secs()), (7, 21));
    assert_eq!(
        curl_as(&Build::SYSTEM32, &["-sS", "http://192.0.2.1/"], "").code,
        28
    );
}

#[test]
fn names_that_do_not_resolve() {
    let ran = curl_as(&Build::SYSTEM32, &["-sS", "http://nowhere.test/"], "");
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
            &["-s", "http://10.244.2.5:81/"],
            ""
        )),
        ""
    );
}

#[test]
fn versions_have_three_more_lines() {
    for build in [
        &Build::ALPINE,
        &Build::SYSTEM32,
        &Build::SYSTEM32_2019,
        &Build::AGNHOST_WINDOWS,
    ] {
        let text = out(&curl_as(build, &["--version"], ""));
        let firsts: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(firsts, ["curl", "Release-Date:", "Protocols:", "Features:"]);
        assert_eq!(text.contains("\r\n"), build.os == Os::Windows);
    }
}

#[test]
fn unknown_variables_and_options() {
    let ran = curl_as(
        &Build::ALPINE,
        &[
            "-s",
            "-w",
            "<%{nonesuch}%{urlnum}%%>",
            "http://10.244.2.5:81/",
        ],
        "",
    );
    assert_eq!(
        (out(&ran).as_str(), err(&ran).as_str()),
        ("<0%>", "curl: unknown --write-out variable: 'nonesuch'\n")
    );
    let old = curl_as(
        &Build::AGNHOST_WINDOWS,
        &["-s", "-w", "%{exitcode}", "http://10.244.2.5:81/"],
        "",
    );
    assert_eq!(
        err(&old),
        "curl: unknown --write-out variable: 'exitcode'\r\n"
    );
    let ran = curl_as(&Build::ALPINE, &["--nonesuch"], "");
    assert!(err(&ran).starts_with("curl: option --nonesuch: is unknown\n"));
    assert_eq!(ran.code, 2);
    assert_eq!(curl_as(&Build::ALPINE, &[], "").code, 2);
    let ran = curl_as(&Build::ALPINE, &["-K", "-"], "silent\nnonesuch = 1\n");
    assert!(
        err(&ran).starts_with("curl: <stdin>:2: 'nonesuch' is unknown\n"),
        "{ran:?}"
    );
    assert_eq!(ran.code, 26);
    let ran = curl_as(&Build::ALPINE, &["-sS", "ftp://10.244.2.5/"], "");
    assert_eq!(
        (err(&ran).as_str(), ran.code),
        ("curl: (1) Protocol \"ftp\" not supported\n", 1)
    );
}

#[test]
fn odd_input_does_no_harm() {
    for input in [
        "",
        "\"",
        "url",
        "url =",
        "url = \"",
        "-",
        "--",
        "-K -",
        "w \"%{\"\nurl x",
        "next\nnext\n",
        "é = é",
    ] {
        curl_as(&Build::SYSTEM32, &["-K", "-"], input);
        curl_as(&Build::SYSTEM32, &[input], "");
        curl_as(&Build::ALPINE, &["-w", input, "http://10.244.2.5/"], "");
    }
}

#[test]
fn limits_end_in_the_words_of_the_version() {
    let at = |version, args: &[&str]| {
        let build = Build {
            version,
            ..Build::SYSTEM32
        };
        let ran = curl_as(&build, args, "");
        (ran.code, err(&ran).trim_end().to_owned())
    };
    let connect = ["-sS", "--connect-timeout", "4", "http://192.0.2.1/"];
    let all = [
        "-sS",
        "-m",
        "4",
        "--connect-timeout",
        "5",
        "http://192.0.2.1/",
    ];
    let plain = "curl: (28) Connection timed out after 4001 milliseconds";
    for version in [(7, 55, 1), (7, 77, 0), (8, 11, 0), (8, 14, 1)] {
        assert_eq!(at(version, &connect), (28, plain.to_owned()));
    }
    assert_eq!(
        at((7, 88, 1), &connect).1,
        "curl: (28) Failed to connect to 192.0.2.1 port 80 after 4001 ms: Timeout was reached"
    );
    assert_eq!(
        at((7, 83, 1), &connect).1,
        "curl: (28) Failed to connect to 192.0.2.1 port 80 after 4001 ms: Couldn't connect to server"
    );
    assert_eq!(
        at((7, 79, 1), &connect).1,
        "curl: (28) Failed to connect to 192.0.2.1 port 80 after 4001 ms: Timed out"
    );
    assert_eq!(at((7, 88, 1), &all).1, plain);
    assert_eq!(at((7, 66, 0), &["-sS", "http://192.0.2.1/"]).0, 7);
    assert_eq!(
        at((7, 67, 0), &["-sS", "http://192.0.2.1/"]),
        (
            28,
            "curl: (28) Failed to connect to 192.0.2.1 port 80: Timed out".to_owned()
        )
    );
}

#[test]
fn cut_and_silent_connections() {
    let windows = |args: &[&str]| err(&curl_as(&Build::SYSTEM32, args, ""));
    assert_eq!(
        windows(&["-sS", "http://192.0.2.3/"]),
        "curl: (56) Recv failure: Connection was reset\r\n"
    );
    assert_eq!(
        windows(&["-sS", "-m", "8", "http://192.0.2.4/"]),
        "curl: (28) Operation timed out after 8001 milliseconds with 0 bytes received\r\n"
    );
    assert_eq!(
        windows(&["-sS", "--connect-timeout", "3", "http://slow/"]),
        "curl: (28) Resolving timed out after 3001 milliseconds\r\n"
    );
}

#[test]
fn an_output_covers_one_url() {
    let ran = curl_as(
        &Build::ALPINE,
        &[
            "-sS",
            "-o",
            "NUL",
            "http://10.244.2.6/echo?msg=a",
            "http://10.244.2.6/echo?msg=b",
        ],
        "",
    );
    assert_eq!(out(&ran), "b");
}

#[test]
fn redirects_forms_and_heads() {
    let text = |args: &[&str]| out(&curl_as(&Build::ALPINE, args, ""));
    let redirect = "http://10.244.2.6/redirect?location=/hostname";
    assert_eq!(
        text(&["-sSL", "-w", " %{num_redirects}", redirect]),
        "prober 1"
    );
    assert_eq!(
        text(&[
            "-sS",
            "-d",
            "msg=hello",
            "http://10.244.2.6/echo",
            "-w",
            " %{method}"
        ]),
        "hello POST"
    );
    let head = text(&["-sSI", "http://10.244.2.6/hostname"]);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Length: 6\r\n"), "{head}");
}

#[test]
fn a_connection_is_used_again() {
    let ran = curl_as(
        &Build::SYSTEM32_2019,
        &[
            "-sS",
            "-w",
            "%{num_connects}",
            "http://web/",
            "http://web/",
            "--next",
            "-w",
            "%{num_connects}",
            "http://web/",
        ],
        "",
    );
    let digits: Vec<&str> = vec!["</html>1", "</html>0", "</html>0"];
    for part in digits {
        assert!(out(&ran).contains(part), "{part}: {}", out(&ran));
    }
}

#[test]
fn what_failed_is_told_at_once_and_what_answered_in_blocks() {
    let part =
        |host: &str| format!("url = \"http://{host}/\"\nsilent\nshow-error\nconnect-timeout = 4\n");
    let input = [part("192.0.2.1"), part("192.0.2.1"), part("10.244.2.5")].join("next\n");
    let ran = curl_as(&Build::ALPINE, &["-q", "-K", "-"], &input);
    let (pieces, ..) = ran.pieces();
    let told: Vec<_> = pieces
        .iter()
        .map(|piece| (piece.stream, piece.took.as_secs()))
        .collect();
    // Two time out, and the page is written when curl ends
    assert_eq!(
        told,
        [(Stream::Error, 4), (Stream::Error, 4), (Stream::Out, 0)]
    );

    // Pages that fill blocks come before the end
    let pages = [part("10.244.2.5").as_str(); 50].join("next\n") + "next\n" + &part("192.0.2.1");
    let (pieces, ..) = curl_as(&Build::ALPINE, &["-q", "-K", "-"], &pages).pieces();
    let whole = pieces.iter().find(|piece| piece.stream == Stream::Out);
    assert_eq!(whole.map(|piece| piece.bytes.len()), Some(BLOCK));
}
