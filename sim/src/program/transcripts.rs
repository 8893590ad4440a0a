//! Real texts from public issues and sources, in tests/transcripts: the simulated programs must print them in
//! the situations that they come from.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Container;
use serde::Deserialize;
use tokio::runtime::Runtime;

use super::curl::{self, Build};
use super::ping::Language;
use super::tests::place;
use super::{Refusal, Started, ping, shell};
use crate::base::log::Stream;
use crate::nodes::cluster::tests::{cluster_of, node_of};
use crate::nodes::image::{self, Family};
use crate::pods::container::{self, Slot};
use crate::pods::course::run::PodRun;
use crate::pods::course::{hook, sandbox, start};
use crate::pods::reporting::book::Role;
use crate::program::kubernetes::connect;
use crate::program::web::net::{Echo, Link};
use crate::program::windows::network_table::Table;
use crate::topology::{Build as OsBuild, NodeSpec, Os, Pool};
use crate::world::Key;

/// One text; the file's name identifies it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Transcript {
    /// The program that printed it.
    program: String,
    /// The version of the program, or of the system that it came with.
    version: String,
    os: String,
    /// The situation, in a sentence.
    situation: String,
    #[serde(default)]
    network: Network,
    command: Vec<String>,
    /// The text, with `…` for omitted parts.
    text: String,
    /// `stdout`, `stderr`, or `message` for the runtime's words about a program that did not start.
    stream: String,
    code: Option<u32>,
    source: String,
    /// Why the simulator does not print it yet.
    #[serde(default)]
    not_yet: Option<String>,
    /// The result of the tool's parsers.
    #[serde(default)]
    #[expect(dead_code, reason = "the parsers' own test compares it")]
    reads: Option<String>,
}

/// The differences from a network in which names are unknown and connections are refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Network {
    names: BTreeMap<String, IpAddr>,
    silent: Vec<SocketAddr>,
    no_route: Vec<SocketAddr>,
    forbidden: Vec<SocketAddr>,
    echoes: Vec<IpAddr>,
    unreachable: Vec<IpAddr>,
}

impl Network {
    fn table(&self, os: Os) -> Table {
        let mut table = Table::new(os);
        for (name, address) in &self.names {
            table = table.name(name, Ok(*address));
        }
        let links = [
            (&self.silent, Link::TimedOut),
            (&self.no_route, Link::NoRoute),
            (&self.forbidden, Link::Forbidden),
        ];
        for (ends, link) in links {
            for end in ends {
                table = table.link(end.ip(), end.port(), link.clone());
            }
        }
        for address in &self.echoes {
            table.echoes.insert(*address, Echo::Reply(128));
        }
        for address in &self.unreachable {
            table.echoes.insert(*address, Echo::Unreachable(*address));
        }
        table
    }
}

fn all(folder: &Path) -> BTreeMap<String, Transcript> {
    let files = std::fs::read_dir(folder).expect("the folder of transcripts");
    let mut all = BTreeMap::new();
    for file in files {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).expect("text");
        let read = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        all.insert(name, read);
    }
    all
}

/// Whether a text matches a pattern with omitted parts.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

impl Transcript {
    fn os(&self) -> Os {
        match self.os.as_str() {
            "linux" => Os::Linux,
            "windows" => Os::Windows,
            other => panic!("there is no system `{other}`"),
        }
    }

    /// The text and the exit code of the simulated program.
    fn simulated(&self) -> Option<(String, Option<u32>)> {
        let net = self.network.table(self.os());
        let args = self.command.get(1..).unwrap_or_default();
        let started = match self.program.as_str() {
            "curl" => Started::Ended(curl::perform(
                &self.curl(),
                self.session().as_bytes(),
                &net,
            )?),
            "agnhost connect" => Started::Ended(connect::run(&args[1..], &net)?),
            "ping" => ping::windows(args, &net, Language::English)?,
            "ping, Japanese" => ping::windows(args, &net, Language::Japanese)?,
            "kubectl describe" => {
                let code = container::signed(super::CONTROL_C);
                return Some((format!("Exit Code:    {code}"), None));
            }
            "containerd create" => return Some((self.not_created(), None)),
            "containerd pull" => {
                let pulled = image::resolve(&args[0], Pool::Windows(OsBuild::Ws2019));
                let failure = pulled.expect_err("it cannot be pulled");
                return Some((failure, None));
            }
            "containerd sandbox" => {
                return Some((sandbox::describe(&sandbox::unconfigured(&args[0])), None));
            }
            "cmd" => Started::Ended(shell::not_found(self.os(), &self.command[0])),
            "containerd sandbox, VPC CNI of EKS" => {
                return Some((sandbox::describe(&sandbox::unlabelled(&args[0])), None));
            }
            "containerd exec trouble" => {
                let refusal = Refusal::RpcUnavailable;
                let words = hook::not_executed(self.os(), &args[0], &args[1], &refusal);
                return Some((words, None));
            }
            "containerd exec" => Started::Refused(Refusal::Missing(self.command[0].clone())),
            other => panic!("no program is called `{other}`"),
        };
        Some(match started {
            Started::Ended(ran) => {
                let bytes = ran.all(match self.stream.as_str() {
                    "stdout" => Stream::Out,
                    _ => Stream::Error,
                });
                let text = match self.program.as_str() {
                    "ping, Japanese" => encoding_rs::SHIFT_JIS.decode(&bytes).0.into_owned(),
                    _ => String::from_utf8(bytes).expect("text"),
                };
                (text.replace("\r\n", "\n"), Some(ran.code))
            }
            Started::Refused(refusal @ Refusal::Missing(_)) => {
                (refusal.text(self.os(), "05f"), None)
            }
            other => panic!("{other:?}"),
        })
    }

