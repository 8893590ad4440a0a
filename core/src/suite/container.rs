//! The assertions of programs, logs and fields, from YAML.

use strum::VariantNames;

use super::case::read_name;
use crate::command::{Command, FilePath, Host, HttpGet, ServiceName, Token, VariableName};
use crate::document::{Decoder, Entry, Fields, Node};
use crate::facts::Os;
use crate::fixture::{FixtureName, Until};
use crate::method::{
    Assertion, ContainerOf, Ending, LogExpectation, OverTime, PodOf, ProgramExpectation,
    ProgramQuery, Scenario, ScenarioQuery, StatusExpectation, StatusKind, StatusQuery, Unfolds,
    read_words,
};

/// What a program can be in a suite, in the words of its key.
const PROGRAMS: [&str; 29] = [
    "access",
    "cpu-limited",
    "csi-proxy-pipes",
    "encryption",
    "environment",
    "exists",
    "fill-file",
    "find-process",
    "find-user",
    "free-space",
    "get",
    "has-address",
    "links",
    "load-balancers",
    "memory-limited",
    "page-files",
    "parent-domain",
    "ports",
    "processes",
    "reach-api-server",
    "reach-share",
    "read-file",
    "read-pipe",
    "read-volume",
    "services",
    "streams",
    "who-am-i",
    "write-file",
    "write-to-share",
];

/// Reads `of` and the name of its pod, which is the fixture's unless it says another.
fn read_pod(
    decoder: &mut Decoder<'_>,
    fields: &mut Fields<'_>,
    key: &'static str,
) -> Option<PodOf> {
    let known: Vec<_> = FixtureName::all().collect();
    let of = fields.read(decoder, "of", |decoder, node| {
        decoder.member(node, "fixture", &known)
    });
    let name = fields.maybe(decoder, key, read_name);
    let of = of?;
    let name = name?.unwrap_or_else(|| of.as_str().to_owned());
    Some(PodOf { of, name })
}

fn read_container_of(decoder: &mut Decoder<'_>, fields: &mut Fields<'_>) -> Option<ContainerOf> {
    let pod = read_pod(decoder, fields, "pod");
    let container = fields.read(decoder, "container", read_name);
    let (pod, container) = (pod?, container?);
    Some(ContainerOf { pod, container })
}

pub(super) fn read_container(decoder: &mut Decoder<'_>, node: &Node) -> Option<ContainerOf> {
    let mut fields = decoder.fields(node, "a log's `ask`")?;
    let container = read_container_of(decoder, &mut fields);
    fields.finish(decoder);
    container
}

pub(super) fn read_log(decoder: &mut Decoder<'_>, node: &Node) -> Option<LogExpectation> {
    let mut fields = decoder.fields(node, "what is expected of a log")?;
    let lines = fields.read(decoder, "lines", read_words);
    fields.finish(decoder);
    lines.map(LogExpectation)
}

pub(super) fn read_status_query(decoder: &mut Decoder<'_>, node: &Node) -> Option<StatusQuery> {
    let entry = decoder.tagged(node, "status `ask`", StatusKind::VARIANTS)?;
    let kind = entry.key.parse().ok()?;
    let mut fields = decoder.fields(&entry.node, "an object")?;
    let object = read_pod(decoder, &mut fields, "name");
    fields.finish(decoder);
    Some(StatusQuery {
        kind,
        object: object?,
    })
}

pub(super) fn read_status(decoder: &mut Decoder<'_>, node: &Node) -> Option<StatusExpectation> {
    let read = |decoder: &mut Decoder<'_>, node: &Node| {
        if decoder.entries(node, "fields of an object")?.is_empty() {
            return decoder.fail(node, "no fields, which every object has", None);
        }
        Some(node.to_json())
    };
    let mut fields = decoder.fields(node, "what is expected of an object")?;
    let has = fields.read(decoder, "has", read);
    let instead = fields.maybe(decoder, "fails", read);
    fields.finish(decoder);
    Some(StatusExpectation {
        has: has?,
        instead: instead?,
    })
}

