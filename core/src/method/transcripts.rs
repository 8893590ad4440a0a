//! Output of real programs, in tests/transcripts, as the test methods read it.

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

#[test]
fn every_text_is_read_as_what_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/transcripts");
    let mut read = 0;
    for file in std::fs::read_dir(folder).expect("the folder of transcripts") {
        let path = file.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("text");
        let own: Transcript = serde_json::from_str(&text).expect("a transcript");
        if let Some(expected) = &own.reads {
            assert_eq!(own.read().as_ref(), Some(expected), "{}", path.display());
            read += 1;
        }
    }
    assert_eq!(read, READ);
}

/// How many transcripts have an expected result; with fewer, some text would no longer be read.
const READ: usize = 16;
