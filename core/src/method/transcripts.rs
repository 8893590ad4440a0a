//! Output of real programs, in tests/transcripts, as the test methods read it.

use std::io::Write;
use std::path::Path;

use serde::Deserialize;

use super::StartFailure;
use super::exchange::PingReply;
use crate::method::network::reach::ReachAnswer;
use crate::method::network::{curl, ping};

/// The fields of a transcript that are read here.
#[derive(Debug, Deserialize)]
struct Transcript {
    program: String,
    command: Vec<String>,
    text: String,
    code: Option<i64>,
    /// The word of the expected result.
    reads: Option<String>,
}

impl Transcript {
    /// The word of the result that the test methods read.
    fn read(&self) -> Option<String> {
        let word = match self.program.as_str() {
            "curl" => {
                let (code, text) = curl::failures(&self.text).next()?;
                curl::classify(code, &text)?.as_str()
            }
            "ping" | "ping, Japanese" => {
                let target = self.command.last()?;
                // The text omits ping's first line and its last lines, which name the target
                let text = self.text.replace('…', &format!("\n{target}\n"));
                let answered = self.code == Some(0);
                match ping::read(target.parse().ok()?, &PingReply { answered, text }).ok()? {
                    ReachAnswer::Answered(_) => "answered",
                    ReachAnswer::Failed { class, .. } => class.as_str(),
                }
            }
            "cmd" | "containerd exec" => curl::is_missing(&self.text).then_some("tool-missing")?,
            _ => StartFailure::from_words(&self.text)?.as_str(),
        };
        Some(word.to_owned())
    }
}

/// The transcripts of a folder, with their names.
fn all(folder: &Path) -> Vec<(String, Transcript)> {
    let files = std::fs::read_dir(folder).expect("the folder of transcripts");
    let paths = files.map(|file| file.expect("a file").path());
    let json = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
    let each = json.map(|path| {
        let text = std::fs::read_to_string(&path).expect("text");
        let own = serde_json::from_str(&text).expect("a transcript");
        (path.display().to_string(), own)
    });
    each.collect()
}

#[test]
fn every_text_is_read_as_what_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/transcripts");
    let mut read = 0;
    for (name, own) in all(&folder) {
        if let Some(expected) = &own.reads {
            assert_eq!(own.read().as_ref(), Some(expected), "{name}");
            read += 1;
        }
    }
    assert_eq!(read, READ);
}

/// Reads what ci/transcripts/record-images.ps1 recorded in images on a Windows machine: each failure of a
/// curl is one that the tool knows. Nothing answers there, so that each image with a curl has some.
#[test]
fn failures_in_recordings_are_known() {
    let Some(folder) = std::env::var_os("WINCONFORM_RECORDED") else {
        // This bypasses the test harness, which captures what passing tests print
        let why = "not run: failures_in_recordings_are_known: WINCONFORM_RECORDED names no folder";
        writeln!(std::io::stderr(), "{why}").expect("stderr is open");
        return;
    };
    let recorded = all(Path::new(&folder));
    let curls = recorded.iter().filter(|(_, own)| own.program == "curl");
    let failures: Vec<_> = curls
        .flat_map(|(name, own)| curl::failures(&own.text).map(move |failure| (name, failure)))
        .collect();
    assert!(!failures.is_empty(), "no failure of a curl is recorded");
    let unknown = failures
        .iter()
        .filter(|(_, (code, text))| curl::classify(*code, text).is_none());
    let unknown: Vec<_> = unknown
        .map(|(name, failure)| format!("{name}: {failure:?}"))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// How many transcripts have an expected result; with fewer, some text would no longer be read.
const READ: usize = 16;