pub(super) fn read_program(decoder: &mut Decoder<'_>, node: &Node) -> Option<ProgramQuery> {
    let mut fields = decoder.fields(node, "a program's `ask`")?;
    let within = read_container_of(decoder, &mut fields);
    let run = fields.required(decoder, "run");
    fields.finish(decoder);
    let (within, run) = (within?, run?);
    let os = within.pod.of.os();
    let entry = decoder.tagged(run, "program", &PROGRAMS)?;
    let command = read_command(decoder, entry, os)?;
    let looks = matches!(
        command,
        Command::FindProcess(_)
            | Command::HasAddress(_)
            | Command::Processes
            | Command::ReadPipe
            | Command::ReadVolume(_)
            | Command::WhoAmI
    ) || command.is_told();
    if within.pod.of.is_on_node() && !looks {
        let message = "a prober on a node, whose files are the node's, runs no command on files";
        return decoder.fail(run, message, Some("ask `of: toolbox`".to_owned()));
    }
    if !within.pod.of.is_on_node() && matches!(command, Command::ReadVolume(_)) {
        let message = "a container that is not the node's own does not see the kubelet's folder";
        return decoder.fail(run, message, Some("ask `of: node-side`".to_owned()));
    }
    if let Err(error) = command.on(os) {
        return decoder.fail(run, error.to_string(), None);
    }
    Some(ProgramQuery {
        within,
        run: command,
    })
}

/// Reads a scenario, whose steps say themselves what is expected.
pub(super) fn read_scenario(
    decoder: &mut Decoder<'_>,
    query: Option<&Node>,
    expectation: Option<&Node>,
) -> Option<Assertion<OverTime>> {
    let unfolds = expectation.and_then(|node| {
        let entry = decoder.tagged(node, "expectation", &["unfolds"])?;
        decoder.fields(&entry.node, "`unfolds`")?.finish(decoder);
        Some(())
    });
    let mut fields = decoder.fields(query?, "a scenario's `ask`")?;
    let within = read_container_of(decoder, &mut fields);
    let scenario = fields.read(decoder, "scenario", |decoder, node| {
        decoder.member(node, "scenario", Scenario::ALL)
    });
    fields.finish(decoder);
    let (within, scenario) = (within?, scenario?);
    if within.pod.of.until() != Until::Running {
        let playing = FixtureName::all().filter(|name| name.until() == Until::Running);
        let playing: Vec<_> = playing.map(FixtureName::as_str).collect();
        let message = format!("no scenario changes `{}`", within.pod.of.as_str());
        let hint = format!("scenarios are for the pods of {}", playing.join(" and "));
        return decoder.fail(query?, message, Some(hint));
    }
    unfolds?;
    Some(Assertion {
        query: ScenarioQuery { within, scenario },
        expectation: Unfolds {
            scenario,
            but_the_last: false,
        },
    })
}

