//! One curl session for many targets: which curl runs it, and how its output is split into replies.

use crate::command::{Curl, Token};
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::{ExecReply, ExitStatus, HttpGet, HttpReply};
use crate::method::failure::FailureClass;
use crate::method::vantage::SourceKind;
use crate::text::printable;

/// The curls to try at a vantage point, best first, until a session finds its program. A Windows pod of
/// agnhost has its own curl beside the system's (kubernetes, `test/images/busybox/Dockerfile_windows`); a
/// `HostProcess` exec needs full paths.
pub fn candidates(kind: SourceKind) -> &'static [Curl] {
    match kind {
        SourceKind::LinuxPod | SourceKind::LinuxNode => &[Curl::Linux],
        SourceKind::WindowsPod => &[Curl::System, Curl::Agnhost, Curl::Windows],
        SourceKind::WindowsNode => &[Curl::System],
        SourceKind::Outside => &[],
    }
}

/// The version in what `curl --version` prints; `None` for any other text.
pub fn version(printed: &str) -> Option<&str> {
    let word = printed.strip_prefix("curl ")?.split_whitespace().next()?;
    let of_versions = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let is_version = word.starts_with(|c: char| c.is_ascii_digit())
        && word.len() <= 32
        && word.chars().all(of_versions);
    is_version.then_some(word)
}

/// Whether the runtime or a shell says that the program does not exist, rather than that the exec failed
/// (containerd with hcsshim: hcsshim#1472; with runc: "executable file not found").
pub(crate) fn is_missing(text: &str) -> bool {
    [
        "cannot find the file specified",
        "executable file not found",
        "no such file or directory",
        "curl: not found",
        "is not recognized as an internal or external command",
    ]
    .iter()
    .any(|words| text.to_ascii_lowercase().contains(words))
}

/// How many bytes a transfer should print beside the text that its path asks for and its URL: the longest
/// page is that of IIS with 703, and its line has 41. Nothing bounds the answers of others: before 8.4 curl
/// detects a file over the limit only by the size that its server states (`max-filesize`).
const ANSWER: usize = 1 << 10;

/// How many of the first targets one session may have so that it prints at most `most` bytes if all answer as
/// expected; at least one. The request needs no bound: targets go through standard input.
pub fn fitting(gets: &[HttpGet], most: usize) -> usize {
    let sizes = gets
        .iter()
        .map(|get| ANSWER + get.path.len() + get.url().len());
    let printed = sizes.scan(0, |sum, size| {
        *sum += size;
        Some(*sum)
    });
    let fit = printed.take_while(|sum| *sum <= most).count();
    fit.max(1).min(gets.len())
}

/// Splits a session's output into the replies, one per target, in their order; it checks the URL in each result.
pub fn split(gets: &[HttpGet], token: &Token, reply: &ExecReply) -> Result<Vec<HttpReply>> {
    match &reply.exit {
        ExitStatus::NotStarted(text) if is_missing(text) => {
            return Err(ErrorKind::ToolMissing.error(text.clone()));
        }
        ExitStatus::NotStarted(text) => {
            return Err(ErrorKind::ExecTransport.error(text.clone()));
        }
        // 2 means that curl refused its options and sent nothing
        ExitStatus::Code(2) => return Err(reply.unrecognised("curl refused its options")),
        // 126 and 127 come from a shell or runc; 1 comes from cmd in a HostProcess exec, or says that the
        // curl before the pings failed
        ExitStatus::Code(1 | 126 | 127)
            if reply.stdout.trim().is_empty() && is_missing(&reply.stderr) =>
        {
            let detail = printable(reply.stderr.trim());
            return Err(ErrorKind::ToolMissing.error(detail));
        }
        ExitStatus::Code(_) => {}
    }
    let parts = reply.split(&vec![format!("\n@@{token} "); gets.len()])?;
    let transfers = parts.into_iter().zip(gets).map(|((body, line), get)| {
        let wrong = || reply.unrecognised(&format!("result line `{}`", printable(line)));
        Transfer::read(body, line, &get.url()).ok_or_else(wrong)
    });
    let transfers: Vec<_> = transfers.collect::<Result<_>>()?;
    let misfit = || reply.unrecognised("messages that do not fit the results");
    let messages = messages(&transfers, &reply.stderr).ok_or_else(misfit)?;
    // A second check: the code of a serial session is that of its last transfer
    let last = messages.last().and_then(Option::as_ref);
    if reply.exit != ExitStatus::Code(last.map_or(0, |(code, _)| i64::from(*code))) {
        let detail = format!("{:?} does not fit the last result", reply.exit);
        return Err(reply.unrecognised(&detail));
    }
    let replies = transfers.into_iter().zip(messages);
    let replies = replies.map(|(transfer, message)| transfer.reply(message));
    replies.collect::<Option<_>>().ok_or_else(misfit)
}

