//! What an exec's channels carry, without I/O (kubernetes `remotecommand` constants, v4 and v5).

use serde_json::Value as Json;
use winconform_core::method::{ErrorKind, ExecReply, ExitStatus, ObservationError, Result};
use winconform_core::text::printable;

/// The channel of standard input.
pub(crate) const STDIN: u8 = 0;
/// The channel that ends another channel, which the next byte names; v5 only.
pub(crate) const CLOSE: u8 = 255;

const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;

/// A bound in bytes that no Status of an exec reaches.
const STATUS_LIMIT: usize = 256 << 10;

/// The data received so far.
#[derive(Debug, Default)]
pub(crate) struct Session {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    error: Vec<u8>,
    status: Option<Json>,
}

impl Session {
    /// Reads one message, and returns whether it held data; `limit` bounds each output in bytes.
    pub(crate) fn read_message(&mut self, message: &[u8], limit: usize) -> Result<bool> {
        let Some((&channel, data)) = message.split_first() else {
            return Ok(false);
        };
        if data.is_empty() {
            return Ok(false);
        }
        let (kept, limit, what) = match channel {
            STDOUT => (&mut self.stdout, limit, "standard output"),
            STDERR => (&mut self.stderr, limit, "standard error"),
            ERROR => (&mut self.error, STATUS_LIMIT, "the exit status"),
            CLOSE => return Ok(false),
            other => {
                let detail = format!("a message on channel {other}, which has no meaning");
                return Err(ErrorKind::ExecTransport.error(detail));
            }
        };
        if kept.len() + data.len() > limit {
            let detail = format!("{what} is larger than {limit} bytes");
            return Err(ErrorKind::OutputTruncated.error(detail));
        }
        kept.extend_from_slice(data);
        if channel == ERROR {
            self.status = serde_json::from_slice(&self.error).ok();
        }
        Ok(true)
    }

    /// Whether the exit status has arrived.
    pub(crate) fn is_over(&self) -> bool {
        self.status.is_some()
    }

    /// The reply, after the stream ended; `lost` is the error if no exit status arrived.
    pub(crate) fn finish(self, lost: ObservationError) -> Result<ExecReply> {
        let Some(status) = &self.status else {
            return Err(lost);
        };
        let exit = exit_status(status)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(ExecReply {
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
            exit,
        })
    }
}

/// The exit status in a Status of channel 3.
fn exit_status(status: &Json) -> Result<ExitStatus> {
    match status["status"].as_str() {
        Some("Success") => Ok(ExitStatus::Code(0)),
        Some("Failure") if status["reason"] == "NonZeroExitCode" => {
            let causes = status["details"]["causes"].as_array().into_iter().flatten();
            let code = causes
                .filter(|cause| cause["reason"] == "ExitCode")
                .find_map(|cause| cause["message"].as_str()?.parse().ok());
            code.map(ExitStatus::Code).ok_or_else(|| {
                let detail = format!("a failure without its code: {}", shown(status));
                ErrorKind::ExitStatusLost.error(detail)
            })
        }
        Some("Failure") => {
            let message = status["message"].as_str().unwrap_or("no message");
            // The API server also reports here that it lost the kubelet
            if !is_not_started(message) && is_transport(message) {
                return Err(ErrorKind::ExecTransport.error(printable(message)));
            }
            Ok(ExitStatus::NotStarted(printable(message)))
        }
        _ => {
            let detail = format!("not an exit status: {}", shown(status));
            Err(ErrorKind::ExitStatusLost.error(detail))
        }
    }
}

fn shown(status: &Json) -> String {
    printable(&status.to_string())
}

