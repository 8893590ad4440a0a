//! The web server of the user guide.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::script::What;
use super::super::windows::words;
use super::super::{Ran, Refusal, Started};
use crate::world::Page;

/// The listener of a script. Kubernetes un-escapes `$$`, so a script that still has it was
/// passed on by something else, and PowerShell would fail on it: `$$` is the last token of the line
/// before.
pub(super) fn http_listener(script: &str) -> Started {
    if script.contains("$$") {
        return Started::Ended(Ran::complains(
            "The property 'Prefixes' cannot be found on this object.\r\n",
            1,
        ));
    }
    let prefix = script
        .split_once("Prefixes.Add(")
        .and_then(|(_, rest)| rest.split_once(')'));
    let port = prefix.and_then(|(address, _)| {
        let digits: String = address
            .rsplit_once(':')?
            .1
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    });
    match port {
        Some(port) => Started::Serves {
            listening: BTreeMap::from([(port, Page::WinWebserver)]),
            listening_udp: BTreeMap::new(),
            // PowerShell starts for seconds before it listens, and without a probe the pod is Ready
            // by then
            warm_up: Duration::from_secs(4) + slept_before(script),
            prints: format!("Listening at http://*:{port}/\r\n"),
        },
        None => Refusal::not_simulated("an HttpListener without a prefix"),
    }
}

/// What a listener's script sleeps before it starts to listen.
fn slept_before(script: &str) -> Duration {
    let lower = script.to_ascii_lowercase();
    let before = lower.split(".start()").next().unwrap_or_default();
    let statements = super::statements::parse(before).unwrap_or_default();
    let commands = statements.iter().flat_map(|element| &element.commands);
    let sleeps = commands.filter_map(|command| match &command.what {
        What::Simple(statement) => Some(words(statement)),
        _ => None,
    });
    let sleeps = sleeps.filter(|words| words.first().is_some_and(|word| word == "start-sleep"));
    sleeps.map(|words| super::wait(&words[1..]).slept).sum()
}
