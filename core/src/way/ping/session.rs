//! One session for many pings: what is sent, and how its output is taken apart.
//!
//! No ping takes several addresses, so each system's own interpreter runs one after the other. It
//! is given addresses and a token, and nothing else that comes from elsewhere.

use std::net::IpAddr;

use crate::facts::Os;
use crate::text::printable;
use crate::way::curl::last_failure;
use crate::way::exchange::{ExecReply, ExecRequest, ExitStatus, PingReply};
use crate::way::trouble::{Trouble, TroubleKind};

/// Targets of one session: `cmd` takes 8,191 characters (Microsoft, command prompt line string
/// limitation), and a target needs up to 180.
pub const MOST: usize = 40;

/// The exec that pings every target once. `token` must be unpredictable to whoever answers.
///
/// `-n 1 -w 3000` and `-c 1 -W 3`: one request, three seconds.
pub fn session(os: Os, targets: &[IpAddr], token: &str) -> ExecRequest {
    script(os, &pings(os, targets, token), None)
}

/// The same behind a session of curl, which reads the input: one exec for both.
pub fn behind(os: Os, curl: &ExecRequest, targets: &[IpAddr], token: &str) -> ExecRequest {
    let mut commands = vec![marked(os, &curl.argv.join(" "), token, "curl")];
    commands.extend(pings(os, targets, token));
    script(os, &commands, curl.stdin.clone())
}

/// What curl printed, and what the pings behind it did. That curl ended badly is known, and with
/// which code by its last message.
pub fn apart(token: &str, reply: &ExecReply) -> Result<(ExecReply, ExecReply), Trouble> {
    let ExitStatus::Code(0) = &reply.exit else {
        return Ok((reply.clone(), reply.clone()));
    };
    let found = reply.stdout.split_once(&format!("@@{token} curl "));
    let line = found.map(|(before, after)| (before, after.split_once('\n').unwrap_or((after, ""))));
    let (before, ended, after) = match line {
        Some((before, (code, after))) if matches!(code.trim_end(), "0" | "1") => {
            (before, code.trim_end() == "0", after)
        }
        _ => {
            let detail = format!("no end of curl's output `{}`", printable(&reply.stdout));
            return Err(Trouble::new(TroubleKind::UnrecognisedOutput, detail));
        }
    };
    let part = |stdout: &str, exit| ExecReply {
        stdout: stdout.to_owned(),
        stderr: reply.stderr.clone(),
        exit: ExitStatus::Code(exit),
    };
    let code = match ended {
        true => 0,
        false => last_failure(&reply.stderr).map_or(1, i64::from),
    };
    Ok((part(before, code), part(after, 0)))
}

fn pings(os: Os, targets: &[IpAddr], token: &str) -> Vec<String> {
    let each = targets.iter().enumerate().map(|(index, target)| {
        let ping = match os {
            Os::Windows => format!("C:\\Windows\\System32\\ping.exe -n 1 -w 3000 {target}"),
            Os::Linux => format!("ping -c 1 -W 3 {target} 2>&1"),
        };
        marked(os, &ping, token, &index.to_string())
    });
    each.collect()
}

/// A command with a line behind it that tells whether it ended well.
fn marked(os: Os, command: &str, token: &str, what: &str) -> String {
    let space = match os {
        // `echo x || y` prints the space, too
        Os::Windows => "",
        Os::Linux => " ",
    };
    format!("{command} && echo @@{token} {what} 0{space}|| echo @@{token} {what} 1")
}

fn script(os: Os, commands: &[String], stdin: Option<String>) -> ExecRequest {
    let (program, flag, script) = match os {
        Os::Windows => ("C:\\Windows\\System32\\cmd.exe", "/c", commands.join("& ")),
        Os::Linux => ("sh", "-c", commands.join("; ")),
    };
    ExecRequest {
        argv: vec![program.to_owned(), flag.to_owned(), script],
        stdin,
    }
}

