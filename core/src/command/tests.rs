use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine;

use super::*;

const FORMS: &str = include_str!("forms.txt");

fn token() -> Token {
    Token::parse("5eed").expect("a token")
}

fn path(text: &str) -> FilePath {
    let os = match text.starts_with('/') {
        true => Os::Linux,
        false => Os::Windows,
    };
    FilePath::parse(os, text).expect(text)
}

fn http_session(curl: Curl) -> HttpSession {
    let get = |host: &str, port, path: &str| HttpGet {
        host: Host::parse(host).expect(host),
        port,
        path: path.to_owned(),
    };
    HttpSession {
        curl,
        gets: vec![
            get("10.96.0.10", 80, "/"),
            get("fd00::10", 8080, "/hostname"),
            get("web.winconform.svc.cluster.local", 80, "/"),
        ],
        token: token(),
        connect: Duration::from_secs(4),
        total: Duration::from_secs(8),
    }
}

fn pings(after: Option<HttpSession>) -> Command {
    Command::Pings {
        targets: ["10.244.1.7", "fd00::7"]
            .map(|target| target.parse().expect("an address"))
            .to_vec(),
        token: token(),
        after,
    }
}

/// Each command with typical values.
fn examples() -> Vec<Command> {
    let curls = [Curl::Linux, Curl::System, Curl::Agnhost, Curl::Windows];
    let variable = |name: &str| VariableName::parse(name).expect(name);
    let files = ["/shared/note.txt", "C:\\shared\\note.txt"].map(path);
    let mut all: Vec<_> = curls.map(http_session).map(Command::HttpSession).into();
    all.push(Command::Get(http_session(Curl::System).gets.swap_remove(2)));
    all.extend(curls.map(Command::CurlVersion));
    all.push(pings(None));
    all.extend(curls.map(http_session).map(Some).map(pings));
    all.extend([
        Command::DnsSuffix,
        Command::LoadBalancers,
        Command::Streams(token()),
    ]);
    all.extend(files.clone().map(Command::ReadFile));
    let mounted = "%CONTAINER_SANDBOX_MOUNT_POINT%\\shared\\note.txt";
    all.push(Command::ReadFile(path(mounted)));
    all.extend(files.clone().map(|path| Command::WriteFile {
        path,
        line: token(),
    }));
    all.extend(files.clone().map(Command::DeleteFile));
    all.extend(files.clone().map(Command::Exists));
    all.extend(files.map(Command::Access));
    all.extend([
        Command::Links(path("C:\\shared")),
        Command::FillFile {
            path: path("C:\\shared\\note.txt"),
            size: 8 << 20,
        },
        Command::FreeSpace(path("C:\\shared")),
        Command::Environment(["W_A", "P_b"].map(variable).to_vec()),
        Command::WhoAmI,
        Command::HasAddress(variable("W_A")),
        Command::ReachApiServer,
        Command::Processes,
        Command::FindProcess(token()),
        Command::CpuLimited,
        Command::MemoryLimited(640),
        Command::ReadPipe,
        Command::ReadVolume(path("C:\\wc-linked\\plain\\file.txt")),
        Command::FindUser(token()),
        Command::ParentDomain,
        Command::ReachShare,
        Command::WriteToShare(token()),
    ]);
    let names = ["kubelet", "kube-proxy"].map(|name| ServiceName::parse(name).expect("a service"));
    all.extend([
        Command::Services(names.into()),
        Command::CsiProxyPipes,
        Command::Ports,
        Command::PageFiles,
        Command::Encryption,
        Command::Reboot,
    ]);
    all
}

/// Each example on every system that has it, with its line in the list.
fn forms() -> Vec<(String, Os, ExecRequest)> {
    let on = |command: Command| {
        [(Os::Linux, "linux"), (Os::Windows, "windows")].map(|(os, word)| {
            let request = command.on(os).ok()?;
            let argv = request.argv.iter().map(|argument| format!("{argument:?}"));
            let argv = argv.collect::<Vec<_>>().join(", ");
            let reads = request.stdin().map(|text| format!(" < {text:?}"));
            let line = format!(
                "{} {word} [{argv}]{}",
                name(&command),
                reads.unwrap_or_default()
            );
            Some((line, os, request))
        })
    };
    examples().into_iter().flat_map(on).flatten().collect()
}

#[test]
fn the_list_has_all_forms() {
    let rendered: Vec<_> = forms().into_iter().map(|(line, ..)| line).collect();
    let listed: Vec<_> = FORMS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(
        rendered.join("\n"),
        listed.join("\n"),
        "core/src/command/forms.txt"
    );
}

