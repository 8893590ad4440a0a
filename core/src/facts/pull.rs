//! Pulls of images, from the kubelet's own words.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// A pull of an image that the kubelet reported in an event with the reason `Pulled`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PullFact {
    /// The image, as the pod names it.
    pub image: String,
    pub node: String,
    /// How long the pull took, in milliseconds.
    pub took: u64,
}

impl PullFact {
    /// How many pulls are kept: of each image and node the longest, and of these the longest.
    pub const SHOWN: usize = 500;

    /// Reads the message of an event of a node; `None` when it reports no pull, such as that the image was
    /// present already.
    ///
    /// The words are those of kubernetes `pkg/kubelet/images/image_manager.go`: `Successfully
    /// pulled image "x" in 1.2s (1.3s including waiting). Image size: 5 bytes.`, before 1.27
    /// without the brackets, before 1.31 without the size.
    pub fn read(message: &str, node: &str) -> Option<Self> {
        let rest = message.split_once("Successfully pulled image \"")?.1;
        let (image, rest) = rest.split_once("\" in ")?;
        Some(Self {
            image: image.to_owned(),
            node: node.to_owned(),
            took: duration(rest.split(' ').next()?)?,
        })
    }
}

/// Milliseconds of a duration as Go writes it (`time.Duration.String`): `1m2.3s`, `890ms`, `0s`.
fn duration(text: &str) -> Option<u64> {
    let took: SignedDuration = text.trim_end_matches('.').parse().ok()?;
    u64::try_from(took.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_every_kubelet_are_read() {
        let read = |text: &str| {
            let pull = PullFact::read(text, "w1")?;
            Some((pull.image, pull.took))
        };
        let image = || "mcr.microsoft.com/windows/servercore:ltsc2022".to_owned();
        for (text, expected) in [
            (
                "Successfully pulled image \"mcr.microsoft.com/windows/servercore:ltsc2022\" in \
                 1m44.643s (2m1s including waiting). Image size: 1169083618 bytes.",
                (image(), 104_643),
            ),
            (
                "Successfully pulled image \"mcr.microsoft.com/windows/servercore:ltsc2022\" in \
                 890ms (890ms including waiting)",
                (image(), 890),
            ),
            (
                "Successfully pulled image \"mcr.microsoft.com/windows/servercore:ltsc2022\" in \
                 1h0m2.5000123s",
                (image(), 3_602_500),
            ),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
        for text in [
            "Container image \"x\" already present on machine",
            "Successfully pulled image \"x\"",
            "Successfully pulled image \"x\" in a while",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_gos() {
        for (text, ms) in [
            ("0s", 0),
            ("999.9µs", 0),
            ("1.5s", 1500),
            ("2h3m4s", 7_384_000),
        ] {
            assert_eq!(duration(text), Some(ms), "{text}");
        }
        for text in ["", "s", "5", "1.2.3s", "-1s", "99999999999999999999s", "1d"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
