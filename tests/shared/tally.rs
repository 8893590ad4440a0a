//! What real programs do beside what the tool reads of it, or what simulated ones do. What differs has to be known,
//! and what is known has to differ. `ci/windows-programs/table` prints the counts.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::Deserialize;

/// Names the file to which tests append what they see; `ci/windows-programs/run` makes it.
const FILE: &str = "WINCONFORM_TEST_TALLY";

/// In what these programs are known to differ, by which nothing is judged.
const KNOWN: &str = include_str!("../../ci/windows-programs/not-windows.yaml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Known {
    programs: Vec<String>,
    behaviour: String,
    /// A part of what is seen.
    seen: String,
    /// What it means, and what is so on Windows.
    what: String,
    because: String,
    /// It need not be seen.
    #[serde(default)]
    now_and_then: bool,
}

/// What one program was seen to do once.
struct Observation {
    program: String,
    behaviour: String,
    difference: Option<String>,
}

pub(crate) struct Tally {
    /// The part of the table.
    part: &'static str,
    observations: Vec<Observation>,
}

impl Tally {
    pub(crate) fn new(part: &'static str) -> Self {
        let observations = Vec::new();
        Self { part, observations }
    }

    pub(crate) fn note(&mut self, program: &str, behaviour: &str, difference: Option<String>) {
        self.observations.push(Observation {
            program: program.to_owned(),
            behaviour: behaviour.to_owned(),
            difference,
        });
    }

    /// Hands the counts over, and fails unless exactly what is known differs.
    pub(crate) fn end(self) {
        assert!(!self.observations.is_empty(), "something is seen");
        let known: Vec<Known> = serde_saphyr::from_str(KNOWN).expect("a list of differences");
        let (lines, wrong) = self.judged(&known);
        if let Some(path) = std::env::var_os(FILE) {
            let file = std::fs::OpenOptions::new().append(true).open(path);
            let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
            written.expect("the file is there");
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Lines for the table, and what is wrong.
    fn judged(&self, known: &[Known]) -> (String, Vec<String>) {
        let (mut lines, mut wrong) = (String::new(), Vec::new());
        let mut line = |fields: &[&str]| writeln!(lines, "{}", fields.join("\t")).expect("a text");
        for observation in &self.observations {
            let (program, behaviour) = (&observation.program, &observation.behaviour);
            let is_known = |text: &String| {
                let mut known = known.iter();
                known.any(|known| known.is_of(observation) && text.contains(&known.seen))
            };
            let word = match &observation.difference {
                None => "agrees",
                Some(text) if is_known(text) => "known",
                Some(text) => {
                    wrong.push(format!("{program}, {behaviour}: {text}"));
                    "wrong"
                }
            };
            line(&[word, self.part, program, behaviour]);
        }
        for known in known {
            let (behaviour, seen) = (&known.behaviour, &known.seen);
            for program in &known.programs {
                let of_it = |it: &&Observation| known.is_of(it) && it.program == *program;
                let mut texts = self
                    .observations
                    .iter()
                    .filter(of_it)
                    .map(|it| &it.difference);
                let differs =
                    |text: &Option<String>| text.as_ref().is_some_and(|it| it.contains(seen));
                let is_run = texts.clone().next().is_some();
                // One is enough: what curl prints ends lines in text mode only where there are some
                let is_seen = texts.any(differs);
                if is_seen || !known.now_and_then {
                    line(&["listed", program, behaviour, &known.what, &known.because]);
                }
                if is_run && !is_seen && !known.now_and_then {
                    wrong.push(format!(
                        "{program}, {behaviour}: {seen:?} is no longer seen"
                    ));
                }
            }
        }
        (lines, wrong)
    }
}

impl Known {
    fn is_of(&self, observation: &Observation) -> bool {
        self.behaviour == observation.behaviour && self.programs.contains(&observation.program)
    }
}

#[test]
fn what_differs_is_known_and_what_is_known_differs() {
    let known = "[{programs: [a, b], behaviour: ends, seen: late, what: is late, because: slow},
        {programs: [d], behaviour: ends, seen: late, what: is late, because: slow, now-and-then: true}]";
    let known: Vec<Known> = serde_saphyr::from_str(known).expect("a list of differences");
    let wrong = |program, difference: Option<&str>| {
        let mut tally = Tally::new("any");
        tally.note(program, "ends", difference.map(str::to_owned));
        tally.judged(&known).1
    };
    let none: [&str; 0] = [];
    assert_eq!(wrong("a", Some("too late")), none);
    assert_eq!(wrong("c", None), none);
    assert_eq!(wrong("c", Some("too late")), ["c, ends: too late"]);
    assert_eq!(wrong("a", None), ["a, ends: \"late\" is no longer seen"]);
    let early = ["b, ends: early", "b, ends: \"late\" is no longer seen"];
    assert_eq!(wrong("b", Some("early")), early);
    assert_eq!(wrong("d", None), none);
    assert_eq!(wrong("d", Some("too late")), none);
}
