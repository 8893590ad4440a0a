//! Whether the Service of a scenario's fixture leads to the scenario's pod, which answers with its name.

use std::time::Duration;

use crate::command::{Command, Curl, ExecRequest, Host, HttpGet, HttpSession, Token};
use crate::method::error::{ErrorKind, Result};
use crate::method::exchange::{ExecReply, ExitStatus, Play};
use crate::text::printable;

/// How curl ends where no answer comes: refused, timed out, nothing, reset (curl, EXIT CODES).
const UNANSWERED: [i64; 4] = [7, 28, 52, 56];

/// How often it is asked at once: it may still lead to pods that are gone besides.
const TIMES: usize = 3;

impl Play {
    /// The command that asks the Service for the name of the pod behind it.
    pub fn service_request(&self) -> Result<ExecRequest> {
        let Some((address, port)) = self.service else {
            return Err(ErrorKind::FixtureFailed.error("the pod's Service has no address"));
        };
        let get = HttpGet {
            host: Host::Address(address),
            port,
            path: "/hostname".to_owned(),
        };
        let os = self.of.name.os();
        let session = HttpSession {
            curl: Curl::of(os),
            gets: vec![get; TIMES],
            token: Token::parse("asked").expect("a word that is built in is valid"),
            connect: Duration::from_secs(4),
            total: Duration::from_secs(8),
        };
        Ok(Command::HttpSession(session).on(os)?)
    }

    /// Whether the pod has answered that command once.
    pub fn has_answered(&self, reply: &ExecReply) -> Result<bool> {
        match &reply.exit {
            _ if reply.stdout.contains(&self.container.name) => Ok(true),
            ExitStatus::Code(0) if reply.stdout.is_empty() => {
                Err(reply.unrecognised("exit code 0 without any output"))
            }
            ExitStatus::Code(0) => Ok(false),
            ExitStatus::Code(code) if UNANSWERED.contains(code) => Ok(false),
            ExitStatus::Code(code) => Err(reply.unrecognised(&format!("exit code {code}"))),
            ExitStatus::NotStarted(why) => Err(ErrorKind::ToolMissing.error(printable(why))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FixtureName;
    use crate::method::container::scenario::Scenario;
    use crate::method::exchange::PodRef;

    fn play(service: Option<(std::net::IpAddr, u16)>) -> Play {
        Play {
            scenario: Scenario::ReadinessProbe,
            of: FixtureName::WINDOWS_POD_PROBER.in_pool(None),
            container: PodRef {
                namespace: "n".to_owned(),
                name: "readiness".to_owned(),
                container: "main".to_owned(),
            },
            service,
        }
    }

    #[test]
    fn the_service_is_asked_by_its_address() {
        let request = play(Some(([10, 96, 0, 7].into(), 80))).service_request();
        let request = request.expect("a command");
        let session = request.stdin().expect("a session of curl");
        let url = "url = \"http://10.96.0.7:80/hostname\"";
        assert_eq!(session.matches(url).count(), 3);
        let error = play(None).service_request().expect_err("no address");
        assert_eq!(error.kind, ErrorKind::FixtureFailed);
    }

    #[test]
    fn only_the_pod_s_own_name_is_its_answer() {
        let answered = |exit, stdout: &str| {
            play(None).has_answered(&ExecReply {
                stdout: stdout.to_owned(),
                stderr: String::new(),
                exit,
            })
        };
        let code = ExitStatus::Code;
        assert_eq!(answered(code(0), "readiness\r\n"), Ok(true));
        assert_eq!(answered(code(0), "a captive portal"), Ok(false));
        for unanswered in [7, 28, 52, 56] {
            assert_eq!(answered(code(unanswered), ""), Ok(false));
        }
        let kind = |exit| answered(exit, "").expect_err("nothing is known").kind;
        for unknown in [0, 3] {
            assert_eq!(kind(code(unknown)), ErrorKind::UnrecognisedOutput);
        }
        let missing = ExitStatus::NotStarted("no curl".to_owned());
        assert_eq!(kind(missing), ErrorKind::ToolMissing);
    }
}