/// One transfer as a session prints it.
struct Transfer<'r> {
    /// 0 where no status came.
    status: u16,
    /// curl before 7.75 leaves it out.
    exit: Option<u16>,
    body: &'r str,
}

impl<'r> Transfer<'r> {
    /// Reads the line after a transfer: `200 0 http://10.96.0.1:80/`.
    fn read(body: &'r str, line: &str, url: &str) -> Option<Self> {
        let (status, rest) = line.split_once(' ').filter(|(code, _)| code.len() == 3)?;
        let (exit, _) = rest.split_once(' ').filter(|(_, shown)| *shown == url)?;
        let exit = match exit {
            "" => None,
            exit => Some(exit.parse().ok()?),
        };
        let status = status.parse().ok()?;
        // In text mode Windows ends the line before the marker with CR LF
        let body = body.strip_suffix('\r').unwrap_or(body);
        Some(Self { status, exit, body })
    }

    /// The reply, with curl's message where it failed; `None` for neither an answer nor a failure.
    fn reply(self, message: Option<(u16, String)>) -> Option<HttpReply> {
        let Self { status, body, .. } = self;
        Some(match message {
            // It was reached, so that this is no failure to connect
            Some((code, text)) if status != 0 => HttpReply::Unreached {
                class: FailureClass::BrokenAnswer,
                text: format!("curl: ({code}) {text}, after the status {status}"),
            },
            Some((code, text)) => HttpReply::Failed { code, text },
            // HTTP/0.9, which curl accepts before 7.66, is any text
            None if status == 0 && !body.is_empty() => HttpReply::Unreached {
                class: FailureClass::WrongAnswer,
                text: format!("an answer that is no HTTP: {}", printable(body)),
            },
            None if status == 0 => return None,
            None => HttpReply::Answered {
                status,
                body: body.to_owned(),
            },
        })
    }

    /// Whether it may have these messages.
    fn fits(&self, messages: &[(u16, String)]) -> bool {
        let has_failed = self.status == 0 && self.body.is_empty();
        messages.len() == 1 || messages.is_empty() && !has_failed
    }
}

