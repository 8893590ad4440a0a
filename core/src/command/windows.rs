//! Commands as Windows runs them: programs by their full paths, `cmd` where one program alone cannot do it,
//! and PowerShell encoded, since a `HostProcess` exec passes through another `cmd`.
//!
//! The runtime puts an argument with a space into double quotes and escapes double quotes inside it, which
//! `cmd` does not understand: so no argument has double quotes.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{
    Command, FilePath, HEADING, ON_SHARE, PIPE, ServiceName, Token, VariableName, line, pings,
};
use crate::facts::Os;

/// A command's program and arguments; `None` for a command of Linux only.
pub(super) fn argv(command: &Command) -> Option<Vec<String>> {
    let path = |path: &'_ FilePath| path.on(Os::Windows).map(str::to_owned);
    Some(match command {
        Command::HttpSession(session) => session.argv(Os::Windows)?,
        Command::Get(get) => get.argv(Os::Windows)?,
        Command::CurlVersion(curl) => curl.version(Os::Windows)?,
        Command::Pings {
            targets,
            token,
            after,
        } => {
            let after = after.as_ref();
            // `echo x || y` prints the space, too
            cmd(&pings(Os::Windows, targets, token, after, "", ping)?.join("& "))
        }
        Command::DnsSuffix => return None,
        Command::LoadBalancers => {
            let hnsdiag = "C:\\Windows\\System32\\hnsdiag.exe list loadbalancers";
            cmd(&format!(
                "echo {HEADING}Service& echo %{KUBERNETES}%& echo {HEADING}load balancers& {hnsdiag}"
            ))
        }
        Command::Streams(token) => cmd(&format!("echo {token}& echo E-{token} 1>&2& exit 7")),
        Command::ReadFile(file) => cmd(&format!("type {}", path(file)?)),
        // A digit before `>` would be the number of a stream
        // A redirection that fails leaves the exit code as it is; `type` sets it
        Command::WriteFile { path: file, line } => {
            let file = path(file)?;
            cmd(&format!(">{file} echo {line}& type {file}"))
        }
        Command::DeleteFile(file) => cmd(&format!("del /q {}", path(file)?)),
        Command::Exists(file) => cmd(&format!("if not exist {} exit 1", path(file)?)),
        Command::Access(file) => system("icacls", [&path(file)?]),
        Command::Links(folder) => cmd(&format!("dir /al {}", path(folder)?)),
        // `fsutil` refuses a file that is there, as at a second attempt
        Command::FillFile { path: file, size } => {
            let file = path(file)?;
            let fsutil = "C:\\Windows\\System32\\fsutil.exe";
            cmd(&format!(
                "del /q {file}& {fsutil} file createnew {file} {size}"
            ))
        }
        Command::FreeSpace(folder) => system("fsutil", ["volume", "diskfree", &path(folder)?]),
        Command::Environment(names) => environment(names),
        Command::WhoAmI => system("whoami", []),
        Command::HasAddress(variable) => {
            let system32 = "C:\\Windows\\System32";
            let find = format!("{system32}\\findstr.exe /l %{variable}%");
            let ipconfig = format!("{system32}\\ipconfig.exe");
            // How ipconfig ends is lost in the pipe
            let look = format!("({ipconfig} >NUL|| exit {UNSET})& {ipconfig}| {find}");
            cmd(&format!("if defined {variable} ({look}) else exit {UNSET}"))
        }
        Command::ReachApiServer => cmd(&reach_api_server()),
        // Without a heading, which is in the system's language
        Command::Processes => system("tasklist", ["/fo", "csv", "/nh"]),
        Command::FindProcess(word) => powershell(&find_process(word)),
        Command::CpuLimited => powershell(&cpu_limited()),
        Command::MemoryLimited(mebibytes) => powershell(&memory_limited(*mebibytes)),
        // PowerShell's client of pipes finds none that a container mounts (dotnet/corefx#24594). `set` ends with 1 where
        // there is no such variable
        Command::ReadPipe => cmd(&format!("set /p wc_pipe=<\\\\.\\pipe\\{PIPE}& set wc_pipe")),
        Command::ReadVolume(file) => powershell(&read_volume(path(file)?.strip_prefix("C:")?)),
        Command::FindUser(token) => system("net", ["user", &format!("wc-{}", token.short())]),
        Command::ParentDomain => system("nltest", ["/PARENTDOMAIN"]),
        Command::ReachShare => powershell(&reach_share()),
        Command::WriteToShare(line) => {
            let file = format!("%{ON_SHARE}%");
            let write = format!(">{file} echo {line}& (if not exist {file} exit 1)");
            // `del` ends with 0 whatever it deletes
            cmd(&format!(
                "{write}& type {file}& del /q {file}& if exist {file} exit {NO}"
            ))
        }
        Command::Services(names) => {
            let of =
                |name: &ServiceName| ["queryex", "qc", "qfailure"].map(|it| format!("{it} {name}"));
            headed("sc", &names.iter().flat_map(of).collect::<Vec<_>>())
        }
        Command::CsiProxyPipes => cmd(&format!("echo {HEADING}pipes& {PIPES}")),
        Command::Ports => {
            let of = |protocol| {
                [
                    format!("int ipv4 show dynamicport {protocol}"),
                    format!("int ipv4 show excludedportrange protocol={protocol}"),
                ]
            };
            headed("netsh", &["tcp", "udp"].map(of).concat())
        }
        // Later, so that the exec ends before the node does
        Command::Reboot => system("shutdown", ["/r", "/f", "/t", "5"]),
        Command::PageFiles => powershell(&page_files()),
        Command::Encryption => powershell(&encryption()),
    })
}

