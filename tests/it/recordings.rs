//! Reads and judges again what real API servers answered to every dry run.
//!
//! `tests/recordings/VERSION/` holds the answers of one Kubernetes version, which `ci/record-rejections`
//! records: `facts.json` with the facts that expectations depend on, `answers.jsonl` with one request and its
//! answer per line, each request once, without names and times that differ from run to run. The replay plans
//! all rejections for that version, finds the answer to each request and judges it: it fails at a request
//! without an answer, or at a verdict other than on the real server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use winconform::transport::Env;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use winconform::cluster::{ConnectOptions, connect};
use winconform::engine::{Journal, Keep, Repeat, RunOptions, run};
use winconform_core::config::{Config, Durations, Limits};
use winconform_core::facts::Facts;
use winconform_core::fixture::{FixtureKey, FixtureName};
use winconform_core::method::{
    ApiReply, ApiRequest, Bound, ErrorKind, ReadyFixture, ReadyFixtures, Reply, Request, Verb,
};
use winconform_core::plan::{Check, Disposition, Selection, plan};
use winconform_core::verdict::{Verdict, judge};

use super::{control_plane, suites};

/// The id of the run in recorded names.
const RUN: &str = "recorded";
/// The environment variable with the folder for a recording.
const INTO: &str = "WINCONFORM_RECORD_INTO";

/// One request with its answer.
#[derive(Deserialize, Serialize)]
struct Recorded {
    verb: Verb,
    path: String,
    body: Option<Json>,
    status: u16,
    answer: Json,
}

type Answers = BTreeMap<String, ApiReply>;

#[test]
fn recorded_servers_are_judged_as_they_were() {
    let mut seen = Vec::new();
    for version in ["v1.32.2", "v1.36.4", "v1.37.0"] {
        let folder = folder().join(version);
        let facts = std::fs::read_to_string(folder.join("facts.json")).expect("recorded facts");
        let facts: Facts = serde_json::from_str(&facts).expect("facts");
        let answers = read_answers(&folder);
        let mut counts = BTreeMap::<String, usize>::new();
        let mut wrong = Vec::new();
        for check in plan(&suites::of_areas(&["reject"]), &facts, &Config::default()).checks {
            let outcome = match &check.disposition {
                Disposition::Skip(reason) => format!("skip: {reason}"),
                Disposition::Inconclusive(error) => format!("inconclusive: {error}"),
                Disposition::Observe => match replayed(&check, &answers) {
                    Verdict::Pass => "pass".to_owned(),
                    other => {
                        wrong.push(format!("{}: {other}", check.id));
                        other.to_string()
                    }
                },
            };
            *counts.entry(outcome).or_default() += 1;
        }
        assert!(wrong.is_empty(), "{version}:\n{}", wrong.join("\n"));
        seen.push(format!("{version}, {} requests", answers.len()));
        seen.extend(
            counts
                .iter()
                .map(|(outcome, count)| format!("{count:5} {outcome}")),
        );
    }
    insta::assert_snapshot!(seen.join("\n"));
}

/// Records the answers of the control plane given, into the folder given.
#[tokio::test]
#[ignore = "records: run by ci/record-rejections"]
async fn record() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = control_plane("record").expect("a control plane");
    let into = std::env::var_os(INTO).expect("a folder");
    let limits = Limits {
        recorded_reply: 1 << 20,
        ..Limits::default()
    };
    let options = ConnectOptions {
        context: None,
        kubeconfig: Some(PathBuf::from(&kubeconfig)),
    };
    let cluster = connect(&options, Durations::default(), limits).await;
    let cluster = cluster.expect("the control plane answers");
    let settings = RunOptions {
        run: RUN.to_owned(),
        lease: "winconform-recording".to_owned(),
        holder: "recording".to_owned(),
        config: Config::default(),
        selection: Selection::default(),
        deadline: None,
        repeat: Repeat::Times(1),
        resume: None,
        keep: Keep::Never,
    };
    let journal = Journal::create(Env::system(), None, Vec::new(), Box::new(|_| {}))
        .expect("a record in memory");
    let (_alive, signals) = ordered_watch::channel(0);
    let suites = suites::of_areas(&["reject"]);
    let ran = run(&cluster, &suites, &settings, &journal, signals).await;
    ran.expect("a run");
    let view = journal.view().expect("a readable record");
    let facts = view.facts.expect("facts");
    let mut lines = BTreeMap::new();
    for check in plan(&suites, &facts, &settings.config).checks {
        let recorded = view
            .checks
            .values()
            .find(|seen| seen.planned.id == check.id);
        let Some(attempts) = recorded.map(|seen| &seen.attempts) else {
            panic!("{} is not on record", check.id);
        };
        // A recording holds answers of a server, not observation errors
        for (assertion, recorded) in check
            .assertions
            .iter()
            .zip(attempts.iter().flat_map(|a| &a.assertions))
        {
            let Some(Reply::Api(reply)) = &recorded.reply else {
                panic!("{}, {}: no answer", check.id, assertion.name);
            };
            let ready = standing();
            let prepared = assertion.test.prepare(&Bound::to_ready(&ready));
            let request = of_api(&prepared.expect("bound").request);
            let answer = Recorded {
                verb: request.verb,
                path: request.path.clone(),
                body: request.body.clone(),
                status: reply.status,
                answer: plain(reply.body.clone()),
            };
            let line = serde_json::to_string(&answer).expect("JSON");
            if let Some(before) = lines.insert(key(&request), line.clone()) {
                assert_eq!(before, line, "asked twice, answered otherwise");
            }
        }
    }
    // The facts that expectations depend on; the replay knows no others
    let facts = json!({"server": facts.server, "gates": facts.gates});
    let folder = PathBuf::from(into);
    std::fs::create_dir_all(&folder).expect("a folder");
    let facts = serde_json::to_string_pretty(&facts).expect("JSON");
    std::fs::write(folder.join("facts.json"), facts + "\n").expect("written");
    let mut text = lines.into_values().collect::<Vec<_>>().join("\n");
    text.push('\n');
    std::fs::write(folder.join("answers.jsonl"), text).expect("written");
}

