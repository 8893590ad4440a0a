//! `agnhost connect`: prints nothing on success, else a word on the error stream, with exit code 1.
//!
//! Source: Kubernetes, test/images/agnhost/connect/connect.go at 1.37.0; tests compare the Linux texts with
//! the real program.

use std::net::SocketAddr;
use std::time::Duration;

use crate::program::Ran;
use crate::program::go;
use crate::program::web::net::{Link, Net};
use crate::topology::Os;

/// Runs `agnhost connect [--timeout=DURATION] ADDRESS:PORT`.
pub(crate) fn run(args: &[String], net: &dyn Net) -> Option<Ran> {
    let (timeout, to) = match args {
        [to] => (None, to),
        [timeout, to] => (Some(seconds(timeout.strip_prefix("--timeout=")?)?), to),
        _ => return None,
    };
    let to: SocketAddr = to.parse().ok()?;
    let Err(failed) = go::dial(net, to) else {
        return Some(Ran {
            took: Duration::from_millis(2),
            ..Ran::default()
        });
    };
    let word = match (&failed.link, net.os()) {
        (Link::Refused, Os::Linux) => "REFUSED".to_owned(),
        // On Windows too: `Timeout()` is true for WSAETIMEDOUT (syscall/types_windows.go)
        (Link::TimedOut, _) => "TIMEOUT".to_owned(),
        // syscall.ECONNREFUSED is an invented number on Windows, so connect.go does not recognise a refusal
        // there
        _ => format!("OTHER: {}", failed.words),
    };
    let (word, took) = match timeout {
        Some(limit) if limit < failed.took => ("TIMEOUT".to_owned(), limit),
        _ => (word, failed.took),
    };
    let waited = Ran {
        took,
        ..Ran::default()
    };
    Some(waited.then(Ran::complains(word + "\n", 1)))
}

/// `time.ParseDuration` for whole seconds.
fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.strip_suffix('s')?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
