//! No cluster: a kubeconfig that leads nowhere, or a server that is no API server.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::server::{Answer, Manners, Server, status};
use super::tool::{Said, Tool, check};

const SECRET: &str = "s3cr3t-t0ken";

/// A kubeconfig of one context `lab` with a token.
pub(crate) fn kubeconfig(server: &str, authority: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: one\n  cluster:\n    server: {server}\n\
         {authority}users:\n- name: me\n  user: {{token: {SECRET}}}\ncontexts:\n\
         - name: lab\n  context: {{cluster: one, user: me}}\n"
    )
}

/// Checks the error of `plan` with this kubeconfig and more arguments.
#[track_caller]
fn refused(name: &str, kubeconfig: impl AsRef<[u8]>, more: &[&str]) {
    let tool = Tool::new();
    tool.write("config", kubeconfig);
    planned(name, &tool, more, "");
}

/// Like `refused`, with the files in the tool's folder; hides the address, which differs from run to run.
#[track_caller]
fn planned(name: &str, tool: &Tool, more: &[&str], address: &str) {
    let arguments = [["plan", "--kubeconfig", "config"].as_slice(), more].concat();
    let mut said = tool.run(&arguments).errors();
    assert!(!said.contains(SECRET), "{said}");
    if !address.is_empty() {
        said = said.replace(address, "ADDRESS");
    }
    check(&format!("kubeconfig-{name}"), &said);
}

#[track_caller]
fn met(name: &str, server: &Server) {
    let tool = Tool::new();
    tool.write(
        "config",
        kubeconfig(&format!("http://{}", server.address), ""),
    );
    // A server that says nothing is not waited for as long as usual
    tool.write("brisk.yaml", "durations: {api-answer: 1s}\n");
    let brisk = ["--config", "brisk.yaml"];
    planned(name, &tool, &brisk, &server.address.to_string());
}

#[test]
fn files_that_are_no_kubeconfig() {
    let tool = Tool::new();
    std::os::unix::fs::symlink("/dev/zero", tool.path("config")).expect("a link");
    planned("device", &tool, &[], "");
    refused(
        "malformed",
        format!("apiVersion: v1\nusers:\n- name: [{SECRET}\n"),
        &[],
    );
    refused("mistyped", format!("contexts: {SECRET}\n"), &[]);
    refused("empty", "", &[]);
    refused("binary", (0..=255).collect::<Vec<u8>>(), &[]);
    refused("half-of-utf16", [0xFF, 0xFE, 0x41], &[]);
    refused("elf", b"\x7fELF\x02\x01\x01\0\0\0\0\0", &[]);
}

#[test]
fn no_file() {
    let tool = Tool::new();
    planned("missing", &tool, &[], "");
    check(
        "kubeconfig-none-at-home",
        &tool
            .run(&["plan"])
            .errors()
            .replace(tool.path("").to_str().expect("UTF-8"), "HOME/"),
    );
    fs::create_dir(tool.path("config")).expect("a folder");
    planned("a-folder", &tool, &[], "");
}

/// Root may read everything: the test checks nothing then.
#[test]
fn no_permission_unless_root() {
    let tool = Tool::new();
    tool.write("config", kubeconfig("http://127.0.0.1:1", ""));
    fs::set_permissions(tool.path("config"), fs::Permissions::from_mode(0o0)).expect("set");
    if fs::read(tool.path("config")).is_err() {
        planned("no-permission", &tool, &[], "");
    }
}