fn read_command(decoder: &mut Decoder<'_>, entry: &Entry, os: Os) -> Option<Command> {
    let node = &entry.node;
    let path = |decoder: &mut Decoder<'_>, node: &Node| {
        let hint = Some("an absolute path of plain letters: `C:\\dir\\file` on Windows");
        let parse = |text: &str| FilePath::parse(os, text);
        decoder.parsed(node, "a path", ("is no such path", hint), parse)
    };
    Some(match entry.key.as_str() {
        "access" => Command::Access(path(decoder, node)?),
        "free-space" => Command::FreeSpace(path(decoder, node)?),
        "services" => {
            let read = |decoder: &mut Decoder<'_>, node: &Node| {
                let is_not = ("names no service", None);
                decoder.parsed(node, "a service's name", is_not, ServiceName::parse)
            };
            Command::Services(decoder.each(node, "`services`", read)?)
        }
        "exists" => Command::Exists(path(decoder, node)?),
        "links" => Command::Links(path(decoder, node)?),
        "read-file" => Command::ReadFile(path(decoder, node)?),
        "read-volume" => Command::ReadVolume(read_file_of_volume(decoder, node, os)?),
        "find-process" => Command::FindProcess(read_token(decoder, node)?),
        "find-user" => Command::FindUser(read_token(decoder, node)?),
        "memory-limited" => {
            Command::MemoryLimited(decoder.whole(node, "MiB of memory", (1, 4096))?)
        }
        "streams" => Command::Streams(read_token(decoder, node)?),
        "write-to-share" => Command::WriteToShare(read_token(decoder, node)?),
        "environment" => {
            Command::Environment(decoder.each(node, "`environment`", read_variable)?)
        }
        "has-address" => Command::HasAddress(read_variable(decoder, node)?),
        "fill-file" => {
            let mut fields = decoder.fields(node, "`fill-file`")?;
            let path = fields.read(decoder, "path", path);
            let size = fields.read(decoder, "bytes", |decoder, node| {
                decoder.whole(node, "`bytes`", (1, 8 << 20))
            });
            fields.finish(decoder);
            let (path, size) = (path?, size?);
            Command::FillFile {
                path,
                size: size.into(),
            }
        }
        "get" => {
            let is_not = ("is no host with a port", Some("such as `kubernetes:443`"));
            let get = decoder.parsed(node, "a host and its port", is_not, read_get);
            Command::Get(get?)
        }
        "write-file" => {
            let mut fields = decoder.fields(node, "`write-file`")?;
            let path = fields.read(decoder, "path", path);
            let line = fields.read(decoder, "line", read_token);
            fields.finish(decoder);
            let (path, line) = (path?, line?);
            Command::WriteFile { path, line }
        }
        alone => {
            decoder
                .fields(node, "a program without arguments")?
                .finish(decoder);
            match alone {
                "cpu-limited" => Command::CpuLimited,
                "read-pipe" => Command::ReadPipe,
                "csi-proxy-pipes" => Command::CsiProxyPipes,
                "encryption" => Command::Encryption,
                "load-balancers" => Command::LoadBalancers,
                "page-files" => Command::PageFiles,
                "parent-domain" => Command::ParentDomain,
                "ports" => Command::Ports,
                "processes" => Command::Processes,
                "reach-api-server" => Command::ReachApiServer,
                "reach-share" => Command::ReachShare,
                _ => Command::WhoAmI,
            }
        }
    })
}

/// Reads the name of a volume and a path in it.
fn read_file_of_volume(decoder: &mut Decoder<'_>, node: &Node, os: Os) -> Option<FilePath> {
    let hint = Some("such as `shared\\file.txt`");
    let is_not = ("names no file of a volume", hint);
    decoder.parsed(node, "a volume and a file in it", is_not, |text| {
        let is_within = text.contains('\\');
        FilePath::parse(os, &format!("C:\\{text}")).filter(|_| is_within)
    })
}

fn read_variable(decoder: &mut Decoder<'_>, node: &Node) -> Option<VariableName> {
    let is_not = ("names no variable", None);
    decoder.parsed(node, "a variable's name", is_not, VariableName::parse)
}

fn read_get(text: &str) -> Option<HttpGet> {
    let (host, port) = text.rsplit_once(':')?;
    Some(HttpGet {
        host: Host::parse(host)?,
        port: port.parse().ok()?,
        path: "/".to_owned(),
    })
}

fn read_token(decoder: &mut Decoder<'_>, node: &Node) -> Option<Token> {
    let is_not = ("is no such word", Some("letters and digits, at most 64"));
    decoder.parsed(node, "a word", is_not, Token::parse)
}

pub(super) fn read_program_end(
    decoder: &mut Decoder<'_>,
    node: &Node,
) -> Option<ProgramExpectation> {
    let entry = decoder.tagged(node, "expectation", &["ends", "told"])?;
    let ends = match entry.key.as_str() {
        "ends" => Some(Ending::read(decoder, &entry.node)?),
        _ => {
            decoder.fields(&entry.node, "`told`")?.finish(decoder);
            None
        }
    };
    Some(ProgramExpectation { ends, lifted: None })
}