/// A command's variant.
fn name(command: &Command) -> String {
    let text = format!("{command:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}

#[test]
fn each_command_has_an_example() {
    let source = include_str!("mod.rs").split("pub enum Command {\n").nth(1);
    let source = source
        .and_then(|rest| rest.split("\n}").next())
        .expect("it is there");
    let variants = source.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        let is_variant = line.starts_with(|c: char| c.is_ascii_uppercase());
        is_variant.then(|| line.split(|c: char| !c.is_alphanumeric()).next())?
    });
    let variants: BTreeSet<_> = variants.map(str::to_owned).collect();
    let shown: BTreeSet<_> = examples().iter().map(name).collect();
    assert!(variants.len() > 20, "{variants:?}");
    assert_eq!(shown, variants);
}

#[test]
fn neither_of_the_shells_on_a_windows_node_reads_more_than_the_command() {
    let windows = forms().into_iter().filter(|(_, os, _)| *os == Os::Windows);
    for (line, _, request) in windows {
        for argument in request.argv() {
            // The runtime puts an argument with a space into double quotes
            let bare = !argument.contains(' ') && argument.contains(['&', '|', '<', '>', '^', '%']);
            assert!(!bare && !argument.contains('"'), "{line}");
        }
        let full = request.argv()[0].starts_with("C:\\");
        assert!(full || request.argv()[0] == "curl.exe", "{line}");
    }
}

#[test]
fn what_a_shell_would_read_is_no_value() {
    let hostile = [
        "", " ", "a b", "a&b", "a|b", "a;b", "$(a)", "`a`", "a>b", "a\"b", "a'b", "a%b%", "a^b",
        "a\nb", "a\r", "é", "-a b",
    ];
    for text in hostile {
        assert_eq!(Token::parse(text), None, "{text}");
        assert_eq!(VariableName::parse(text), None, "{text}");
        assert_eq!(ServiceName::parse(text), None, "{text}");
        assert_eq!(
            FilePath::parse(Os::Linux, &format!("/{text}")),
            None,
            "{text}"
        );
        let windows = format!("C:\\{text}");
        assert_eq!(FilePath::parse(Os::Windows, &windows), None, "{text}");
        let mounted = format!("%CONTAINER_SANDBOX_MOUNT_POINT%\\{text}");
        assert_eq!(FilePath::parse(Os::Windows, &mounted), None, "{text}");
    }
    assert_eq!(ServiceName::parse("-k"), None);
    for text in ["a", "a/b", "/a/../b", "/a//b", "/a/", "/a\\b", "C:\\a"] {
        assert_eq!(FilePath::parse(Os::Linux, text), None, "{text}");
    }
    for text in [
        "/a",
        "C:",
        "C:a",
        "C:/a",
        "CC:\\a",
        "C:\\a\\..\\b",
        "C:\\a\\\\b",
        "%A%\\b",
        ":\\a",
    ] {
        assert_eq!(FilePath::parse(Os::Windows, text), None, "{text}");
    }
    // Names that the kubelet itself uses
    for text in ["/etc/cm/..data/key", "/a/kubernetes.io~secret/b"] {
        assert!(FilePath::parse(Os::Linux, text).is_some(), "{text}");
    }
    assert!(Token::parse(&"a".repeat(65)).is_none());
}

#[test]
fn a_url_does_not_end_its_line() {
    let mut session = http_session(Curl::Linux);
    session.gets.truncate(1);
    "/\"\nurl = \"http://a\\".clone_into(&mut session.gets[0].path);
    let config = session.config();
    let last = config.lines().last().expect("a line");
    assert_eq!(
        last,
        "url = \"http://10.96.0.10:80/\\\"\\nurl = \\\"http://a\\\\\""
    );
}

#[test]
fn what_a_system_does_not_have_is_told() {
    let refused = Command::LoadBalancers
        .on(Os::Linux)
        .expect_err("of Windows");
    assert_eq!(refused.to_string(), "LoadBalancers cannot be run on Linux");
    for command in [
        Command::DnsSuffix,
        Command::HttpSession(http_session(Curl::Linux)),
        pings(Some(http_session(Curl::Linux))),
        Command::ReadFile(path("/a")),
    ] {
        assert!(command.on(Os::Windows).is_err(), "{command:?}");
    }
}

#[test]
fn an_account_is_no_longer_than_net_takes() {
    let request = Command::FindUser(Token::random(u128::MAX)).on(Os::Windows);
    let request = request.expect("of Windows");
    assert_eq!(request.argv()[2..], ["wc-ffffffff"]);
}

#[test]
fn powershell_reads_what_was_written() {
    let request = Command::FindProcess(token())
        .on(Os::Windows)
        .expect("of Windows");
    let encoded = request.argv().last().expect("a script");
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
    let units = bytes.expect("base64");
    let units: Vec<_> = units
        .chunks(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    let script = String::from_utf16(&units).expect("UTF-16");
    assert!(script.ends_with("{ exit 0 } else { exit 2 }"), "{script}");
}
