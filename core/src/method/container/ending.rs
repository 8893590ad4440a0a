//! How a program ends, and its reading from YAML.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::document::{Decoder, Node};

/// How a program ends.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ending {
    /// Its exit code; `None` for any but 0.
    pub code: Option<i64>,
    /// What its output contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prints: Vec<String>,
    /// What its error stream contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complains: Vec<String>,
    /// What neither of them contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
}

impl Ending {
    /// Reads `{code: 0, prints: […], complains: […], lacks: […]}`, where `code: other` is any but 0.
    pub(crate) fn read(decoder: &mut Decoder<'_>, node: &Node) -> Option<Self> {
        let mut fields = decoder.fields(node, "how a program ends")?;
        let code = fields.or(decoder, "code", Some(0), |decoder, node| {
            match node.to_json() {
                Json::String(word) if word == "other" => Some(None),
                _ => {
                    let code = decoder.whole(node, "`code`", (0, u32::MAX));
                    code.map(|code| Some(i64::from(code)))
                }
            }
        });
        let prints = fields.or(decoder, "prints", Vec::new(), read_words);
        let complains = fields.or(decoder, "complains", Vec::new(), read_words);
        let lacks = fields.or(decoder, "lacks", Vec::new(), read_words);
        fields.finish(decoder);
        Some(Self {
            code: code?,
            prints: prints?,
            complains: complains?,
            lacks: lacks?,
        })
    }
}

/// Reads a list of texts.
pub(crate) fn read_words(decoder: &mut Decoder<'_>, node: &Node) -> Option<Vec<String>> {
    decoder.each(node, "a list of texts", |decoder, item| {
        decoder.text(item, "a text").map(str::to_owned)
    })
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "exit code {code}"),
            None => f.write_str("an exit code other than 0"),
        }?;
        for (how, words) in [
            ("printing", &self.prints),
            ("complaining", &self.complains),
            ("without", &self.lacks),
        ] {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            if !words.is_empty() {
                write!(f, ", {how} {}", words.join(" and "))?;
            }
        }
        Ok(())
    }
}