/// The replies in a session's output, one per target; their number is counted, since an exec can
/// lose output and still end with 0 (kubernetes#124571).
pub fn split(
    targets: &[IpAddr],
    token: &str,
    reply: &ExecReply,
) -> Result<Vec<PingReply>, Trouble> {
    let unrecognised = |why: String| reply.unrecognised(&why);
    match &reply.exit {
        ExitStatus::NotStarted(text) => {
            return Err(Trouble::new(TroubleKind::ExecTransport, text.clone()));
        }
        ExitStatus::Code(0) => {}
        ExitStatus::Code(code) => {
            return Err(unrecognised(format!("the session ended with {code}")));
        }
    }
    let mut rest = reply.stdout.as_str();
    let mut replies = Vec::with_capacity(targets.len());
    for index in 0..targets.len() {
        let marker = format!("@@{token} {index} ");
        let found = rest.split_once(&marker);
        let (text, after) = found.ok_or_else(|| {
            unrecognised(format!("{index} of {} results are there", targets.len()))
        })?;
        let (code, after) = after.split_once('\n').unwrap_or((after, ""));
        let answered = match code.trim_end() {
            "0" => true,
            "1" => false,
            _ => return Err(unrecognised(format!("result `{}`", printable(code)))),
        };
        let text = text.to_owned();
        replies.push(PingReply { answered, text });
        rest = after;
    }
    match rest.trim().is_empty() {
        true => Ok(replies),
        false => Err(unrecognised("output after the last result".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets() -> [IpAddr; 2] {
        [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]
    }

    #[test]
    fn each_target_has_a_command_and_a_mark() {
        let linux = session(Os::Linux, &targets(), "t");
        assert_eq!(
            linux.argv[2],
            "ping -c 1 -W 3 10.0.0.1 2>&1 && echo @@t 0 0 || echo @@t 0 1; \
             ping -c 1 -W 3 10.0.0.2 2>&1 && echo @@t 1 0 || echo @@t 1 1"
        );
        let windows = session(Os::Windows, &targets()[..1], "t");
        assert_eq!(
            windows.argv[2],
            "C:\\Windows\\System32\\ping.exe -n 1 -w 3000 10.0.0.1 && echo @@t 0 0|| echo @@t 0 1"
        );
        let many = vec![IpAddr::from([255; 16]); MOST];
        let curl = ExecRequest {
            argv: ["C:\\Windows\\System32\\curl.exe", "-q", "-K", "-"]
                .map(str::to_owned)
                .to_vec(),
            stdin: None,
        };
        let longest = behind(Os::Windows, &curl, &many, &"f".repeat(32));
        assert!(longest.argv[2].len() < 8191, "{}", longest.argv[2].len());
    }

    #[test]
    fn curl_goes_before() {
        let curl = ExecRequest {
            argv: ["curl", "-q", "-K", "-"].map(str::to_owned).to_vec(),
            stdin: Some("url".to_owned()),
        };
        let both = behind(Os::Linux, &curl, &targets()[..1], "t");
        assert_eq!(
            both.argv[2],
            "curl -q -K - && echo @@t curl 0 || echo @@t curl 1; \
             ping -c 1 -W 3 10.0.0.1 2>&1 && echo @@t 0 0 || echo @@t 0 1"
        );
        assert_eq!(both.stdin, curl.stdin);
        let reply = |stdout: &str, stderr: &str| ExecReply {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            exit: ExitStatus::Code(0),
        };
        let printed = "page\n@@t 0 200\n@@t curl 0\r\none\n@@t 0 0\n";
        let (curl, pings) = apart("t", &reply(printed, "")).expect("both");
        assert_eq!(
            (&*curl.stdout, &curl.exit),
            ("page\n@@t 0 200\n", &ExitStatus::Code(0))
        );
        assert_eq!(pings.stdout, "one\n@@t 0 0\n");
        let failed = printed.replace("curl 0", "curl 1");
        let (curl, _) = apart("t", &reply(&failed, "curl: (6) a\ncurl: (7) b\n")).expect("both");
        assert_eq!(curl.exit, ExitStatus::Code(7));
        for lost in ["", "page\n@@t 0 200\n", "@@t curl \n"] {
            assert!(apart("t", &reply(lost, "")).is_err(), "{lost}");
        }
    }

    #[test]
    fn lost_output_is_trouble() {
        let reply = |stdout: &str, code| ExecReply {
            stdout: stdout.to_owned(),
            stderr: String::new(),
            exit: ExitStatus::Code(code),
        };
        let whole = "one\r\n@@t 0 0\r\ntwo\n@@t 1 1\n";
        let replies = split(&targets(), "t", &reply(whole, 0)).expect("two results");
        assert_eq!(replies[0].text, "one\r\n");
        assert_eq!([replies[0].answered, replies[1].answered], [true, false]);
        for (text, code) in [
            (whole, 1),
            ("", 0),
            ("one\n@@t 0 0\n", 0),
            ("one\n@@t 0 0\ntwo\n@@t 1 ", 0),
            ("one\n@@t 0 0\ntwo\n@@t 1 1\nthree", 0),
            ("one\n@@u 0 0\ntwo\n@@t 1 1\n", 0),
        ] {
            assert!(
                split(&targets(), "t", &reply(text, code)).is_err(),
                "{text}"
            );
        }
    }
}
