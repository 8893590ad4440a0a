//! What the tool runs in containers: a closed set, rendered for each system in one place.
//!
//! A command has typed fields and no free text, so nothing that a cluster says reaches a shell raw
//! (`values.rs` has what may). `linux.rs` and `windows.rs` render it, and `forms.txt` lists every form;
//! the simulator has a function for each.

mod http;
mod linux;
mod values;
mod windows;

pub use http::{Curl, Host, HttpGet, HttpSession};
pub use values::{DomainName, FilePath, ServiceName, Token, VariableName};

use std::net::IpAddr;

use crate::facts::Os;

/// What is run in a container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// HTTP GETs, one after the other.
    HttpSession(HttpSession),
    /// One ping of each target, after a session of curl where there is one.
    Pings {
        targets: Vec<IpAddr>,
        /// Divides what each ping prints; must be unpredictable to whoever answers.
        token: Token,
        /// What goes before, and reads the input.
        after: Option<HttpSession>,
    },
    /// The search list of a Linux pod of agnhost (kubernetes, `test/images/agnhost/dns`).
    DnsSuffix,
    /// The load balancers of a Windows node's Host Networking Service; `hnsdiag` is of Windows itself, from
    /// Windows Server 2019 on.
    LoadBalancers,
    /// Prints to both streams and ends with 7, as kubernetes' `test/e2e/windows/volumes.go` reads both.
    Streams(Token),
    /// Prints the lines of its input that have the token: `findstr` reads standard input without a file.
    Filter { token: Token, input: String },
    /// Prints a file, byte for byte as far as the console's code page lets it: `cmd /c type`.
    ReadFile(FilePath),
    /// Writes a line. Without rights `cmd` ends with 1 (kubernetes, `test/e2e/windows/volumes.go`).
    WriteFile { path: FilePath, line: Token },
    /// Deletes a file, if it is there.
    DeleteFile(FilePath),
    /// Ends with 1 where there is no such file: the exec probes of Windows pods are written so.
    Exists(FilePath),
    /// Prints a file's SHA-256, which no code page distorts.
    HashFile(FilePath),
    /// Tells who may use a file: `icacls`, since the kubelet's modes do nothing on Windows.
    Access(FilePath),
    /// Ends with 0 where a folder has links, as `AtomicWriter` of the kubelet makes them; Windows alone.
    Links(FilePath),
    /// Makes a file of a size: a `Memory` medium is a plain folder on Windows (mount-utils); Windows alone.
    FillFile { path: FilePath, size: u64 },
    /// Tells the size of the volume that a folder is on; Windows alone.
    FreeSpace(FilePath),
    /// Makes a folder lead to another (containerd passes no mount propagation on); Windows alone.
    Junction { link: FilePath, target: FilePath },
    /// Prints these variables, each as `NAME=VALUE`; `set` never reads what a value says.
    Environment(Vec<VariableName>),
    /// Tells whom the container runs as. Nano Server tells it by its variable `USERNAME`.
    WhoAmI,
    /// Tells the host's name, which a `HostProcess` container shares with its node.
    HostName,
    /// Tells the addresses that are seen from inside (Microsoft, `ipconfig`); Windows alone.
    Addresses,
    /// Tells the names of the processes that are seen from inside (Microsoft, `tasklist`); Windows alone.
    Processes,
    /// Tells how each process that is seen from inside was begun: `Win32_Process`; Windows alone.
    CommandLines,
    /// Makes an account, which the Security Account Manager of this container alone has; Windows alone.
    AddUser(Token),
    /// Ends with 2 where there is no such account; Windows alone.
    FindUser(Token),
    /// Writes to the event log, which `LogMonitor` passes on; Windows alone.
    LogEvent(Token),
    /// Tells what a gMSA made of the domain (kubernetes, `test/e2e/windows/gmsa_kubelet.go`); Windows alone.
    Domain(DomainQuestion),
    /// Tells what the node's service manager knows of a service; Windows alone.
    Service {
        name: ServiceName,
        question: ServiceQuestion,
    },
}

/// What `nltest` is asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DomainQuestion {
    /// The domain of the credential spec.
    Parent,
    /// Whether the last contact with it went well.
    Query,
    /// Whether the secure channel to it holds.
    Channel(DomainName),
}

/// What `sc` is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServiceQuestion {
    /// How it is begun.
    Config,
    /// Whether it runs.
    State,
    /// What happens when it fails.
    Failure,
}

/// A command as it goes to a container's runtime. Only [`Command::on`] makes one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExecRequest {
    argv: Vec<String>,
    stdin: Option<String>,
}

/// A command that a system does not have.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{command} cannot be run on {os:?}")]
pub struct NotOn {
    command: String,
    os: Os,
}

impl Command {
    /// The command as this system runs it.
    pub fn on(&self, os: Os) -> Result<ExecRequest, NotOn> {
        let argv = match os {
            Os::Linux => linux::argv(self),
            Os::Windows => windows::argv(self),
        };
        let argv = argv.ok_or_else(|| NotOn {
            command: format!("{self:?}"),
            os,
        })?;
        let stdin = self.stdin();
        Ok(ExecRequest { argv, stdin })
    }

    fn stdin(&self) -> Option<String> {
        match self {
            Self::HttpSession(session) => Some(session.config()),
            Self::Pings { after, .. } => after.as_ref().map(HttpSession::config),
            Self::Filter { input, .. } => Some(input.clone()),
            _ => None,
        }
    }
}

impl ExecRequest {
    /// The program and its arguments; no shell reads them but the one that it may name.
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    pub fn stdin(&self) -> Option<&str> {
        self.stdin.as_deref()
    }
}

/// A command with a line behind it that tells whether it ended well; `space` stands before `||`.
fn marked(command: &str, space: &str, token: &Token, what: &str) -> String {
    format!("{command} && echo @@{token} {what} 0{space}|| echo @@{token} {what} 1")
}

/// Curl's command, where it comes first, and a ping of each target, each with its line behind it;
/// `None` where the system has no such curl.
fn pings(
    os: Os,
    targets: &[IpAddr],
    token: &Token,
    after: Option<&HttpSession>,
    space: &str,
    ping: fn(&IpAddr) -> String,
) -> Option<Vec<String>> {
    let mut commands = Vec::new();
    if let Some(session) = after {
        commands.push(marked(&session.argv(os)?.join(" "), space, token, "curl"));
    }
    let each = targets.iter().enumerate();
    commands.extend(each.map(|(at, target)| marked(&ping(target), space, token, &at.to_string())));
    Some(commands)
}

/// A program with its arguments.
fn line<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

#[cfg(test)]
mod tests;
