//! Shells through the real `kubectl`, which are told the next line when they have answered the one
//! before.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::json;
use tokio::time::timeout;

use crate::AGNHOST;
use crate::scene::{DEADLINE, Scene, is_ready};

/// kubectl with its pipes, and what it has printed.
struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Talk {
    fn begin(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("kubectl starts");
        let output = child.stdout.take().expect("is piped");
        Self {
            input: child.stdin.take(),
            output: BufReader::new(output),
            child,
        }
    }

    /// Writes a line, and reads the next one.
    fn answer(&mut self, line: &str) -> String {
        let input = self.input.as_mut().expect("is open");
        writeln!(input, "{line}").expect("kubectl reads");
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("kubectl prints");
        line
    }

    /// Closes the input; the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().expect("kubectl ends").code()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_answer_each_line_before_the_next() {
    let name = "shells_answer_each_line_before_the_next";
    let Some(scene) = Scene::begin(name, "typed", &[]).await else {
        return;
    };
    let servercore = "mcr.microsoft.com/windows/servercore:ltsc2022";
    let pause = json!({"image": AGNHOST, "args": ["pause"]});
    let waits =
        json!({"image": servercore, "command": ["powershell", "-Command", "Start-Sleep 3600"]});
    scene.pod("linux", scene.spec("linux-a", &pause)).await;
    scene
        .pod("windows", scene.spec("windows-2022-a", &waits))
        .await;
    for pod in ["linux", "windows"] {
        scene.pod_until(pod, is_ready).await;
    }
    let talks = [
        scene.kubectl_command(&["exec", "-i", "linux", "--", "sh"]),
        scene.kubectl_command(&["exec", "-i", "windows", "--", "powershell", "-Command", "-"]),
    ];
    let talking = tokio::task::spawn_blocking(|| {
        talks.map(|command| {
            let mut talk = Talk::begin(command);
            let first = talk.answer("echo one");
            let second = talk.answer("hostname");
            let input = talk.input.as_mut().expect("is open");
            writeln!(input, "exit 5").expect("kubectl reads");
            (first, second, talk.end())
        })
    });
    let talked = timeout(DEADLINE, talking).await;
    let [linux, windows] = talked.expect("in time").expect("no panic");
    let answers = |first: &str, second: &str, code| (first.to_owned(), second.to_owned(), code);
    assert_eq!(linux, answers("one\n", "linux\n", Some(5)));
    assert_eq!(windows, answers("one\r\n", "windows\r\n", Some(5)));
    scene.end().await;
}
