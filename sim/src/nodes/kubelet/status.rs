//! The Status objects that end an exec session (cri-streaming, remotecommand/exec.go).

use serde_json::{Value, json};

/// The Status of a command that ended with an exit code.
pub(super) fn exited(argv: &[String], code: u32) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    let command = argv.join(" ");
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!(
            "command terminated with non-zero exit code: error executing command [{command}], exit code {code}"
        ),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

/// The Status of a command that could not run.
pub(super) fn not_run(text: &str) -> Value {
    let message = format!("error executing command in container: {text}");
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("Internal error occurred: {message}"),
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_causes() {
        let status = exited(&["cmd".to_owned()], 3_221_225_794);
        assert_eq!(status["details"]["causes"][0]["message"], "3221225794");
        assert_eq!(exited(&[], 0)["status"], "Success");
    }
}
