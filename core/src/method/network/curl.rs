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

/// Splits a session's output into the replies, one per target, in their order. It counts the result lines and
/// checks the URL in each, since an exec can lose output and still end with 0 (kubernetes#124571).
pub fn split(gets: &[HttpGet], token: &Token, reply: &ExecReply) -> Result<Vec<HttpReply>> {
    let unrecognised = |why: String| reply.unrecognised(&why);
    match &reply.exit {
        ExitStatus::NotStarted(text) if is_missing(text) => {
            return Err(ErrorKind::ToolMissing.error(text.clone()));
        }
        ExitStatus::NotStarted(text) => {
            return Err(ErrorKind::ExecTransport.error(text.clone()));
        }
        // 2 means that curl refused its options and sent nothing
        ExitStatus::Code(2) => return Err(unrecognised("curl refused its options".to_owned())),
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
    let marker = format!("\n@@{token} ");
    let mut rest = reply.stdout.as_str();
    let mut results = Vec::with_capacity(gets.len());
    for (index, get) in gets.iter().enumerate() {
        let Some((body, after)) = rest.split_once(&marker) else {
            return Err(unrecognised(format!(
                "{} of {} results are there",
                index,
                gets.len()
            )));
        };
        let (line, after) = after.split_once('\n').unwrap_or((after, ""));
        let (status, exit) = result(line.trim_end(), &get.url())
            .ok_or_else(|| unrecognised(format!("result line `{}`", printable(line))))?;
        // In text mode Windows ends the line before the marker with CR LF
        let body = body.strip_suffix('\r').unwrap_or(body);
        results.push((status, exit, body));
        rest = after;
    }
    if !rest.trim().is_empty() {
        return Err(unrecognised("output after the last result".to_owned()));
    }
    let failures = failure_of_each(&results, &reply.stderr)
        .ok_or_else(|| unrecognised("messages that do not fit the results".to_owned()))?;
    // A second check: the code of a serial session is that of its last transfer
    let last = failures.last().and_then(Option::as_ref);
    if reply.exit != ExitStatus::Code(last.map_or(0, |(code, _)| i64::from(*code))) {
        let detail = format!("{:?} does not fit the last result", reply.exit);
        return Err(unrecognised(detail));
    }
    let replies = results.into_iter().zip(failures);
    let replies = replies.map(|((status, _, body), failure)| match failure {
        Some((code, text)) => HttpReply::Failed { code, text },
        // Before 7.66 curl accepts HTTP/0.9, which is any text
        None if status == 0 => HttpReply::Failed {
            code: NO_HTTP,
            text: format!("the answer is no HTTP: {}", printable(body)),
        },
        None => HttpReply::Answered {
            status,
            body: body.to_owned(),
        },
    });
    Ok(replies.collect())
}

/// CURLE_UNSUPPORTED_PROTOCOL, which curl says of an answer that is no HTTP.
const NO_HTTP: u16 = 1;

/// The status and the exit code in the line after a transfer: `200 0 http://10.96.0.1:80/`. curl before 7.75
/// leaves the exit code out.
fn result(line: &str, url: &str) -> Option<(u16, Option<u16>)> {
    let (status, rest) = line.split_once(' ').filter(|(code, _)| code.len() == 3)?;
    let (exit, shown) = rest.split_once(' ')?;
    let exit = match exit {
        "" => None,
        exit => Some(exit.parse().ok()?),
    };
    Some((status.parse().ok()?, exit)).filter(|_| shown == url)
}

/// What curl before 7.63 says of `%{stderr}` after each transfer and before the transfer's message
/// (`src/tool_writeout.c`, `src/tool_operate.c`).
const SEPARATOR: &str = "curl: unknown --write-out variable: 'stderr'";

/// The message of each transfer that failed, even if its answer had begun; `None` where messages and results do not
/// fit, such as where output was lost.
fn failure_of_each(
    results: &[(u16, Option<u16>, &str)],
    stderr: &str,
) -> Option<Vec<Option<(u16, String)>>> {
    if stderr.contains(SEPARATOR) {
        let parts = stderr.split(SEPARATOR).skip(1);
        let one = |part| {
            let mut messages = failures(part);
            let first = messages.next();
            messages.next().is_none().then_some(first)
        };
        let each: Vec<_> = parts.map(one).collect::<Option<_>>()?;
        return (each.len() == results.len()).then_some(each);
    }
    let mut messages = failures(stderr);
    let each = results.iter().map(|(status, exit, _)| match exit {
        Some(0) => Some(None),
        Some(exit) => messages.next().filter(|(code, _)| code == exit).map(Some),
        // From 7.63 to 7.74 nothing says to which of the answers a message belongs
        None if *status == 0 => messages.next().map(Some),
        None => Some(None),
    });
    let each = each.collect::<Option<Vec<_>>>()?;
    messages.next().is_none().then_some(each)
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
        NO_HTTP | 8 => Some(FailureClass::WrongAnswer),
        // 18: fewer bytes came than the answer announced
        18 | 52 => Some(FailureClass::Reset),
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

/// The code of curl's last message.
pub(crate) fn last_failure(stderr: &str) -> Option<u16> {
    failures(stderr).last().map(|(code, _)| code)
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
        let err = format!(
            "{SEPARATOR}\r\n{SEPARATOR}\r\n\
            curl: (7) Failed to connect to 10.96.0.1 port 80: Timed out\r\n{SEPARATOR}\r\n"
        );
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

    #[test]
    fn a_transfer_that_breaks_in_its_answer_has_failed_and_no_other_has() {
        let message = "curl: (18) transfer closed with 10 bytes remaining to read\n";
        let failed = |replies: Vec<HttpReply>| {
            let failed = |reply: &HttpReply| matches!(reply, HttpReply::Failed { code: 18, .. });
            replies.iter().map(failed).collect::<Vec<_>>()
        };
        for broken in 0..3 {
            let (mut new, mut old, mut middle) = (String::new(), String::new(), String::new());
            let mut separated = String::new();
            for n in 0..3 {
                let exit = if n == broken { 18 } else { 0 };
                new.push_str(&format!("x\n@@t 200 {exit} http://10.96.0.{n}:80/\n"));
                old.push_str(&format!("x\n@@t 200  http://10.96.0.{n}:80/\n"));
                separated.push_str(&format!("{SEPARATOR}\n"));
                if n == broken {
                    separated.push_str(message);
                    middle.push_str(message);
                }
            }
            let exit = if broken == 2 { 18 } else { 0 };
            let expected: Vec<_> = (0..3).map(|n| n == broken).collect();
            for (out, err) in [(&new, &middle), (&old, &separated)] {
                let replies = split(&gets(3), &token(), &reply(out, err, exit));
                assert_eq!(failed(replies.expect("three results")), expected);
                // The same where its message was lost on the way
                let lost = err.replace(message, "");
                let lost = split(&gets(3), &token(), &reply(out, &lost, exit));
                assert!(lost.is_err() || *out == old && exit == 0, "{lost:?}");
            }
            // A curl that says neither
            assert!(split(&gets(3), &token(), &reply(&old, &middle, exit)).is_err());
        }
    }

    #[test]
    fn an_answer_that_is_no_http_is_one_that_is_wrong() {
        let err = format!("{SEPARATOR}\n");
        let out = "SSH-2.0\r\n\n@@t 000  http://10.96.0.0:80/\n";
        let replies = split(&gets(1), &token(), &reply(out, &err, 0)).expect("one result");
        let HttpReply::Failed { code, text } = &replies[0] else {
            panic!("{replies:?}");
        };
        assert_eq!(classify(*code, text), Some(FailureClass::WrongAnswer));
        assert!(text.contains("SSH-2.0"), "{text}");
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
