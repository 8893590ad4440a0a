//! The bearer token of requests: from the kubeconfig, a file, or a credential plugin.
//!
//! kube's own code panics on a token with a newline, and waits for a plugin without limit. kube still handles
//! the other credentials, client certificates and passwords.

use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;
use winconform_core::record::redact;
use winconform_core::text::{bound, printable};

use crate::transport::Env;

/// The limit for a plugin: a user may have to log in in a window that it opens.
const PLUGIN: Duration = Duration::from_mins(1);
/// How long a token file is not read again, as in client-go.
const FILE: SignedDuration = SignedDuration::from_mins(1);
/// The remaining lifetime at which a token is replaced.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// The most bytes of a plugin's error output that an error quotes.
const QUOTED: usize = 2000;

#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct CredentialError {
    pub(crate) why: String,
    pub(crate) hint: String,
}

fn refused(why: impl Into<String>, hint: &str) -> CredentialError {
    let (why, hint) = (why.into(), hint.to_owned());
    CredentialError { why, hint }
}

/// Where tokens come from.
enum Source {
    Kubeconfig,
    File(PathBuf),
    Plugin(Box<ExecConfig>),
}

/// A token, ready to be sent.
struct Held {
    header: HeaderValue,
    until: Option<Timestamp>,
}

impl Held {
    fn new(token: &str, from: &str, until: Option<Timestamp>) -> Result<Self, CredentialError> {
        let mut header =
            HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(|_| {
                let why = format!("{from} holds characters that no HTTP header may");
                refused(why, "write it again")
            })?;
        header.set_sensitive(true);
        Ok(Self { header, until })
    }
}

/// A bearer token that is kept up to date.
pub(crate) struct Credential {
    env: Env,
    source: Source,
    held: Mutex<Held>,
}

impl Credential {
    /// Takes the token out of a kubeconfig's user, or gets one from a file or a plugin. Puts a plugin's
    /// client certificate into the user.
    pub(crate) async fn extract(
        env: &Env,
        user: &mut AuthInfo,
    ) -> Result<Option<Arc<Self>>, CredentialError> {
        if user.username.is_some() && user.password.is_some() {
            return Ok(None);
        }
        // The type hides its token when it is shown, but not when it is serialized
        let written = json!(user)["token"].as_str().map(str::to_owned);
        // As in client-go, an empty token is no token
        let written = written.filter(|token| !token.trim().is_empty());
        user.token = None;
        let (source, held) = match (written, user.token_file.take(), user.exec.take()) {
            (Some(token), ..) => {
                let held = Held::new(&token, "the kubeconfig's token", None)?;
                (Source::Kubeconfig, held)
            }
            (None, Some(path), _) => {
                let path = PathBuf::from(path);
                let held = read(env, &path)?;
                (Source::File(path), held)
            }
            (None, None, Some(plugin)) => {
                let answer = ask(&plugin).await?;
                if let (Some(certificate), Some(key)) = (&answer.certificate, &answer.key) {
                    let base64 =
                        |pem: &str| json!(ByteString(pem.into())).as_str().map(str::to_owned);
                    user.client_certificate_data = base64(certificate);
                    user.client_key_data = base64(key).map(Into::into);
                }
                match answer.token.as_deref().map(str::trim) {
                    Some(token) if !token.is_empty() => {
                        let held = answer.held(&plugin)?;
                        (Source::Plugin(Box::new(plugin)), held)
                    }
                    Some(_) | None => return Ok(None),
                }
            }
            (None, None, None) => return Ok(None),
        };
        let held = Mutex::new(held);
        let env = env.clone();
        Ok(Some(Arc::new(Self { env, source, held })))
    }

    /// The `Authorization` header of a request. A plugin runs on when its request is dropped, so that the
    /// next request waits for it and starts no other.
    pub(crate) async fn header(self: Arc<Self>) -> Result<HeaderValue, CredentialError> {
        let task = tokio::spawn(async move {
            let mut held = self.held.lock().await;
            let is_due = |until| self.env.now() + MARGIN >= until;
            if held.until.is_some_and(is_due) {
                match &self.source {
                    Source::Kubeconfig => {}
                    // The token read last may still be valid
                    Source::File(path) => match read(&self.env, path) {
                        Ok(read) => *held = read,
                        Err(_) => held.until = Some(self.env.now() + FILE),
                    },
                    Source::Plugin(plugin) => *held = ask(plugin).await?.held(plugin)?,
                }
            }
            Ok(held.header.clone())
        });
        let gone = |_| Err(refused("the credential plugin was given up", "run again"));
        task.await.unwrap_or_else(gone)
    }

    /// Notes that the server does not accept the token `sent`: the next request gets another, as in
    /// client-go.
    pub(crate) async fn expire(&self, sent: &HeaderValue) {
        let mut held = self.held.lock().await;
        if held.header == *sent {
            held.until = Some(Timestamp::UNIX_EPOCH);
        }
    }
}

fn read(env: &Env, path: &Path) -> Result<Held, CredentialError> {
    let shown = printable(&path.display().to_string());
    let from = format!("the token file `{shown}`");
    let token = std::fs::read_to_string(path).map_err(|error| {
        let why = format!("{from} cannot be read: {error}");
        refused(why, "check the `tokenFile` of the kubeconfig's user")
    })?;
    Held::new(&token, &from, Some(env.now() + FILE))
}

/// A plugin's answer (`client.authentication.k8s.io`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    token: Option<String>,
    #[serde(rename = "expirationTimestamp")]
    until: Option<String>,
    #[serde(rename = "clientCertificateData")]
    certificate: Option<String>,
    #[serde(rename = "clientKeyData")]
    key: Option<String>,
}

