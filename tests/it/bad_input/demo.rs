//! Invalid demos: the tool reports all mistakes at once, before it starts anything.

use std::net::TcpListener;
use std::os::unix::fs::symlink;

use super::tool::{Tool, check};

#[track_caller]
fn refused(name: &str, tool: &Tool, arguments: &[&str]) {
    let said = tool.run(&[&["demo"], arguments].concat());
    assert_eq!(said.code, Some(2), "{name}: {}", said.stderr);
    check(&format!("demo-{name}"), &said.errors());
}

#[test]
fn faults_that_are_none() {
    let tool = Tool::new();
    for (name, faults) in [
        ("unknown-fault", &["kubeproxy-ded", "moon"][..]),
        ("hostile-fault", &["\u{1b}[31m\u{202e}"]),
        (
            "wrong-parameters",
            &[
                "traffic-cut",
                "traffic-cut=linux",
                "service-answers-wrong=linux",
                "untainted=linux",
                "dns-down=windows-2016",
                "node-vanishes=namespace/a",
                "dns-down@soon",
                "dns-down@2m..1m",
            ],
        ),
        ("fault-of-another-machine", &["too-many-requests=0.5"]),
    ] {
        let given: Vec<_> = faults.iter().flat_map(|fault| ["--fault", fault]).collect();
        refused(name, &tool, &given);
    }
    refused(
        "faults-nowhere",
        &tool,
        &[
            "--topology",
            "hybrid",
            "--fault",
            "kube-proxy-dead=windows-2019",
            "--fault",
            "dns-down=node/linux-1",
            "--fault",
            "load-balancer-dead",
            "--fault",
            "ipv6-dropped=windows-2022",
        ],
    );
}

#[test]
fn everything_at_once() {
    let tool = Tool::new();
    let arguments = [
        "--topology",
        "three-build",
        "--kubernetes-version",
        "1.37",
        "--fault",
        "dns-dwn",
        "--select",
        "area=nett",
        "--nodes",
        "0",
    ];
    refused("everything", &tool, &arguments);
    tool.write("nodes.yaml", "nodes:\n- {name: a, pool: linus}\n");
    let fault = "--fault=untainted=windows-2019";
    refused("file", &tool, &["--topology", "nodes.yaml", fault]);
    refused("old-version", &tool, &["--kubernetes-version", "1.30"]);
    symlink("nowhere", tool.path("link")).expect("a link");
    refused("dangling", &tool, &["--topology", "link"]);
}

#[test]
fn numbers_of_nodes() {
    let tool = Tool::new();
    refused("no-nodes", &tool, &["--nodes", "0"]);
    refused("few-nodes", &tool, &["--nodes", "2"]);
    refused("negative-nodes", &tool, &["--nodes=-1"]);
    refused("too-many-nodes", &tool, &["--nodes", "20001"]);
    refused("too-many-sockets", &tool, &["--serve", "--nodes", "2001"]);
}

#[test]
fn arguments_that_go_against_each_other() {
    let tool = Tool::new();
    refused("serve-and-pace", &tool, &["--serve", "--pace", "real"]);
    refused("kubeconfig-alone", &tool, &["--kubeconfig", "config"]);
    refused("no-port", &tool, &["--serve", "65536"]);
    refused("unknown-pace", &tool, &["--pace", "slow"]);
}

#[test]
fn mistakes_in_the_configuration_are_told_with_the_others() {
    let tool = Tool::new();
    tool.write("config.yaml", "profile: strikt\nlimits: {attempts: two}\n");
    let given = [
        "--config",
        "config.yaml",
        "--fault",
        "moon",
        "--select",
        "area=nt",
    ];
    refused("config", &tool, &given);
    refused("config-missing", &tool, &["--config", "none.yaml"]);
    refused(
        "config-and-serve",
        &tool,
        &["--config", "config.yaml", "--serve"],
    );
}

#[test]
fn where_nothing_can_be_served() {
    let tool = Tool::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let said = tool.run(&["demo", "--topology", "hybrid", "--serve", &port]);
    check("demo-taken-port", &said.errors().replace(&port, "PORT"));
    let hybrid = ["--topology", "hybrid", "--serve", "--kubeconfig"];
    tool.write("mine", "kept");
    refused(
        "kubeconfig-there",
        &tool,
        &[&hybrid[..], &["mine"]].concat(),
    );
    refused(
        "kubeconfig-nowhere",
        &tool,
        &[&hybrid[..], &["no/where"]].concat(),
    );
    let kept = std::fs::read(tool.path("mine")).expect("still there");
    assert_eq!(kept, b"kept");
}