/// Whether a container runtime's message says that it could not start a program (containerd
/// `failed to exec in container`; runc; hcsshim `hcs::System::CreateProcess`).
pub(crate) fn is_not_started(message: &str) -> bool {
    [
        "failed to exec in container",
        "failed to start exec",
        "executable file not found",
        "cannot find the file specified",
        "cannot find the path specified",
        "hcs::System::CreateProcess",
        "OCI runtime exec failed",
        "no such file or directory: unknown",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// Whether a message is about the connection to the kubelet, not about the program: the text that
/// `k8s.io/apiserver` `StreamTranslatorHandler` puts into its `InternalError`.
fn is_transport(message: &str) -> bool {
    [
        "error dialing backend",
        "unable to upgrade connection",
        "error stream",
        "connection refused",
        "connection reset",
        "broken pipe",
        "i/o timeout",
        "EOF",
        "use of closed network connection",
        "context canceled",
        "no route to host",
        "TLS handshake timeout",
    ]
    .iter()
    .any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lost() -> ObservationError {
        ErrorKind::ExitStatusLost.error("closed")
    }

    fn session(messages: &[(u8, &str)]) -> Session {
        let mut session = Session::default();
        for (channel, data) in messages {
            let message = [&[*channel], data.as_bytes()].concat();
            session
                .read_message(&message, 16)
                .expect("within the limit");
        }
        session
    }

    fn exit(status: &Json) -> Result<ExitStatus, ErrorKind> {
        let reply = session(&[(3, &status.to_string())]).finish(lost());
        let exit = reply.map(|reply| reply.exit);
        exit.map_err(|error| error.kind)
    }

    #[test]
    fn output_is_kept_apart_and_the_status_may_come_in_pieces() {
        let pieces = [
            (1, "out"),
            (2, "err"),
            (3, r#"{"status":"#),
            (3, r#""Success"}"#),
            (1, "!"),
        ];
        let reply = session(&pieces).finish(lost()).expect("a status");
        assert_eq!([&*reply.stdout, &*reply.stderr], ["out!", "err"]);
        assert_eq!(reply.exit, ExitStatus::Code(0));
    }

    #[test]
    fn without_a_status_nothing_is_known() {
        assert_eq!(session(&[(1, "200 OK")]).finish(lost()), Err(lost()));
        assert_eq!(session(&[(3, "{\"status\":")]).finish(lost()), Err(lost()));
        let other = exit(&json!({"kind": "Status"}));
        assert_eq!(other, Err(ErrorKind::ExitStatusLost));
    }

    #[test]
    fn exit_codes_are_read_and_never_guessed() {
        let failure = |causes: Json| json!({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}});
        let code = json!([{"reason": "ExitCode", "message": "28"}]);
        assert_eq!(exit(&failure(code)), Ok(ExitStatus::Code(28)));
        // Windows: 0xC0000005
        let code = json!([{"reason": "ExitCode", "message": "3221225477"}]);
        assert_eq!(exit(&failure(code)), Ok(ExitStatus::Code(3_221_225_477)));
        for none in [
            json!([]),
            json!(null),
            json!([{"reason": "ExitCode", "message": "x"}]),
        ] {
            assert_eq!(exit(&failure(none)), Err(ErrorKind::ExitStatusLost));
        }
    }

    #[test]
    fn a_missing_program_and_a_lost_kubelet_are_told_apart() {
        let failure = |message: &str| json!({"status": "Failure", "message": message});
        for message in [
            "error executing command in container: failed to exec in container: failed to start \
             exec \"x\": OCI runtime exec failed: exec failed: unable to start container process: \
             exec: \"curl\": executable file not found in $PATH: unknown",
            "hcs::System::CreateProcess x: The system cannot find the file specified.: unknown",
            "something new",
        ] {
            let exit = exit(&failure(message));
            assert!(matches!(exit, Ok(ExitStatus::NotStarted(_))), "{message}");
        }
        for message in [
            "Internal error occurred: error dialing backend: dial tcp 10.0.0.1:10250: connect: \
             connection refused",
            "Internal error occurred: error reading from error stream: read: connection reset",
        ] {
            let exit = exit(&failure(message));
            assert_eq!(exit, Err(ErrorKind::ExecTransport), "{message}");
        }
    }

    #[test]
    fn too_much_output_is_trouble() {
        let mut session = Session::default();
        assert_eq!(session.read_message(b"\x01123456789", 16), Ok(true));
        let error = session
            .read_message(b"\x01123456789", 16)
            .expect_err("18 bytes");
        assert_eq!(error.kind, ErrorKind::OutputTruncated);
        assert_eq!(session.read_message(b"", 16), Ok(false));
        assert_eq!(session.read_message(b"\x02", 16), Ok(false));
        assert!(session.read_message(b"\x07x", 16).is_err());
    }
}
