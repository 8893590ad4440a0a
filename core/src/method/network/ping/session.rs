//! One session for many pings: how its output is split into replies.
//!
//! A ping takes one address only, so each system's shell runs one after the other.

use std::net::IpAddr;

use crate::command::Token;
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::{ExecReply, ExitStatus, PingReply};
use crate::method::network::curl::failures;
use crate::text::printable;

/// Targets of one session: `cmd` takes 8,191 characters (Microsoft, command prompt line string
/// limitation), and a target needs up to 180.
pub const MOST: usize = 40;

/// Splits the output into what curl and what the pings after it printed. The line after curl says whether it
/// failed; its last message has the code.
pub fn apart(token: &Token, reply: &ExecReply) -> Result<(ExecReply, ExecReply)> {
    let ExitStatus::Code(0) = &reply.exit else {
        return Ok((reply.clone(), reply.clone()));
    };
    let parts = reply.stdout.split_once(&format!("@@{token} curl "));
    let line = parts.map(|(before, after)| (before, after.split_once('\n').unwrap_or((after, ""))));
    let (before, ended, after) = match line {
        Some((before, (code, after))) if matches!(code.trim_end(), "0" | "1") => {
            (before, code.trim_end() == "0", after)
        }
        _ => {
            let shown = printable(&reply.stdout);
            let detail = format!("the line after curl's output is missing: `{shown}`");
            return Err(ErrorKind::UnrecognisedOutput.error(detail));
        }
    };
    let part = |stdout: &str, exit| ExecReply {
        stdout: stdout.to_owned(),
        stderr: reply.stderr.clone(),
        exit: ExitStatus::Code(exit),
    };
    let code = match ended {
        true => 0,
        false => failures(&reply.stderr)
            .last()
            .map_or(1, |(code, _)| i64::from(code)),
    };
    Ok((part(before, code), part(after, 0)))
}

/// Splits a session's output into replies, one per target.
pub fn split(targets: &[IpAddr], token: &Token, reply: &ExecReply) -> Result<Vec<PingReply>> {
    match &reply.exit {
        ExitStatus::NotStarted(text) => {
            return Err(ErrorKind::ExecTransport.error(text.clone()));
        }
        ExitStatus::Code(0) => {}
        ExitStatus::Code(code) => {
            return Err(reply.unrecognised(&format!("the session ended with {code}")));
        }
    }
    let markers = (0..targets.len()).map(|index| format!("@@{token} {index} "));
    let parts = reply.split(&markers.collect::<Vec<_>>())?.into_iter();
    let replies = parts.map(|(text, code)| {
        let answered = match code {
            "0" => true,
            "1" => false,
            _ => return Err(reply.unrecognised(&format!("result `{}`", printable(code)))),
        };
        let text = text.to_owned();
        Ok(PingReply { answered, text })
    });
    replies.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, Curl, HttpSession};
    use crate::facts::Os;
    use std::time::Duration;

    fn token() -> Token {
        Token::parse("t").expect("a token")
    }

    fn targets() -> [IpAddr; 2] {
        [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]
    }

    #[test]
    fn the_longest_session_is_no_longer_than_cmd_takes() {
        let second = Duration::from_secs(1);
        let curl = HttpSession {
            curl: Curl::Agnhost,
            gets: Vec::new(),
            token: token(),
            connect: second,
            total: second,
        };
        let longest = Command::Pings {
            targets: vec![IpAddr::from([255; 16]); MOST],
            token: Token::random(u128::MAX),
            after: Some(curl),
        };
        let request = longest.on(Os::Windows).expect("of Windows");
        let length = request.argv()[2].len();
        assert!(length < 8191, "{length}");
    }

    #[test]
    fn curl_goes_before() {
        let reply = |stdout: &str, stderr: &str| ExecReply {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            exit: ExitStatus::Code(0),
        };
        let printed = "page\n@@t 0 200\n@@t curl 0\r\none\n@@t 0 0\n";
        let (curl, pings) = apart(&token(), &reply(printed, "")).expect("both");
        assert_eq!(
            (&*curl.stdout, &curl.exit),
            ("page\n@@t 0 200\n", &ExitStatus::Code(0))
        );
        assert_eq!(pings.stdout, "one\n@@t 0 0\n");
        let failed = printed.replace("curl 0", "curl 1");
        let (curl, _) =
            apart(&token(), &reply(&failed, "curl: (6) a\ncurl: (7) b\n")).expect("both");
        assert_eq!(curl.exit, ExitStatus::Code(7));
        for lost in ["", "page\n@@t 0 200\n", "@@t curl \n"] {
            assert!(apart(&token(), &reply(lost, "")).is_err(), "{lost}");
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
        let replies = split(&targets(), &token(), &reply(whole, 0)).expect("two results");
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
                split(&targets(), &token(), &reply(text, code)).is_err(),
                "{text}"
            );
        }
    }
}