/// The verdict of a check on recorded answers.
fn replayed(check: &Check, answers: &Answers) -> Verdict {
    let ready = standing();
    let taken = check.assertions.iter().map(|assertion| {
        let prepared = assertion.test.prepare(&Bound::to_ready(&ready))?;
        let request = key(&of_api(&prepared.request));
        let answer = answers.get(&request).ok_or_else(|| {
            let detail = format!("no answer to {request}: record again");
            ErrorKind::ApiUnavailable.error(detail)
        })?;
        prepared.read(&Reply::Api(answer.clone()))
    });
    let taken: Vec<_> = taken.collect();
    let compared: Vec<_> = taken
        .iter()
        .map(|taken| taken.as_ref().map(|taken| &taken.comparison))
        .collect();
    judge(
        check.claim_type,
        compared[0],
        &check.controls(&compared),
        &check.scope,
    )
}

fn of_api(request: &Request) -> ApiRequest {
    match request {
        Request::Api(request) => request.clone(),
        other => panic!("not a request to the API server: {other:?}"),
    }
}

fn key(request: &ApiRequest) -> String {
    let body = request.body.as_ref().map(Json::to_string);
    format!(
        "{:?} {} {}",
        request.verb,
        request.path,
        body.unwrap_or_default()
    )
}

fn standing() -> ReadyFixtures {
    let key = |name| FixtureKey {
        name,
        pool: None,
        node: None,
    };
    let names = [FixtureName::NAMESPACES, FixtureName::UNBOUND_PODS];
    ReadyFixtures {
        run: RUN.to_owned(),
        namespace: format!("winconform-{RUN}"),
        host_namespace: format!("winconform-host-{RUN}"),
        fixtures: names
            .map(|name| (key(name), ReadyFixture::default()))
            .into(),
        ..ReadyFixtures::default()
    }
}

/// An answer without the parts that differ from run to run.
fn plain(mut answer: Json) -> Json {
    // A Job's labels hold its UID, too
    if let Some(uid) = answer["metadata"]["uid"].as_str() {
        let text = answer.to_string().replace(uid, "UID");
        answer = serde_json::from_str(&text).expect("still JSON");
    }
    if let Some(metadata) = answer.get_mut("metadata").and_then(Json::as_object_mut) {
        for key in [
            "uid",
            "creationTimestamp",
            "managedFields",
            "resourceVersion",
            "generation",
        ] {
            metadata.remove(key);
        }
    }
    if let Some(details) = answer.get_mut("details").and_then(Json::as_object_mut) {
        details.remove("uid");
    }
    // Validation does not set the status of a dry run
    if answer["kind"] != "Status"
        && let Some(object) = answer.as_object_mut()
    {
        object.remove("status");
    }
    answer
}

fn read_answers(folder: &Path) -> Answers {
    let text = std::fs::read_to_string(folder.join("answers.jsonl")).expect("recorded answers");
    let lines = text.lines().map(|line| {
        let answer: Recorded = serde_json::from_str(line).expect("an answer");
        let request = ApiRequest {
            verb: answer.verb,
            path: answer.path,
            body: answer.body,
        };
        let reply = ApiReply {
            status: answer.status,
            body: answer.answer,
        };
        (key(&request), reply)
    });
    lines.collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}
