//! `-w`: the line that curl writes after each transfer (`src/tool_writeout.c`).

use super::transfer::Transfer;
use super::version::Build;

/// Expands a format into pieces, each for the output (`false`) or the error stream (`true`). An
/// unknown variable is complained about, expands to nothing, and does not fail the run.
pub(super) fn expand(
    format: &str,
    transfer: &Transfer,
    file: &str,
    build: &Build,
) -> Vec<(bool, String)> {
    let mut written = Written::default();
    let mut rest = format;
    while let Some(letter) = rest.chars().next() {
        let tail = &rest[letter.len_utf8()..];
        match (letter, tail.chars().next()) {
            ('%', Some('%')) => {
                written.push("%");
                rest = &tail[1..];
            }
            ('%', Some('{')) => {
                rest = &tail[1..];
                let Some((name, after)) = rest.split_once('}') else {
                    written.push("%{");
                    continue;
                };
                rest = after;
                match name {
                    _ if !build.knows_variable(name) => written.complain(name),
                    "onerror" if transfer.code == 0 => break,
                    "onerror" => {}
                    "stderr" => written.to_stderr = true,
                    "stdout" => written.to_stderr = false,
                    _ => match variable(name, transfer, file, build) {
                        Some(value) => written.push(&value),
                        None if NOT_SIMULATED.contains(&name) => {
                            let text = format!(
                                "curl: hybrid-sim does not simulate the variable '{name}'\n"
                            );
                            written.put(true, &text);
                        }
                        None => written.complain(name),
                    },
                }
            }
            ('\\', Some(escaped)) => {
                match escaped {
                    'n' => written.push("\n"),
                    'r' => written.push("\r"),
                    't' => written.push("\t"),
                    other => written.push(&format!("\\{other}")),
                }
                rest = &tail[escaped.len_utf8()..];
            }
            (other, _) => {
                written.push(other.encode_utf8(&mut [0; 4]));
                rest = tail;
            }
        }
    }
    written.pieces
}

/// Variables that curl knows and this simulator does not.
const NOT_SIMULATED: &[&str] = &[
    "certs",
    "conn_id",
    "ftp_entry_path",
    "header_json",
    "json",
    "num_certs",
    "num_headers",
    "proxy_used",
    "size_header",
    "size_request",
    "speed_download",
    "speed_upload",
    "time_posttransfer",
    "xfer_id",
];

#[derive(Default)]
struct Written {
    to_stderr: bool,
    pieces: Vec<(bool, String)>,
}

impl Written {
    fn push(&mut self, text: &str) {
        self.put(self.to_stderr, text);
    }

    fn complain(&mut self, name: &str) {
        self.put(
            true,
            &format!("curl: unknown --write-out variable: '{name}'\n"),
        );
    }

    fn put(&mut self, to_stderr: bool, text: &str) {
        match self.pieces.last_mut() {
            Some((same, piece)) if *same == to_stderr => piece.push_str(text),
            _ => self.pieces.push((to_stderr, text.to_owned())),
        }
    }
}

fn variable(name: &str, transfer: &Transfer, file: &str, build: &Build) -> Option<String> {
    let seconds = || format!("{:.6}", transfer.total.as_secs_f64());
    let connected = transfer.remote.is_some();
    Some(match name {
        "http_code" | "response_code" => format!("{:03}", transfer.status),
        "http_connect" => "000".to_owned(),
        "http_version" if connected && transfer.status != 0 => "1.1".to_owned(),
        "size_download" => transfer.downloaded.to_string(),
        "size_upload" => transfer.uploaded.to_string(),
        "time_total" => seconds(),
        "time_connect" | "time_pretransfer" | "time_starttransfer" if connected => seconds(),
        "time_connect" | "time_pretransfer" | "time_starttransfer" | "time_appconnect"
        | "time_redirect" => "0.000000".to_owned(),
        "time_namelookup" => "0.000021".to_owned(),
        "num_connects" => transfer.connects.to_string(),
        "num_redirects" => transfer.redirects.to_string(),
        "exitcode" => transfer.code.to_string(),
        "errormsg" => transfer.error.clone(),
        "urlnum" => transfer.number.to_string(),
        "url" => transfer.url.clone(),
        "url_effective" => transfer.effective.clone(),
        "method" => transfer.method.clone(),
        // lib/http.c: the name of the handler, in capitals until 8.7
        "scheme" if build.since(8, 8) || transfer.scheme.is_empty() => transfer.scheme.to_owned(),
        "scheme" => transfer.scheme.to_uppercase(),
        "remote_ip" => transfer
            .remote
            .map(|(address, _)| address.to_string())
            .unwrap_or_default(),
        "remote_port" => transfer.remote.map_or(0, |(_, port)| port).to_string(),
        "local_ip" => transfer
            .local
            .map(|address| address.to_string())
            .unwrap_or_default(),
        "local_port" => u16::from(transfer.local.is_some())
            .saturating_mul(49152)
            .to_string(),
        "content_type" => transfer.content_type.clone(),
        "filename_effective" => file.to_owned(),
        "redirect_url" => transfer.redirect.clone(),
        "referer" => String::new(),
        "http_version" | "num_retries" | "ssl_verify_result" | "proxy_ssl_verify_result" => {
            "0".to_owned()
        }
        _ => return None,
    })
}