#[test]
fn contexts_that_lead_nowhere() {
    let one = kubeconfig("http://127.0.0.1:1", "");
    refused("unknown-context", &one, &["--context", "lap"]);
    refused(
        "hostile-context",
        &one,
        &["--context", "\u{1b}[31mlab\u{202e}"],
    );
    let two = format!("{one}- name: prod\n  context: {{cluster: one, user: me}}\n");
    refused("several-contexts", &two, &[]);
    refused(
        "several-and-a-current",
        two + "current-context: prod\n",
        &[],
    );
    refused(
        "missing-cluster",
        one.replace("{cluster: one", "{cluster: two"),
        &[],
    );
    refused("missing-user", one.replace("user: me}", "user: you}"), &[]);
    refused("no-server", one.replace("http://127.0.0.1:1", "''"), &[]);
    refused(
        "bad-server",
        one.replace("http://127.0.0.1:1", "'http://[::1'"),
        &[],
    );
    refused(
        "hostile-names",
        one.replace("name: lab", r#"name: "l\e[31mab\u202e""#)
            .replace("user: me}", "user: you}"),
        &[],
    );
}

/// kubectl refuses a name that occurs twice in one file, and takes the first of several files.
#[test]
fn names_that_stand_for_two_things() {
    let one = kubeconfig("http://127.0.0.1:1", "");
    let context = "- name: lab\n  context: {cluster: one, user: me}\n";
    refused(
        "two-contexts-of-one-name",
        format!("{one}{context}"),
        &["--context", "lab"],
    );
    let cluster = "- name: one\n  cluster: {server: 'http://127.0.0.1:2'}\n";
    refused(
        "two-clusters-of-one-name",
        one.replace("users:\n", &format!("{cluster}users:\n")),
        &[],
    );
    let tool = Tool::new();
    tool.write("here", &one);
    tool.write("there", kubeconfig("http://127.0.0.1:2", ""));
    tool.write("same", &one);
    let planned = |files: &str| {
        let mut command = tool.command(&["plan", "--context", "lab"]);
        Said::from(
            command
                .env("KUBECONFIG", files)
                .output()
                .expect("the tool starts"),
        )
    };
    check(
        "kubeconfig-two-files-differ",
        &planned("here:there").errors(),
    );
    // Names that are the same in both files lead to the server, where nothing listens
    assert_eq!(planned("here:same").code, Some(21));
}

#[test]
fn certificates_that_cannot_be_loaded() {
    for (name, field) in [
        (
            "bad-base64",
            format!("certificate-authority-data: '!!{SECRET}!!'"),
        ),
        ("no-pem", "certificate-authority-data: czNjcjN0".to_owned()),
        (
            "missing-authority",
            "certificate-authority: nowhere.crt".to_owned(),
        ),
    ] {
        let tool = Tool::new();
        tool.write(
            "config",
            kubeconfig("https://127.0.0.1:1", &format!("    {field}\n")),
        );
        let arguments = ["plan", "--kubeconfig", "config"];
        let said = tool.run(&arguments).errors();
        assert!(!said.contains(SECRET), "{said}");
        let folder = tool.path("");
        let said = said.replace(folder.to_str().expect("UTF-8"), "FOLDER/");
        check(&format!("kubeconfig-{name}"), &said);
    }
}

#[test]
fn an_authority_of_another_cluster() {
    let (server, _) = Server::https(|_| Answer::Json(200, json!({"gitVersion": "v1.36.0"})));
    let (_, other) = Server::https(|_| Answer::Open);
    let tool = Tool::new();
    tool.write("other.crt", other);
    let authority = "    certificate-authority: other.crt\n";
    tool.write(
        "config",
        kubeconfig(&format!("https://{}", server.address), authority),
    );
    planned("wrong-authority", &tool, &[], &server.address.to_string());
    // TLS with a server that speaks none
    let plain = Server::http(|_| Answer::Text(200, "ok"));
    tool.write(
        "config",
        kubeconfig(&format!("https://{}", plain.address), authority),
    );
    planned("no-tls", &tool, &[], &plain.address.to_string());
}

#[test]
fn servers_that_refuse() {
    met("401", &Server::http(|_| status(401, "Unauthorized")));
    met(
        "403",
        &Server::http(|_| status(403, "forbidden: User \"me\" cannot get path \"/version\"")),
    );
    met(
        "404",
        &Server::http(|_| Answer::Text(404, "404 page not found\n")),
    );
}

#[test]
fn servers_that_are_no_api_server() {
    met(
        "502",
        &Server::http(|_| Answer::Text(502, "<html><h1>502 Bad Gateway</h1></html>\n")),
    );
    met(
        "other-json",
        &Server::http(|_| Answer::Json(200, json!({"hello": "\u{1b}[2J world"}))),
    );
    met(
        "hostile",
        &Server::http(|_| status(401, "\u{1b}]0;owned\u{7}\0\u{202e}")),
    );
    met("foreign", &Server::mannered(Manners::Foreign));
    met("rude", &Server::mannered(Manners::Rude));
}

/// Chance decides whether the client sees a close or a reset.
#[test]
fn a_server_that_closes_at_once() {
    let server = Server::mannered(Manners::Curt);
    let tool = Tool::new();
    tool.write(
        "config",
        kubeconfig(&format!("http://{}", server.address), ""),
    );
    let said = tool.run(&["plan", "--kubeconfig", "config"]);
    let errors = said.errors();
    let why = format!("the server {} cannot be reached: ", server.address);
    assert!(errors.contains(&why), "{errors}");
    assert_eq!(said.code, Some(21));
}

#[test]
fn nothing_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    let tool = Tool::new();
    tool.write("config", kubeconfig(&format!("http://{address}"), ""));
    planned("refused-connection", &tool, &[], &address);
}

/// Takes as long as the tool waits.
#[test]
fn a_server_that_says_nothing() {
    met("silent", &Server::mannered(Manners::Silent));
}