impl Answer {
    fn held(&self, plugin: &ExecConfig) -> Result<Held, CredentialError> {
        let until = self.until.as_ref().and_then(|until| until.parse().ok());
        let from = format!("the token of {}", name(plugin));
        Held::new(self.token.as_deref().unwrap_or_default(), &from, until)
    }
}

fn name(plugin: &ExecConfig) -> String {
    let command = plugin.command.as_deref().unwrap_or_default();
    format!("`{}`", printable(command))
}

async fn ask(plugin: &ExecConfig) -> Result<Answer, CredentialError> {
    let name = name(plugin);
    let interactive = match plugin.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::Always) => true,
        Some(ExecInteractiveMode::IfAvailable) | None => std::io::stdin().is_terminal(),
    };
    let mut spec = json!({ "interactive": interactive });
    if plugin.provide_cluster_info {
        spec["cluster"] = json!(plugin.cluster);
    }
    let version = &plugin.api_version;
    let info = json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec});
    let variables = plugin.env.iter().flatten();
    let variables = variables.filter_map(|one| Some((one.get("name")?, one.get("value")?)));
    // A user at a terminal sees at once what the plugin wants
    let stream = |inherited: fn() -> Stdio, else_: fn() -> Stdio| match interactive {
        true => inherited(),
        false => else_(),
    };
    let running = Command::new(plugin.command.as_deref().unwrap_or_default())
        .args(plugin.args.iter().flatten())
        .envs(variables)
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdin(stream(Stdio::inherit, Stdio::null))
        .stdout(Stdio::piped())
        .stderr(stream(Stdio::inherit, Stdio::piped))
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| missing(plugin, &error))?;
    let log_in = "log in with it, then run again";
    let Ok(output) = timeout(PLUGIN, running.wait_with_output()).await else {
        let limit = PLUGIN.as_secs();
        let why = format!("{name} gave no credential within {limit} s, and was ended");
        return Err(refused(why, log_in));
    };
    let output = output.map_err(|error| refused(format!("{name}: {error}"), log_in))?;
    if !output.status.success() {
        let mut said = redact(String::from_utf8_lossy(&output.stderr).trim());
        bound(&mut said, QUOTED);
        let said = match (said.as_str(), interactive) {
            ("", true) => "its own words are above".to_owned(),
            ("", false) => "it said nothing".to_owned(),
            (said, _) => said.lines().map(printable).collect::<Vec<_>>().join("\n"),
        };
        let why = format!("{name} ended with {}: {said}", output.status);
        return Err(refused(why, log_in));
    }
    // The plugin's output may hold the credential, so no error quotes it
    let read: Option<Json> = serde_saphyr::from_slice(&output.stdout).ok();
    let status = read.and_then(|read| read.get("status").cloned());
    let answer = status.and_then(|status| Answer::deserialize(status).ok());
    let given = |answer: &Answer| answer.token.is_some() || answer.certificate.is_some();
    answer.filter(given).ok_or_else(|| {
        let why = format!("what {name} printed is no ExecCredential with a credential");
        refused(why, log_in)
    })
}

/// The error for a plugin that cannot be started; most often it is not installed.
fn missing(plugin: &ExecConfig, error: &std::io::Error) -> CredentialError {
    let name = name(plugin);
    let hint = match (&plugin.install_hint, error.kind()) {
        (Some(hint), _) => {
            let lines: Vec<_> = hint.trim().lines().map(printable).collect();
            lines.join("\n")
        }
        (None, ErrorKind::NotFound) => "install it, or put it on the PATH".to_owned(),
        (None, _) => "check that it may be run".to_owned(),
    };
    refused(
        format!("the credential plugin {name} cannot be started: {error}"),
        &hint,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(command: &str) -> AuthInfo {
        let exec = json!({"command": "sh", "args": ["-c", command], "interactiveMode": "Never"});
        serde_json::from_value(json!({ "exec": exec })).expect("a user")
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_hangs_is_ended() {
        let asked = Credential::extract(&Env::system(), &mut plugin("exec sleep 1000")).await;
        let said = asked.err().expect("it hangs").why;
        assert!(
            said.starts_with("`sh` gave no credential within 60 s, and was ended"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn a_plugin_is_asked_again_when_its_token_ends_and_not_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("asked");
        let file = file.display();
        for (until, times) in [("2000-01-01T00:00:00Z", 3), ("9000-01-01T00:00:00Z", 1)] {
            let status =
                format!(r#"{{"status":{{"token":"a\n","expirationTimestamp":"{until}"}}}}"#);
            let command = format!("echo >> {file}; echo '{status}'");
            std::fs::write(folder.path().join("asked"), "").expect("written");
            let asked = Credential::extract(&Env::system(), &mut plugin(&command)).await;
            let credential = asked.expect("it answers").expect("a token");
            for _ in 0..2 {
                let header = credential.clone().header().await;
                assert_eq!(header.expect("a header"), "Bearer a");
            }
            let asked = std::fs::read_to_string(folder.path().join("asked")).expect("read");
            assert_eq!(asked.lines().count(), times);
        }
    }

    #[tokio::test]
    async fn a_certificate_of_a_plugin_is_left_to_kube() {
        let status = r#"echo 'status: {clientCertificateData: "c", clientKeyData: "k"}'"#;
        let mut user = plugin(status);
        let none = Credential::extract(&Env::system(), &mut user)
            .await
            .expect("it answers");
        assert!(none.is_none() && user.exec.is_none());
        assert_eq!(user.client_certificate_data.as_deref(), Some("Yw=="));
        assert_eq!(json!(user)["client-key-data"], "aw==");
    }
}
