//! Commands as Linux runs them: GNU's and busybox' programs, which agnhost's image has.

use std::net::IpAddr;

use super::{Command, FilePath, VariableName, line, pings};
use crate::facts::Os;

/// A command's program and arguments; `None` for a command of Windows only.
pub(super) fn argv(command: &Command) -> Option<Vec<String>> {
    let path = |path: &'_ FilePath| path.on(Os::Linux).map(str::to_owned);
    Some(match command {
        Command::HttpSession(session) => session.argv(Os::Linux)?,
        Command::Get(get) => get.argv(Os::Linux)?,
        Command::CurlVersion(curl) => curl.version(Os::Linux)?,
        Command::Pings {
            targets,
            token,
            after,
        } => {
            let after = after.as_ref();
            sh(&pings(Os::Linux, targets, token, after, " ", ping)?.join("; "))
        }
        Command::DnsSuffix => line(["/agnhost", "dns-suffix"]),
        Command::Streams(token) => sh(&format!("echo {token}; echo E-{token} 1>&2; exit 7")),
        Command::ReadFile(file) => line(["cat", &path(file)?]),
        Command::WriteFile { path: file, line } => sh(&format!("echo {line} > {}", path(file)?)),
        Command::DeleteFile(file) => line(["rm", "-f", &path(file)?]),
        Command::Exists(file) => line(["test", "-e", &path(file)?]),
        Command::Access(file) => line(["stat", "-c", "%a %u %g", &path(file)?]),
        Command::Environment(names) => environment(names),
        Command::WhoAmI => line(["id"]),
        _ => return None,
    })
}

fn sh(script: &str) -> Vec<String> {
    line(["sh", "-c", script])
}

/// `-c 1 -W 3`: one request, three seconds.
fn ping(target: &IpAddr) -> String {
    format!("ping -c 1 -W 3 {target} 2>&1")
}

/// `printenv` prints values without the names of their variables.
fn environment(names: &[VariableName]) -> Vec<String> {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    sh(&format!("env | grep -E '^({})='", names.join("|")))
}
