//! One session for many pings: what is sent, and how its output is taken apart.
//!
//! No ping takes several addresses, so each system's own interpreter runs one after the other. It
//! is given addresses and a token, and nothing else that comes from elsewhere.

use std::net::IpAddr;

use crate::facts::Os;
use crate::text::printable;
use crate::way::exchange::{ExecReply, ExecRequest, ExitStatus, PingReply};
use crate::way::trouble::{Trouble, TroubleKind};

/// Targets of one session: `cmd` takes 8,191 characters (Microsoft, command prompt line string
/// limitation), and a target needs a hundred.
pub const MOST: usize = 60;

/// The exec that pings every target once. `token` must be unpredictable to whoever answers.
///
/// `-n 1 -w 3000` and `-c 1 -W 3`: one request, three seconds.
pub fn session(os: Os, targets: &[IpAddr], token: &str) -> ExecRequest {
    let each = targets.iter().enumerate().map(|(index, target)| {
        let ping = match os {
            Os::Windows => format!("C:\\Windows\\System32\\ping.exe -n 1 -w 3000 {target}"),
            Os::Linux => format!("ping -c 1 -W 3 {target} 2>&1"),
        };
        let then = |code: u8| format!("echo @@{token} {index} {code}");
        let space = match os {
            // `echo x || y` prints the space, too
            Os::Windows => "",
            Os::Linux => " ",
        };
        format!("{ping} && {}{space}|| {}", then(0), then(1))
    });
    let each: Vec<_> = each.collect();
    let (program, script): (&[&str], _) = match os {
        Os::Windows => (
            &["C:\\Windows\\System32\\cmd.exe", "/d", "/s", "/c"],
            each.join("& "),
        ),
        Os::Linux => (&["sh", "-c"], each.join("; ")),
    };
    let mut argv: Vec<_> = program.iter().map(|&word| word.to_owned()).collect();
    argv.push(script);
    ExecRequest { argv, stdin: None }
}

/// The replies in a session's output, one per target; their number is counted, since an exec can
/// lose output and still end with 0 (kubernetes#124571).
pub fn split(
    targets: &[IpAddr],
    token: &str,
    reply: &ExecReply,
) -> Result<Vec<PingReply>, Trouble> {
    let unrecognised = |why: String| {
        let detail = format!(
            "{why}; output `{}`, errors `{}`",
            printable(&reply.stdout),
            printable(&reply.stderr)
        );
        Trouble::new(TroubleKind::UnrecognisedOutput, detail)
    };
    match &reply.exit {
        ExitStatus::NotStarted(text) => {
            return Err(Trouble::new(TroubleKind::ExecTransport, text.clone()));
        }
        ExitStatus::Code(0) => {}
        ExitStatus::Code(code) => return Err(unrecognised(format!("the session ended with {code}"))),
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
            windows.argv[4],
            "C:\\Windows\\System32\\ping.exe -n 1 -w 3000 10.0.0.1 && echo @@t 0 0|| echo @@t 0 1"
        );
        let many = vec![IpAddr::from([255; 16]); MOST];
        let longest = session(Os::Windows, &many, &"f".repeat(32));
        assert!(longest.argv[4].len() < 8191, "{}", longest.argv[4].len());
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
            assert!(split(&targets(), "t", &reply(text, code)).is_err(), "{text}");
        }
    }
}
