//! What real programs do beside what the tool reads of it, or what simulated ones do. What differs has to be known,
//! and what is known has to differ. `ci/windows-programs/table` prints the counts.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::Deserialize;

/// Names the file to which tests append what they see; `ci/windows-programs/run` makes it.
const FILE: &str = "WINCONFORM_TEST_TALLY";

/// In what these programs are known to differ, by which nothing is judged.
const KNOWN: &str = include_str!("not-windows.yaml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    programs: Vec<String>,
    behaviour: String,
    /// A part of what is seen.
    seen: String,
    /// What it means, and what is so on Windows.
    what: String,
    because: String,
}

/// A look at a program.
struct Sight {
    program: String,
    behaviour: String,
    difference: Option<String>,
}

pub(crate) struct Tally {
    /// The part of the table.
    part: &'static str,
    sights: Vec<Sight>,
}

impl Tally {
    pub(crate) fn new(part: &'static str) -> Self {
        let sights = Vec::new();
        Self { part, sights }
    }

    pub(crate) fn note(&mut self, program: &str, behaviour: &str, difference: Option<String>) {
        self.sights.push(Sight {
            program: program.to_owned(),
            behaviour: behaviour.to_owned(),
            difference,
        });
    }

    /// Hands the counts over, and fails unless exactly what is known differs.
    pub(crate) fn end(self) {
        assert!(!self.sights.is_empty(), "something is seen");
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
        for sight in &self.sights {
            let (program, behaviour) = (&sight.program, &sight.behaviour);
            let is_known = |text: &String| {
                let mut known = known.iter();
                known.any(|known| known.is_of(sight) && text.contains(&known.seen))
            };
            let word = match &sight.difference {
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
                line(&["listed", program, behaviour, &known.what, &known.because]);
                let of_it = |sight: &&Sight| known.is_of(sight) && sight.program == *program;
                let mut texts = self.sights.iter().filter(of_it).map(|it| &it.difference);
                let differs =
                    |text: &Option<String>| text.as_ref().is_some_and(|it| it.contains(seen));
                if texts.clone().next().is_some() && !texts.any(differs) {
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
    fn is_of(&self, sight: &Sight) -> bool {
        self.behaviour == sight.behaviour && self.programs.contains(&sight.program)
    }
}

#[test]
fn what_differs_is_known_and_what_is_known_differs() {
    let known = "[{programs: [a, b], behaviour: ends, seen: late, what: is late, because: slow}]";
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
}
