use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use super::*;
use crate::image::Family;
use crate::network::Origin;
use crate::program::serve::Page;
use crate::program::tests::{argv, place};
use crate::topology::{Build as OsBuild, Pool};
use crate::world::{Key, Node, Pod, Told, World};

/// One Windows node; a prober and a web server on it.
fn world() -> World {
    let mut world = World::default();
    world.nodes.insert(
        "win-a".to_owned(),
        Node::new(
            Pool::Windows(OsBuild::Ws2022),
            [127, 77, 1, 2],
            10250,
            [10, 244, 2],
        ),
    );
    for (name, last, port) in [("prober", 9, 1), ("web", 5, 80)] {
        world.pods.insert(
            Key::new("test", name),
            Pod {
                listening: BTreeMap::from([(port, Page::WinWebserver)]),
                ..Pod::new("win-a", [10, 244, 2, last], Told::default())
            },
        );
    }
    world
}

fn curl_as(build: Build, args: &[&str], input: &str) -> Ran {
    let world = world();
    let place = Place {
        origin: Origin::Pod(Key::new("test", "prober")),
        ..place(build.os(), Family::Agnhost)
    };
    let view = View {
        world: &world,
        turns: &AtomicU64::new(0),
    };
    run(&place, build, &argv(args), input.as_bytes(), &view)
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
url = "http://10.244.2.5:80/"
write-out = "\n@@t0k 0 %{http_code} %{size_download}\n"
next
globoff
noproxy = "*"
connect-timeout = 4
max-time = 8
url = "http://192.0.2.1:80/"
write-out = "\n@@t0k 1 %{http_code} %{size_download}\n"
"#;

#[test]
fn a_sweep_from_its_input() {
    let ran = curl_as(Build::System32, &["-q", "-K", "-"], SWEEP);
    let body = "<html><body><H1>Windows Container Web Server</H1><p>IP 10.244.2.5 callerCount 1 </body></html>";
    let expected = format!("{body}\n@@t0k 0 200 {}\n\n@@t0k 1 000 0\n", body.len());
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
fn the_same_from_the_command_line() {
    let ran = curl_as(
        Build::Alpine,
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
        Build::System32,
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
        refused(Build::System32),
        "curl: (7) Failed to connect to 10.244.2.5 port 81 after 2045 ms: Could not connect to server\r\n"
    );
    assert_eq!(
        refused(Build::Alpine),
        "curl: (7) Failed to connect to 10.244.2.5 port 81 after 0 ms: Could not connect to server\n"
    );
    assert_eq!(
        refused(Build::AgnhostWindows),
        "curl: (7) Failed to connect to 10.244.2.5 port 81: Connection refused\r\n"
    );
}

#[test]
fn without_a_limit_the_system_gives_up() {
    let old = curl_as(Build::AgnhostWindows, &["-sS", "http://192.0.2.1/"], "");
    assert_eq!(
        err(&old),
        "curl: (7) Failed to connect to 192.0.2.1 port 80: Timed out\r\n"
    );
    assert_eq!((old.code, old.took.as_secs()), (7, 21));
    assert_eq!(
        curl_as(Build::System32, &["-sS", "http://192.0.2.1/"], "").code,
        28
    );
}

#[test]
fn names_that_do_not_resolve() {
    let ran = curl_as(Build::System32, &["-sS", "http://nowhere.test/"], "");
    assert_eq!(
        (err(&ran).as_str(), ran.code),
        ("curl: (6) Could not resolve host: nowhere.test\r\n", 6)
    );
}

#[test]
fn silence_is_complete_without_show_error() {
    assert_eq!(
        err(&curl_as(
            Build::Alpine,
            &["-s", "http://10.244.2.5:81/"],
            ""
        )),
        ""
    );
}

#[test]
fn versions_have_three_more_lines() {
    for build in [Build::Alpine, Build::System32, Build::AgnhostWindows] {
        let text = out(&curl_as(build, &["--version"], ""));
        let firsts: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(firsts, ["curl", "Release-Date:", "Protocols:", "Features:"]);
        assert_eq!(text.contains("\r\n"), build != Build::Alpine);
    }
}

#[test]
fn unknown_variables_and_options() {
    let ran = curl_as(
        Build::Alpine,
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
        Build::AgnhostWindows,
        &["-s", "-w", "%{exitcode}", "http://10.244.2.5:81/"],
        "",
    );
    assert_eq!(
        err(&old),
        "curl: unknown --write-out variable: 'exitcode'\r\n"
    );
    let ran = curl_as(Build::Alpine, &["--nonesuch"], "");
    assert!(err(&ran).starts_with("curl: option --nonesuch: is unknown\n"));
    assert_eq!(ran.code, 2);
    assert_eq!(curl_as(Build::Alpine, &[], "").code, 2);
    let ran = curl_as(Build::Alpine, &["-K", "-"], "silent\nnonesuch = 1\n");
    assert!(
        err(&ran).starts_with("curl: <stdin>:2: 'nonesuch' is unknown\n"),
        "{ran:?}"
    );
    assert_eq!(ran.code, 26);
    let ran = curl_as(Build::Alpine, &["-sS", "ftp://10.244.2.5/"], "");
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
        curl_as(Build::System32, &["-K", "-"], input);
        curl_as(Build::System32, &[input], "");
        curl_as(Build::Alpine, &["-w", input, "http://10.244.2.5/"], "");
    }
}
