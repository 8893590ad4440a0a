use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::SIMULATED;
use super::cases::{CASES, SESSIONS};
use super::sockets::{Scene, behaviour};
use super::tally::Tally;
use crate::base::log::Stream;
use crate::program::curl::{Build, perform};
use crate::topology::Os;

/// The arguments of all sessions.
const ARGUMENTS: &[&str] = &["-q", "-K", "-"];

/// How often the real curl may give a different outcome.
const TRIES: usize = 4;

/// Output, error stream, exit code.
type Outcome = (String, String, u32);

/// The curl of the machine, on PATH.
const MACHINES: &str = "curl";

/// The paths of other curls, in the form of PATH; `ci/windows-programs/run` builds them and prints it.
const OTHERS: &str = "WINCONFORM_TEST_CURLS";

/// A session's configuration.
fn session(scene: &Scene, (options, urls): &(&[&str], &[&str])) -> String {
    let mut lines = options.join("\n") + "\nheader = \"Connection: close\"\n";
    for url in *urls {
        lines.push_str(&format!("url = \"http://{url}\"\n"));
    }
    scene.filled(&lines)
}

fn real(program: &Path, args: &[&str], input: &str) -> Outcome {
    let mut command = match of_windows(program) {
        false => Command::new(program),
        true => Command::new("wine"),
    };
    if of_windows(program) {
        command.arg(program);
    }
    let mut child = command
        .args(args)
        .env_remove("http_proxy")
        .env_remove("ALL_PROXY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test needs curl on PATH, or built");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A curl that does not read its input may be gone by now
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("curl ends");
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
        u32::try_from(output.status.code().expect("curl ends by itself")).expect("not negative"),
    )
}

fn of_windows(program: &Path) -> bool {
    program
        .extension()
        .is_some_and(|extension| extension == "exe")
}

/// A curl as the table names it, and its simulation.
fn build(program: &Path) -> (String, Build) {
    let (banner, _, _) = real(program, &["--version"], "");
    let version = banner
        .strip_prefix("curl ")
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap_or_default();
    let mut numbers = version.split('.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    });
    let mut next = || numbers.next().unwrap_or(0);
    let version = (next(), next(), next());
    let (os, runs) = match of_windows(program) {
        true => (Os::Windows, "Windows (Wine)"),
        false => (Os::Linux, "Linux"),
    };
    let name = format!("curl {}.{}, {runs}", version.0, version.1);
    let build = Build::of_the_machine(os, version, banner.contains("c-ares"));
    (name, build)
}

fn simulated(build: &Build, scene: &Scene, input: &str) -> Outcome {
    let ran = perform(build, input.as_bytes(), scene.table.as_ref());
    let ran = ran.expect("it is simulated");
    (
        String::from_utf8_lossy(&ran.all(Stream::Out)).into_owned(),
        String::from_utf8_lossy(&ran.all(Stream::Error)).into_owned(),
        ran.code,
    )
}

/// An outcome without the times, which differ from run to run, and the ends of lines of standard output: whether
/// an old curl has it in binary depends on how it was built (`HAVE_SETMODE`).
fn plain((stdout, errors, code): Outcome) -> Outcome {
    let stdout = stdout.replace("\r\n", "\n");
    let stdout: Vec<&str> = stdout
        .split('\n')
        .map(|line| match line {
            _ if line.starts_with("NOW: ") => "NOW",
            _ => line,
        })
        .collect();
    let numbers = |text: &str, before: &str, after: &str| {
        let mut out = String::new();
        let mut rest = text;
        while let Some((head, tail)) = rest.split_once(before) {
            let digits = tail.chars().take_while(char::is_ascii_digit).count();
            out.push_str(head);
            out.push_str(before);
            rest = match tail[digits..].starts_with(after) {
                true => {
                    out.push('N');
                    &tail[digits..]
                }
                false => tail,
            };
        }
        out + rest
    };
    let times = |text: &str| numbers(&numbers(text, "after ", " ms"), "after ", " milliseconds");
    (times(&stdout.join("\n")), times(&errors), code)
}

/// Compares a curl with its simulation.
fn compare(tally: &mut Tally, program: &Path, cases: &[(&[&str], &[&str])]) {
    let scene = Scene::new();
    let (name, build) = build(program);
    for case in cases {
        let input = session(&scene, case);
        if input.contains("{six}") {
            writeln!(std::io::stderr(), "not run: {input:?}: there is no IPv6")
                .expect("it is open");
            continue;
        }
        let simulated = simulated(&build, &scene, &input);
        let found = plain(simulated.clone());
        // On a busy machine a limit of 0.3 s may pass between two checks of the real curl, which then prints
        // other words; but not every time
        let mut outcome = real(program, ARGUMENTS, &input);
        for _ in 1..TRIES {
            if plain(outcome.clone()) != found {
                outcome = real(program, ARGUMENTS, &input);
            }
        }
        let [real_ends, simulated_ends] = [&outcome, &simulated].map(|it| it.0.contains("\r\n"));
        let in_text_mode = (real_ends != simulated_ends).then(|| format!("{outcome:?}"));
        tally.note(&name, "keeps ends of lines", in_text_mode);
        let expected = plain(outcome);
        let difference = (expected != found)
            .then(|| format!("{input:?}\n  real      {expected:?}\n  simulated {found:?}"));
        tally.note(&name, behaviour(&case.1.concat()), difference);
    }
}

#[test]
fn what_the_tool_reads_of_a_banner_is_simulated() {
    let (banner, ..) = real(Path::new(MACHINES), &["-q", "--version"], "");
    let simulated = build(Path::new(MACHINES)).1.banner();
    let words = |text: &str| {
        text.split(' ')
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&banner), words(&simulated));
}

#[test]
fn curl_and_its_simulation_come_to_the_same() {
    let mut tally = Tally::new(SIMULATED);
    compare(&mut tally, Path::new(MACHINES), &[CASES, SESSIONS].concat());
    tally.end();
}

#[test]
fn sessions_of_old_and_new_curls_and_their_simulations_come_to_the_same() {
    let Some(others) = std::env::var_os(OTHERS) else {
        // This bypasses the test harness, which captures what passing tests print
        let name = "sessions_of_old_and_new_curls_and_their_simulations_come_to_the_same";
        writeln!(std::io::stderr(), "not run: {name}: {OTHERS} is not set")
            .expect("stderr is open");
        return;
    };
    let mut tally = Tally::new(SIMULATED);
    for program in std::env::split_paths(&others) {
        compare(&mut tally, &program, SESSIONS);
    }
    tally.end();
}

#[test]
fn a_wrong_word_would_be_seen() {
    let scene = Scene::new();
    let input = session(&scene, &(&["silent", "show-error"], &["{refused}/"]));
    let other = Build::of_the_machine(Os::Linux, (7, 57, 0), false);
    let machines = Path::new(MACHINES);
    let (_, build) = build(machines);
    assert!(
        build.since(7, 78),
        "the machine's curl is from 2021 or newer"
    );
    assert_ne!(
        plain(real(machines, ARGUMENTS, &input)),
        plain(simulated(&other, &scene, &input))
    );
}