/// The message of each transfer that failed, even if its answer had begun; `None` where messages and results do not
/// fit, as where output was lost.
///
/// Before 7.75 curl does not know `%{exitcode}`, says so at the end of each transfer, and so separates its messages
/// (`src/tool_writeout.c`); a message comes behind that before 7.66, and ahead of it from then on
/// (`src/tool_operate.c`). Before 7.63 it does not know `%{stderr}` either.
fn messages(transfers: &[Transfer<'_>], stderr: &str) -> Option<Vec<Option<(u16, String)>>> {
    // Which curl it is, the results tell, which the token protects: a message may quote a server
    if transfers.iter().any(|transfer| transfer.exit.is_some()) {
        let mut messages = failures(stderr);
        let each = transfers.iter().map(|transfer| match transfer.exit? {
            0 => Some(None),
            exit => messages.next().filter(|(code, _)| *code == exit).map(Some),
        });
        let each = each.collect::<Option<Vec<_>>>()?;
        return messages.next().is_none().then_some(each);
    }
    let complains = |name: &str, line: &str| {
        line.trim_end() == format!("curl: unknown --write-out variable: '{name}'")
    };
    let lines: Vec<_> = stderr.split_inclusive('\n').collect();
    let parts = lines.split(|line| complains("exitcode", line));
    let parts = parts.map(|lines| failures(&lines.concat()).collect());
    let parts: Vec<Vec<_>> = parts.collect();
    let (first, behind) = parts.split_first()?;
    let (last, ahead) = parts.split_last()?;
    let count = lines
        .iter()
        .filter(|line| complains("stderr", line))
        .count();
    if count != 0 && count != transfers.len() {
        return None;
    }
    let fits = |each: &[Vec<_>]| {
        let mut pairs = transfers.iter().zip(each);
        each.len() == transfers.len() && pairs.all(|(transfer, some)| transfer.fits(some))
    };
    let mut ways = Vec::new();
    ways.extend((first.is_empty() && fits(behind)).then_some(behind));
    ways.extend((count == 0 && last.is_empty() && fits(ahead)).then_some(ahead));
    ways.dedup();
    match ways[..] {
        [each] => Some(each.iter().map(|some| some.first().cloned()).collect()),
        _ => None,
    }
}

/// The class of a failure of curl. Exit 7 is always a failed connect, and its text says how: on Windows a
/// refusal, a time-out or a missing route (calico#5522, kubernetes#85604). For other codes unknown texts give
/// `None`.
pub fn classify(code: u16, text: &str) -> Option<FailureClass> {
    let says = |words: &[&str]| {
        let text = text.to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    match code {
        6 => Some(FailureClass::Dns),
        7 | 28 if says(&["unreachable", "no route to host"]) => Some(FailureClass::NoRoute),
        7 if says(&["refused"]) => Some(FailureClass::Refused),
        // curl names the phase that took too long (lib/multi.c)
        28 if says(&["resolving timed out"]) => Some(FailureClass::Dns),
        // `Operation timed out after 8000 milliseconds with 0 bytes received`: it was connected
        28 if says(&["bytes received"]) => Some(FailureClass::NoAnswer),
        7 | 28 if says(&["timed out", "timeout was reached"]) => Some(FailureClass::Timeout),
        // Current curl says `Could not connect to server` for every failed connect except a time-out
        // (lib/connect.c); older ones have the system's words, such as `Bad access`
        7 => Some(FailureClass::NotConnected),
        35 | 51 | 53 | 54 | 58 | 59 | 60 | 77 => Some(FailureClass::Tls),
        1 if says(&["http/0.9", "unsupported http"]) => Some(FailureClass::WrongAnswer),
        8 => Some(FailureClass::WrongAnswer),
        52 => Some(FailureClass::Reset),
        55 | 56 if says(&["reset", "aborted", "forcibly closed"]) => Some(FailureClass::Reset),
        _ => None,
    }
}

/// curl's messages in their order: `curl: (7) Failed to connect …`.
pub(crate) fn failures(stderr: &str) -> impl Iterator<Item = (u16, String)> {
    stderr.lines().filter_map(|line| {
        let (code, text) = line.trim_end().strip_prefix("curl: (")?.split_once(") ")?;
        Some((code.parse().ok()?, text.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::exchange::Host;

    fn token() -> Token {
        Token::parse("t").expect("a token")
    }

    fn gets(count: u8) -> Vec<HttpGet> {
        let get = |n| HttpGet {
            host: Host::Address([10, 96, 0, n].into()),
            port: 80,
            path: "/".to_owned(),
        };
        (0..count).map(get).collect()
    }

    fn reply(stdout: &str, stderr: &str, code: i64) -> ExecReply {
        ExecReply {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            exit: ExitStatus::Code(code),
        }
    }

    #[test]
    fn a_version_is_told_from_other_words() {
        let windows =
            "curl 7.55.1 (Windows) libcurl/7.55.1 WinSSL\r\nRelease-Date: [unreleased]\r\n";
        assert_eq!(version(windows), Some("7.55.1"));
        assert_eq!(version("curl 8.15.0-DEV (x86_64)"), Some("8.15.0-DEV"));
        for other in [
            "",
            "curl ",
            "curl: option --version",
            "curl 8\u{1b}[2J",
            "wget 1.2",
        ] {
            assert_eq!(version(other), None, "{other}");
        }
    }

    #[test]
    fn a_session_has_no_more_targets_than_its_output_has_room_for() {
        let mut gets = gets(4);
        assert_eq!(fitting(&[], 0), 0);
        assert_eq!(fitting(&gets, 0), 1);
        let each = ANSWER + "/http://10.96.0.0:80/".len();
        assert_eq!(fitting(&gets, 3 * each), 3);
        assert_eq!(fitting(&gets, 1 << 20), 4);
        // The page of IIS and its line, four times
        assert!(fitting(&gets, 4 * (703 + 60)) < 4);
        // The path comes back in the answer and once more in the URL
        gets[0].path = "/ab".to_owned();
        assert_eq!(fitting(&gets, 2 * (each + 2)), 2);
        assert_eq!(fitting(&gets, 2 * (each + 2) - 1), 1);
        gets[1].path = format!("/echo?msg={}", "x".repeat(ANSWER));
        assert_eq!(fitting(&gets, 3 * (ANSWER + 1)), 1);
    }

    #[test]
    fn each_target_gets_its_own_answer() {
        let out = "<H1>one</H1>\n@@t 200  http://10.96.0.0:80/\n\n@@t 000  http://10.96.0.1:80/\n\
            three\r\n@@t 200  http://10.96.0.2:80/\r\n";
        let unknown = "curl: unknown --write-out variable: 'exitcode'\r\n\
            curl: unknown --write-out variable: 'stderr'\r\n";
        let message = "curl: (7) Failed to connect to 10.96.0.1 port 80: Timed out\r\n";
        let err = format!("{unknown}{unknown}{message}{unknown}");
        let replies = split(&gets(3), &token(), &reply(out, &err, 0)).expect("three results");
        let text = "Failed to connect to 10.96.0.1 port 80: Timed out".to_owned();
        assert_eq!(
            replies[0],
            HttpReply::Answered {
                status: 200,
                body: "<H1>one</H1>".into()
            }
        );
        assert_eq!(replies[1], HttpReply::Failed { code: 7, text });
        assert_eq!(
            replies[2],
            HttpReply::Answered {
                status: 200,
                body: "three".into()
            }
        );
    }

    #[test]
    fn lost_output_is_trouble_even_with_exit_0() {
        for out in [
            "",
            "body",
            "body\n@@t 200 0 http://10.96.0.0:80/\n",
            "body\n@@t 200 0 http://10.96.0.0:80/\nmore\n@@t 2",
            "body\n@@t 200 0 http://10.96.0.0:80/\nmore\n@@t 200 0 http://10.96.0.1",
            // The results of other targets
            "body\n@@t 200 0 http://10.96.0.1:80/\nmore\n@@t 200 0 http://10.96.0.0:80/\n",
        ] {
            let error = split(&gets(2), &token(), &reply(out, "", 0)).expect_err(out);
            assert_eq!(error.kind, ErrorKind::UnrecognisedOutput, "{out}");
        }
    }

    #[test]
    fn a_body_cannot_forge_a_result() {
        let out = "x\n@@guess 200 0 http://10.96.0.0:80/\ny\n@@t 404 0 http://10.96.0.0:80/\n";
        let replies = split(&gets(1), &token(), &reply(out, "", 0)).expect("one result");
        let body = "x\n@@guess 200 0 http://10.96.0.0:80/\ny".to_owned();
        assert_eq!(replies[0], HttpReply::Answered { status: 404, body });
    }

    /// What curls of four ages print of three transfers, one of which breaks with this status, and whether that says
    /// which it is.
    fn sessions(broken: usize, status: &str) -> [(ExecReply, bool); 4] {
        let message = "curl: (18) transfer closed with 10 bytes remaining to read\n";
        let exit = "curl: unknown --write-out variable: 'exitcode'\n";
        let stream = "curl: unknown --write-out variable: 'stderr'\n";
        let (mut new, mut old) = (String::new(), String::new());
        let mut errors = [const { String::new() }; 4];
        for n in 0..3 {
            let (status, code) = if n == broken {
                (status, 18)
            } else {
                ("200", 0)
            };
            let body = if status == "000" { "" } else { "x" };
            new.push_str(&format!(
                "{body}\n@@t {status} {code} http://10.96.0.{n}:80/\n"
            ));
            old.push_str(&format!("{body}\n@@t {status}  http://10.96.0.{n}:80/\n"));
            let message = if n == broken { message } else { "" };
            errors[0].push_str(message);
            errors[1].push_str(&format!("{exit}{stream}{message}"));
            errors[2].push_str(&format!("{exit}{message}"));
            errors[3].push_str(&format!("{message}{exit}"));
        }
        let code = if broken == 2 { 18 } else { 0 };
        let [newest, oldest, behind, ahead] = errors;
        // From 7.63 to 7.74 nothing but what fits says on which side a message is
        [
            (reply(&new, &newest, code), true),
            (reply(&old, &oldest, code), true),
            (reply(&old, &behind, code), status == "000" || broken == 2),
            (reply(&old, &ahead, code), status == "000" || broken == 0),
        ]
    }

    #[test]
    fn a_transfer_that_breaks_in_its_answer_has_failed_and_no_other_has() {
        for (broken, status) in (0..3).flat_map(|n| [(n, "200"), (n, "000")]) {
            for (session, is_told) in sessions(broken, status) {
                let Ok(replies) = split(&gets(3), &token(), &session) else {
                    assert!(!is_told, "{broken} {session:?}");
                    continue;
                };
                assert!(is_told, "{session:?}");
                for (n, reply) in replies.iter().enumerate() {
                    let is_right = match reply {
                        HttpReply::Answered { .. } => n != broken,
                        HttpReply::Failed { .. } => n == broken && status == "000",
                        HttpReply::Unreached { class, .. } => {
                            n == broken && *class == FailureClass::BrokenAnswer && status == "200"
                        }
                    };
                    assert!(is_right, "{n}: {reply:?}");
                }
                // Lost standard error leaves the session unrecognised
                let stderr = String::new();
                let lost = ExecReply { stderr, ..session };
                assert!(split(&gets(3), &token(), &lost).is_err());
            }
        }
    }

    #[test]
    fn words_of_a_server_do_not_make_a_new_curl_an_old_one() {
        let quoted = "curl: unknown --write-out variable: 'exitcode'";
        let err = format!("curl: (61) Unsolicited ({quoted}\n{quoted}\n{quoted}\n) found\n");
        let out = "x\n@@t 200 61 http://10.96.0.0:80/\ny\n@@t 200 0 http://10.96.0.1:80/\n";
        let replies = split(&gets(2), &token(), &reply(out, &err, 0)).expect("two results");
        let is_broken = matches!(replies[0], HttpReply::Unreached { .. });
        assert!(is_broken, "{replies:?}");
    }

    #[test]
    fn an_answer_that_is_no_http_is_one_that_is_wrong() {
        let err = "curl: unknown --write-out variable: 'exitcode'\r\n";
        let read = |out: &str| split(&gets(1), &token(), &reply(out, err, 0));
        let replies = read("SSH-2.0\r\n\n@@t 000  http://10.96.0.0:80/\n").expect("one result");
        let wrong = FailureClass::WrongAnswer;
        assert!(matches!(&replies[0], HttpReply::Unreached { class, .. } if *class == wrong));
        // Neither an answer nor a failure
        assert!(read("\n@@t 000  http://10.96.0.0:80/\n").is_err());
        assert_eq!(classify(1, "Protocol \"x\" disabled in libcurl"), None);
        let new = "Received HTTP/0.9 when not allowed";
        assert_eq!(classify(1, new), Some(wrong));
    }

    #[test]
    fn wherever_pods_look_from_a_curl_is_tried_by_its_full_path_without_a_search_path() {
        for &kind in SourceKind::ALL {
            let tried = candidates(kind);
            assert_eq!(tried.is_empty(), kind == SourceKind::Outside, "{kind:?}");
            let has = |curl: &Curl| kind.shell().is_none_or(|os| curl.os() == os);
            assert!(tried.iter().all(has), "{tried:?}");
        }
        let full = |curl: &Curl| curl.to_string().starts_with("C:\\");
        assert!(candidates(SourceKind::WindowsNode).iter().all(full));
    }

    #[test]
    fn a_session_without_its_program_is_told_from_exec_trouble() {
        let hcs =
            "failed to exec in container: failed to start exec \"x\": hcs::System::CreateProcess";
        for (text, kind) in [
            (
                "executable file not found in $PATH".to_owned(),
                ErrorKind::ToolMissing,
            ),
            (
                format!("{hcs}: The system cannot find the file specified.: unknown"),
                ErrorKind::ToolMissing,
            ),
            (
                format!("{hcs} 05f: The RPC server is unavailable.: unknown"),
                ErrorKind::ExecTransport,
            ),
        ] {
            let reply = ExecReply {
                stdout: String::new(),
                stderr: String::new(),
                exit: ExitStatus::NotStarted(text.clone()),
            };
            let error = split(&gets(1), &token(), &reply).expect_err("an error");
            assert_eq!(error.kind, kind, "{text}");
        }
    }

    #[test]
    fn a_shell_that_does_not_find_the_program_is_told_from_a_session_that_was_cut() {
        let shell = "sh: curl: not found\n";
        let cmd = "'C:\\Windows\\System32\\curl.exe' is not recognized as an internal or external \
            command,\r\noperable program or batch file.\r\n";
        let refused = "curl: (7) Failed to connect to 10.96.0.0 port 80\n";
        for (stdout, stderr, code, kind) in [
            ("", shell, 127, ErrorKind::ToolMissing),
            ("", cmd, 1, ErrorKind::ToolMissing),
            ("", refused, 1, ErrorKind::UnrecognisedOutput),
            ("", "Killed\n", 1, ErrorKind::UnrecognisedOutput),
            ("", "", 1, ErrorKind::UnrecognisedOutput),
            ("", "", 127, ErrorKind::UnrecognisedOutput),
            ("body", "", 1, ErrorKind::UnrecognisedOutput),
            ("", "", 0, ErrorKind::UnrecognisedOutput),
            ("", "", 137, ErrorKind::UnrecognisedOutput),
        ] {
            let reply = reply(stdout, stderr, code);
            let error = split(&gets(1), &token(), &reply).expect_err("an error");
            assert_eq!(error.kind, kind, "{stdout} {stderr} {code}");
        }
    }
}