/// What a command ends with that lacks the variable or the program that it needs.
pub(crate) const UNSET: i64 = 64;

/// The variable with the address of Service `kubernetes`, which the kubelet gives each container
/// (kubernetes, `pkg/kubelet/kubelet_pods.go`, `masterServices`).
const KUBERNETES: &str = "KUBERNETES_SERVICE_HOST";

/// The variable with its port.
const KUBERNETES_PORT: &str = "KUBERNETES_SERVICE_PORT";

/// Whose certificate it is does not matter, nor what it answers; no URL has an address of IPv6 without brackets. Ends
/// before Windows gives up connecting, after 21 s.
fn reach_api_server() -> String {
    let curl = "C:\\Windows\\System32\\curl.exe -q -sS -k --noproxy * -m 20 -o NUL";
    let url = format!("https://%{KUBERNETES}%:%{KUBERNETES_PORT}%/version");
    format!("if defined {KUBERNETES} ({curl} {url}) else exit {UNSET}")
}

/// The last backslash makes a folder of the pipes, which `dir` lists only as a whole.
const PIPES: &str = "dir /b \\\\.\\pipe\\\\| C:\\Windows\\System32\\findstr.exe /b csi-proxy-";

/// A program of Windows itself with each of these arguments, one run after the other, each behind a heading.
fn headed(program: &str, arguments: &[String]) -> Vec<String> {
    let run = |arguments: &String| {
        format!("echo {HEADING}{arguments}& C:\\Windows\\System32\\{program}.exe {arguments}")
    };
    cmd(&arguments.iter().map(run).collect::<Vec<_>>().join("& "))
}

/// What a script ends with whose answer is no; PowerShell ends with 1 where a script fails.
pub(crate) const NO: i64 = 2;

/// The script prints no command line, which may hold secrets. PowerShell's own command line has the script encoded.
fn find_process(word: &Token) -> String {
    format!(
        "if (Get-CimInstance Win32_Process | Where-Object {{ $_.CommandLine -like '*{word}*' }}) \
         {{ exit 0 }} else {{ exit {NO} }}"
    )
}

/// The kubelet limits a container's share of all processors of its node (kubernetes,
/// `pkg/kubelet/kuberuntime/kuberuntime_container_windows.go`). Old kubelets count 64 processors at most, so that a limit
/// of 300m is less than three quarters of one on nodes of up to 160.
fn cpu_limited() -> String {
    format!(
        "$own = [Diagnostics.Process]::GetCurrentProcess(); $before = $own.TotalProcessorTime; \
         $clock = [Diagnostics.Stopwatch]::StartNew(); while ($clock.ElapsedMilliseconds -lt 4000) {{ }}; \
         $own.Refresh(); $used = ($own.TotalProcessorTime - $before).TotalMilliseconds; \
         if ($used -lt 0.75 * $clock.ElapsedMilliseconds) {{ exit 0 }} else {{ exit {NO} }}"
    )
}

