//! The commands that the tool runs in containers: a closed set, rendered for each system in one place.
//!
//! A command has typed fields and no free text: what a cluster says reaches a shell only through the checked
//! types of `values.rs`. `linux.rs` and `windows.rs` render it, and `forms.txt` lists every form; the
//! simulator has a function for each.

mod http;
mod linux;
mod values;
mod windows;

pub use http::{Curl, Host, HttpGet, HttpSession};
pub use values::{FilePath, ServiceName, Token, VariableName};
pub(crate) use windows::{NO, UNSET};

use std::net::IpAddr;

use crate::facts::Os;

/// A command for a container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// HTTP GETs, one after the other.
    HttpSession(HttpSession),
    /// Prints what one HTTP GET is answered: the system's curl, which ends with 6 where the name is not known.
    Get(HttpGet),
    /// Prints the version of a curl.
    CurlVersion(Curl),
    /// One ping of each target, after a session of curl where there is one.
    Pings {
        targets: Vec<IpAddr>,
        /// Separates the output of the pings; the hosts that answer must not be able to predict it.
        token: Token,
        /// The session that runs first and reads the input.
        after: Option<HttpSession>,
    },
    /// The search list of a Linux pod of agnhost (kubernetes, `test/images/agnhost/dns`).
    DnsSuffix,
    /// The address of Service `kubernetes`, and the load balancers of a Windows node's Host Networking Service, each
    /// behind a heading: without any, `hnsdiag` may print nothing. AKS' and RKE2's nodes have it (kubernetes issues
    /// 110849 and 135802).
    LoadBalancers,
    /// Prints to both streams and ends with 7, as kubernetes' `test/e2e/windows/volumes.go` reads both.
    Streams(Token),
    /// Prints a file, byte for byte as far as the console's code page lets it: `cmd /c type`.
    ReadFile(FilePath),
    /// Writes a line to a file; on Windows it then prints the file, and ends with 1 where there is none.
    WriteFile { path: FilePath, line: Token },
    /// Deletes a file, if it is there.
    DeleteFile(FilePath),
    /// Ends with 1 where the file does not exist, as the exec probes of Windows pods do.
    Exists(FilePath),
    /// Prints who may use a file: `icacls`, since the kubelet's modes do nothing on Windows.
    Access(FilePath),
    /// Ends with 0 where a folder has links, as the kubelet's `AtomicWriter` creates them; Windows only.
    Links(FilePath),
    /// Creates a file of a size: a `Memory` medium is a plain folder on Windows (mount-utils); Windows only.
    FillFile { path: FilePath, size: u64 },
    /// Prints the size of the volume that a folder is on; Windows only.
    FreeSpace(FilePath),
    /// Prints these variables, each as `NAME=VALUE`; `set` never interprets a value.
    Environment(Vec<VariableName>),
    /// Prints the user that the container runs as; Nano Server has it in its variable `USERNAME`.
    WhoAmI,
    /// Ends with 0 where the container has an adapter with the address, or one that begins like it, that a variable
    /// names (Microsoft, `ipconfig`), with 1 where it has none, and with [`UNSET`] where it lacks the variable or
    /// ipconfig fails; Windows only.
    HasAddress(VariableName),
    /// Asks the API server for its version at the address of Service `kubernetes`, and ends with 0 whatever it answers,
    /// with [`UNSET`] where the container lacks that address, and else as curl does; prints nothing; Windows only.
    ReachApiServer,
    /// Prints the names of the processes that the container sees (Microsoft, `tasklist`); Windows only.
    Processes,
    /// Ends with 0 where a process that the container sees has the word in its command line (Microsoft,
    /// `Win32_Process`), and with [`NO`] where none has; Windows only.
    FindProcess(Token),
    /// Ends with 0 where a program that is busy for four seconds gets less than three quarters of a processor, and
    /// with [`NO`] where it gets more; Windows only.
    CpuLimited,
    /// Ends with 0 where a program is refused so many MiB of memory, and with [`NO`] where it gets them; Windows
    /// only.
    MemoryLimited(u32),
    /// Prints the line that the pipe of the name [`PIPE`] has for who opens it, as the value of a variable, and ends with
    /// 1 where it cannot be opened; Windows only.
    ReadPipe,
    /// Prints a file of an emptyDir of a pod on the node, by the name of the volume and its path in there as a path of
    /// drive C, and ends with [`NO`] where no pod has one; Windows only.
    ReadVolume(FilePath),
    /// Ends with 2 where the container's Security Account Manager does not have the account; Windows only.
    FindUser(Token),
    /// Prints the domain of the container's credential spec (kubernetes, `test/e2e/windows/gmsa_kubelet.go`), and ends
    /// with another code than 0 where it has none; Windows only.
    ParentDomain,
    /// Ends with 0 where the server of the share that the variable [`ON_SHARE`] has a path on can be connected to at port 445,
    /// that of SMB; Windows only.
    ReachShare,
    /// Writes a line to the file that the variable [`ON_SHARE`] has the path of, prints it and deletes the file; ends with 1
    /// where there is none after it is written, and with [`NO`] where there is one after it is deleted. As in kubernetes'
    /// `test/e2e/windows/gmsa_full.go`; Windows only.
    WriteToShare(Token),
    /// Prints what the node's service manager knows of services: whether each runs, how it starts, and what
    /// happens when it fails, each behind a heading; Windows only.
    Services(Vec<ServiceName>),
    /// Prints the names of the pipes of a CSI proxy (kubernetes-csi/csi-proxy, README), behind a heading; Windows
    /// only.
    CsiProxyPipes,
    /// Prints the dynamic ports of TCP and UDP and the excluded ones, each behind a heading; Windows only.
    Ports,
    /// Prints the size of each page file, behind a heading; Windows only.
    PageFiles,
    /// Prints each volume that BitLocker knows, and whether it protects it, behind a heading; Windows only.
    Encryption,
    /// Has the node boot in five seconds, whatever runs there; Windows only.
    Reboot,
}