    /// A configuration with the meaning of curl's arguments, without those that do not change its output.
    fn session(&self) -> String {
        let mut lines = "silent\nshow-error\nheader = \"Connection: close\"\n".to_owned();
        let mut args = self.command[1..].iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().map(String::as_str).unwrap_or_default();
            lines.push_str(&match arg.as_str() {
                "-o" | "-w" => {
                    value();
                    continue;
                }
                "-m" => format!("max-time = {}\n", value()),
                "--connect-timeout" => format!("connect-timeout = {}\n", value()),
                "-q" | "-s" | "-sS" | "-SL" => continue,
                url => format!("url = \"{url}\"\n"),
            });
        }
        lines
    }

    /// containerd's words about a container that it does not create; one with a command is a `HostProcess`
    /// container.
    fn not_created(&self) -> String {
        let runtime = Runtime::new().expect("a runtime");
        let _inside = runtime.enter();
        let cluster = cluster_of(BTreeMap::new());
        let pool = Pool::Windows(OsBuild::Ws2022);
        let node = Arc::new(node_of(NodeSpec::new("n", pool)));
        let key = Key::new("test", "web");
        let run = PodRun::new(key, "u".to_owned(), node, Arc::default());
        let slot = Slot {
            cluster: &Arc::new(cluster),
            run: &Arc::new(run),
            spec: &Container::default(),
            index: 0,
            role: Role::Main,
        };
        let argv = &self.command[1..];
        let place = super::Place {
            host_process: !argv.is_empty(),
            ..place(Os::Windows, Family::Agnhost)
        };
        let image = image::resolve(OF_ONE_BUILD, pool).expect("an image");
        start::refused(slot, &image, &place, argv, "5eae").expect("it is refused")
    }

    fn curl(&self) -> Build {
        let mut numbers = self
            .version
            .split('.')
            .map(|number| number.parse().expect("a number"));
        let mut next = || numbers.next().unwrap_or(0);
        Build::of_the_machine(self.os(), (next(), next(), next()), false)
    }
}

/// Compares all; returns how many the simulator prints, and how many it does not print yet.
fn compare(transcripts: &BTreeMap<String, Transcript>) -> (usize, usize) {
    let mut wrong = Vec::new();
    let (mut printed, mut not_yet) = (0, 0);
    for (name, transcript) in transcripts {
        let source = &transcript.source;
        assert!(source.starts_with("https://"), "{name}: {source}");
        assert!(transcript.situation.len() > 10, "{name}: a sentence");
        if transcript.not_yet.is_some() {
            not_yet += 1;
            continue;
        }
        let (text, code) = transcript.simulated().expect(name);
        printed += 1;
        let same_code = transcript.code.is_none() || transcript.code == code;
        if !same_code || !fits(&transcript.text, text.trim_end_matches('\n')) {
            wrong.push(format!(
                "{name}\n  real      {:?} {:?}\n  simulated {text:?} {code:?}",
                transcript.text, transcript.code
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    (printed, not_yet)
}

#[test]
fn every_transcript_is_printed_in_its_situation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/transcripts");
    // These texts are other programs'; neither number may change unnoticed
    assert_eq!(compare(&all(&folder)), (PRINTED, NOT_YET));
}

/// Compares the recordings that ci/transcripts/record.ps1 wrote on a Windows machine.
#[test]
fn recordings_are_printed_too() {
    let Some(folder) = std::env::var_os("WINCONFORM_RECORDED") else {
        // This bypasses the test harness, which captures what passing tests print
        let why = "not run: recordings_are_printed_too: WINCONFORM_RECORDED names no folder";
        writeln!(std::io::stderr(), "{why}").expect("stderr is open");
        return;
    };
    let (printed, _) = compare(&all(Path::new(&folder)));
    assert!(printed > 0, "there are recordings");
}

const PRINTED: usize = 26;
const NOT_YET: usize = 0;

/// An image whose manifest is of one Windows build only.
const OF_ONE_BUILD: &str = "registry.k8s.io/pause:3.10-windows-amd64-ltsc2019";

#[test]
fn what_is_left_out_fits_anything_between() {
    assert!(fits("a … c", "a b c"));
    assert!(fits("…b", "a b"));
    assert!(!fits("a … d", "a b c"));
    assert!(!fits("a", "a b"));
}
