//! Replays the answers of real servers to dry runs. A request is matched by its content, whatever
//! its namespace.
//!
//! The tests of the judgements use the same recordings; the simulator reads from them only what a
//! server received and sent.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// The recordings of one Kubernetes version.
#[derive(Clone, Copy, Debug)]
struct Version {
    /// As `/version` returns it.
    git: &'static str,
    answers: &'static str,
    metrics: &'static str,
}

const VERSIONS: [Version; 2] = [
    Version {
        git: "v1.37.0",
        answers: include_str!("../../../../tests/recordings/v1.37.0/answers.jsonl"),
        metrics: include_str!("../recorded/v1.37.0.metrics"),
    },
    Version {
        git: "v1.36.4",
        answers: include_str!("../../../../tests/recordings/v1.36.4/answers.jsonl"),
        metrics: include_str!("../recorded/v1.36.4.metrics"),
    },
];

/// The known versions, such as `1.37.0`; the first is the default.
pub(crate) fn versions() -> impl Iterator<Item = &'static str> {
    VERSIONS.iter().map(|version| &version.git[1..])
}

/// The namespace in which the answers were recorded.
const NAMESPACE: &str = "winconform-host-recorded";

/// The answers of one version.
#[derive(Debug)]
pub(crate) struct Recorded {
    version: Version,
    /// The answers by request; read at the first lookup, since most clients need none.
    answers: Option<BTreeMap<String, (u16, Value)>>,
}

#[derive(Deserialize)]
struct Line {
    verb: String,
    path: String,
    body: Value,
    status: u16,
    answer: Value,
}

impl Recorded {
    /// Returns the recordings of a version such as `1.37.0`, if it is known.
    pub(crate) fn by_version(version: &str) -> Option<Self> {
        let entry = VERSIONS.iter().find(|known| &known.git[1..] == version)?;
        Some(Self {
            version: *entry,
            answers: None,
        })
    }

    /// The version, such as `v1.37.0`.
    pub(crate) fn git_version(&self) -> &'static str {
        self.version.git
    }

    /// The server's metrics that show its feature gates.
    pub(crate) fn metrics(&self) -> &'static str {
        self.version.metrics
    }

    /// Returns the answer to a request with its status, if one is recorded. `verb` is `create` or
    /// `patch`, `path` has no query.
    pub(crate) fn answer(
        &mut self,
        (verb, path, body): (&str, &str, &Value),
        namespace: &str,
        now: Timestamp,
    ) -> Option<(u16, Value)> {
        let recorded = self.version.answers;
        let answers = self.answers.get_or_insert_with(|| read(recorded));
        let (code, answer) = answers.get(&key(verb, &path.replace(namespace, ""), body))?;
        let text = answer.to_string().replace(NAMESPACE, namespace);
        let mut answer: Value = serde_json::from_str(&text).ok()?;
        if answer["metadata"]["name"].is_string() {
            answer["metadata"]["creationTimestamp"] = json!(now);
        }
        Some((*code, answer))
    }
}

fn read(text: &str) -> BTreeMap<String, (u16, Value)> {
    let lines = text.lines().filter_map(|line| {
        let line: Line = serde_json::from_str(line).ok()?;
        let (path, _) = line.path.split_once('?').unwrap_or((&line.path, ""));
        let key = key(&line.verb, &path.replace(NAMESPACE, ""), &line.body);
        Some((key, (line.status, line.answer)))
    });
    lines.collect()
}

fn key(verb: &str, path: &str, body: &Value) -> String {
    format!("{verb} {path} {body}")
}

#[cfg(test)]
mod tests {
    use super::super::valid;
    use super::*;
    use crate::server::kinds::Kind;

    /// Rules of validation that the embedded server lacks; it takes such values.
    const NOT_VALIDATED: [&str; 2] = ["runAsUserName", "gmsaCredentialSpec"];

    /// Reason and field of each cause, without those of rules that the embedded server lacks.
    fn causes(status: &Value) -> Vec<(String, String)> {
        let causes = status["details"]["causes"].as_array();
        let causes = causes.into_iter().flatten().filter_map(|cause| {
            let (reason, field) = (cause["reason"].as_str()?, cause["field"].as_str()?);
            let lacks = NOT_VALIDATED.iter().any(|rule| field.contains(rule));
            (!lacks).then(|| (reason.to_owned(), field.to_owned()))
        });
        let mut causes: Vec<_> = causes.collect();
        causes.sort();
        causes
    }

    #[test]
    fn every_client_is_refused_what_a_real_server_refused() {
        let (mut refused, mut differ) = (0, Vec::new());
        for line in VERSIONS[0].answers.lines() {
            let line: Line = serde_json::from_str(line).expect("a line of the recording");
            let (path, _) = line.path.split_once('?').expect("a dry run");
            if line.verb != "create" {
                continue;
            }
            let plural = path.rsplit('/').next().expect("a path");
            let own = valid::check(Kind::named(plural), &line.body, None);
            let own = own.map_or_else(|refusal| causes(&refusal.status()), |()| Vec::new());
            let real = causes(&line.answer);
            refused += usize::from(!real.is_empty());
            if own != real {
                differ.push(format!("{plural}: {real:?}, not {own:?}"));
            }
        }
        assert!(
            differ.is_empty(),
            "{} differ, such as {}",
            differ.len(),
            differ[0]
        );
        assert!(refused > 400, "{refused} requests were refused");
    }

    #[test]
    fn all_that_is_recorded_is_answered_again() {
        for version in VERSIONS {
            let mut recorded = Recorded::by_version(&version.git[1..]).expect("it is known");
            let mut asked = 0;
            for line in version.answers.lines() {
                let line: Line = serde_json::from_str(line).expect("a line of the recording");
                let (path, _) = line.path.split_once('?').expect("a dry run");
                let path = path.replace(NAMESPACE, "mine");
                let asked_for = (&*line.verb, &*path, &line.body);
                let answer = recorded.answer(asked_for, "mine", Timestamp::UNIX_EPOCH);
                let (code, answer) = answer.unwrap_or_else(|| panic!("{path} {}", line.body));
                assert_eq!(code, line.status);
                assert_eq!(answer["message"].as_str().is_some(), code == 422);
                asked += 1;
            }
            assert!(asked > 900, "{} has {asked}", version.git);
            let other = serde_json::json!({"spec": {}});
            let other = ("create", "/api/v1/namespaces/mine/pods", &other);
            assert_eq!(recorded.answer(other, "mine", Timestamp::UNIX_EPOCH), None);
        }
        assert!(Recorded::by_version("1.2.3").is_none());
    }
}