/// The name of the pipe that the run's server on a Windows node has, and the line that it writes.
const PIPE: &str = "winconform";

/// The variable with the path of a file on a share.
const ON_SHARE: &str = "wc_file";

/// What the heading of one of several outputs begins with.
pub(crate) const HEADING: &str = "@@ ";

/// A command for a container's runtime. Only [`Command::on`] creates one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExecRequest {
    argv: Vec<String>,
    stdin: Option<String>,
}

/// The error for a command that a system does not have.
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
        let stdin = match self {
            Self::HttpSession(session) => Some(session.config()),
            Self::Pings { after, .. } => after.as_ref().map(HttpSession::config),
            _ => None,
        };
        Ok(ExecRequest { argv, stdin })
    }

    /// Whether it prints something wherever it succeeds: if it does not, its output was lost on the way
    /// (kubernetes#124571).
    pub(crate) fn always_prints(&self) -> bool {
        let prints = matches!(
            self,
            Self::Get(_)
                | Self::ReadFile(_)
                | Self::WriteFile { .. }
                | Self::Access(_)
                | Self::Links(_)
                | Self::Environment(_)
                | Self::WhoAmI
                | Self::ParentDomain
                | Self::Processes
                | Self::ReadPipe
                | Self::ReadVolume(_)
                | Self::WriteToShare(_)
        );
        prints || self.is_told() && *self != Self::ReachApiServer
    }
}

impl ExecRequest {
    /// The program and its arguments; only a shell that they name reads them.
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The command line for people, with the text of a script that is sent encoded.
    pub(crate) fn line(&self) -> String {
        match self.argv.as_slice() {
            [program, .., flag, script] if flag == windows::ENCODED => {
                format!(
                    "{program} -Command {}",
                    windows::decoded(script).unwrap_or_default()
                )
            }
            argv => argv.join(" "),
        }
    }

    pub fn stdin(&self) -> Option<&str> {
        self.stdin.as_deref()
    }
}

/// A command with a line after it that says whether it succeeded; `space` goes before `||`.
fn marked(command: &str, space: &str, token: &Token, what: &str) -> String {
    format!("{command} && echo @@{token} {what} 0{space}|| echo @@{token} {what} 1")
}

/// The command of curl, if it comes first, and a ping of each target, each with its line after it; `None`
/// where the system has no such curl.
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