/// The sizes are in MiB (Microsoft, `Win32_PageFileUsage`).
fn page_files() -> String {
    format!(
        "'{HEADING}page files'; \
         Get-CimInstance Win32_PageFileUsage | ForEach-Object {{ $_.AllocatedBaseSize }}"
    )
}

/// Where `BitLocker` is not installed, its namespace is missing (Microsoft, `Win32_EncryptableVolume`).
fn encryption() -> String {
    let (security, namespace) = ("root/cimv2/Security", "MicrosoftVolumeEncryption");
    format!(
        "'{HEADING}volumes'; if (Get-CimInstance -Namespace {security} -ClassName __NAMESPACE | \
         Where-Object {{ $_.Name -eq '{namespace}' }}) {{ Get-CimInstance -Namespace {security}/{namespace} \
         -ClassName Win32_EncryptableVolume | \
         ForEach-Object {{ '{{0}} {{1}}' -f $_.DriveLetter, $_.ProtectionStatus }} }}"
    )
}

/// The job object of a container has its limit, and Windows refuses its processes what is beyond that.
fn memory_limited(mebibytes: u32) -> String {
    format!(
        "try {{ $held = [byte[]]::new({mebibytes}MB) }} catch {{ \
         if ($_.Exception.GetBaseException() -is [OutOfMemoryException]) {{ exit 0 }}; throw }}; exit {NO}"
    )
}

/// The kubelet keeps the volumes of pods in its folder, `C:\var\lib\kubelet` unless it is set up otherwise.
fn read_volume(path: &str) -> String {
    format!(
        "$found = Get-Item 'C:\\var\\lib\\kubelet\\pods\\*\\volumes\\kubernetes.io~empty-dir{path}'; \
         if (!$found) {{ exit {NO} }}; $found | Get-Content"
    )
}

/// A path on a share is `\\SERVER\SHARE\…`.
fn reach_share() -> String {
    format!("[Net.Sockets.TcpClient]::new(($env:{ON_SHARE} -split '\\\\')[2], 445).Dispose()")
}

/// A program of Windows itself.
fn system<const N: usize>(program: &str, arguments: [&str; N]) -> Vec<String> {
    let program = format!("C:\\Windows\\System32\\{program}.exe");
    std::iter::once(program).chain(line(arguments)).collect()
}

fn cmd(script: &str) -> Vec<String> {
    system("cmd", ["/c", script])
}

/// The flag of PowerShell before a script in UTF-16 and base64.
pub(super) const ENCODED: &str = "-EncodedCommand";

/// The text of an encoded script.
pub(super) fn decoded(script: &str) -> Option<String> {
    let bytes = STANDARD.decode(script).ok()?;
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    String::from_utf16(&units.collect::<Vec<_>>()).ok()
}

/// Runs a script in PowerShell, encoded so that no shell on the way reads it.
/// Without the second preference, it writes its progress as XML to the other stream.
fn powershell(script: &str) -> Vec<String> {
    let script = format!(
        "$ErrorActionPreference = 'Stop'; $ProgressPreference = 'SilentlyContinue'; {script}"
    );
    let encoded: Vec<u8> = script.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let encoded = STANDARD.encode(encoded);
    let flags = ["-NoLogo", "-NoProfile", "-NonInteractive", ENCODED];
    let mut argv = system("WindowsPowerShell\\v1.0\\powershell", flags);
    argv.push(encoded);
    argv
}

/// `-n 1 -w 3000`: one request, three seconds.
fn ping(target: &IpAddr) -> String {
    format!("C:\\Windows\\System32\\ping.exe -n 1 -w 3000 {target}")
}

/// `set` prints a value as it is; `echo %NAME%` would have `cmd` interpret it.
fn environment(names: &[VariableName]) -> Vec<String> {
    let sets: Vec<_> = names.iter().map(|name| format!("set {name}")).collect();
    cmd(&sets.join("& "))
}
