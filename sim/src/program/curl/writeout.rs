//! `-w`: the line that curl writes after each transfer (`src/tool_writeout.c`).

use super::Build;
use super::transfer::Transfer;

/// What one `-w` writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Expands a format. An unknown variable is complained about, expands to nothing, and does not fail
/// the run.
pub(super) fn expand(format: &str, transfer: &Transfer, build: Build) -> Written {
    let mut written = Written::default();
    let mut rest = format;
    while let Some(letter) = rest.chars().next() {
        let tail = &rest[letter.len_utf8()..];
        match (letter, tail.chars().next()) {
            ('%', Some('%')) => {
                written.stdout.push('%');
                rest = &tail[1..];
            }
            ('%', Some('{')) => {
                rest = &tail[1..];
                let Some((name, after)) = rest.split_once('}') else {
                    written.stdout.push_str("%{");
                    continue;
                };
                match variable(name, transfer, build) {
                    Some(value) => written.stdout.push_str(&value),
                    None => written.stderr.push_str(&unknown(name)),
                }
                rest = after;
            }
            ('\\', Some(escaped)) => {
                match escaped {
                    'n' => written.stdout.push('\n'),
                    'r' => written.stdout.push('\r'),
                    't' => written.stdout.push('\t'),
                    other => written.stdout.extend(['\\', other]),
                }
                rest = &tail[escaped.len_utf8()..];
            }
            (other, _) => {
                written.stdout.push(other);
                rest = tail;
            }
        }
    }
    written
}

fn unknown(name: &str) -> String {
    format!("curl: unknown --write-out variable: '{name}'\n")
}

fn variable(name: &str, transfer: &Transfer, build: Build) -> Option<String> {
    // Those that came with 7.75
    if matches!(name, "exitcode" | "errormsg" | "urlnum" | "onerror") && build.version() < (7, 75) {
        return None;
    }
    let seconds = || format!("{:.6}", transfer.total.as_secs_f64());
    let size = transfer.body.len();
    Some(match name {
        "http_code" | "response_code" => format!("{:03}", transfer.status),
        "http_connect" => "000".to_owned(),
        "size_download" => size.to_string(),
        "time_total" | "time_starttransfer" | "time_connect" => seconds(),
        "time_namelookup" => "0.000021".to_owned(),
        "num_connects" => transfer.connects.to_string(),
        "exitcode" => transfer.code.to_string(),
        "errormsg" => transfer.error.clone(),
        "urlnum" => transfer.number.to_string(),
        "url" | "url_effective" => transfer.url.clone(),
        "method" => "GET".to_owned(),
        "scheme" => "http".to_owned(),
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
        "num_redirects" | "size_header" | "size_request" => "0".to_owned(),
        "content_type" | "filename_effective" | "redirect_url" => String::new(),
        _ => return None,
    })
}
