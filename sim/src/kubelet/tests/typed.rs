//! Sessions in which the next thing is sent when the answer to the one before has come.

use super::*;

/// Reads output until it ends with a text.
async fn until(socket: &mut Socket, text: &str) -> String {
    let mut shown = String::new();
    while !shown.ends_with(text) {
        let message = timeout(DEADLINE, socket.next()).await;
        match message {
            Ok(Some(Ok(Message::Binary(bytes)))) if matches!(bytes[0], 1 | 2) => {
                shown.push_str(&String::from_utf8_lossy(&bytes[1..]));
            }
            other => panic!("{other:?} after {shown:?}, which lacks {text:?}"),
        }
    }
    shown
}

async fn send(socket: &mut Socket, channel: u8, text: &str) {
    let message = [&[channel], text.as_bytes()].concat();
    let sent = socket.send(Message::Binary(message.into())).await;
    sent.expect("it is taken");
}

fn exit(channels: &[Vec<u8>]) -> Value {
    let status = status(channels);
    match status["status"] == "Success" {
        true => 0.into(),
        false => status["details"]["causes"][0]["message"].clone(),
    }
}

fn windows(scene: &Scene) {
    scene.run.book().containers[0].place = Some(place(Os::Windows, Family::Servercore));
}

#[tokio::test]
async fn each_line_is_answered_before_the_next_is_sent() {
    let scene = Scene::new();
    let sh = "exec/test/web/main?command=sh&input=1&output=1&error=1";
    let mut socket = scene.session(sh, "v5.channel.k8s.io").await;
    for number in ["1", "2"] {
        send(&mut socket, 0, &format!("echo {number}\n")).await;
        assert_eq!(until(&mut socket, "\n").await, format!("{number}\n"));
    }
    send(&mut socket, 0, "exit 7\n").await;
    assert_eq!(exit(&rest(&mut socket).await.0), "7");

    windows(&scene);
    for (command, line, answer) in [
        ("cmd", "cd Users\n", "cd Users\r\n\r\nC:\\Users>"),
        ("powershell", "hostname\n", "hostname\nprober\r\nPS C:\\> "),
    ] {
        let path = format!("exec/test/web/main?command={command}&input=1&output=1");
        let mut socket = scene.session(&path, "v4.channel.k8s.io").await;
        let prompt = &answer[answer.rfind('\n').map_or(0, |at| at + 1)..];
        until(&mut socket, &prompt.replace("Users", "")).await;
        send(&mut socket, 0, line).await;
        assert!(until(&mut socket, answer).await.ends_with(answer));
        send(&mut socket, 0, "exit 8\n").await;
        assert_eq!(exit(&rest(&mut socket).await.0), "8");
    }
    scene.empty().await;
}

#[tokio::test]
async fn a_terminal_shows_what_is_typed_and_takes_its_size() {
    let scene = Scene::new();
    let sh = "exec/test/web/main?command=sh&input=1&output=1&tty=1";
    let mut socket = scene.session(sh, "v5.channel.k8s.io").await;
    until(&mut socket, "/ # ").await;
    send(&mut socket, 4, "{\"Width\":80,\"Height\":24}").await;
    send(&mut socket, 0, "ecx\x7f").await;
    assert_eq!(until(&mut socket, " \x08").await, "ecx\x08 \x08");
    send(&mut socket, 0, "ho a\r").await;
    assert_eq!(until(&mut socket, "# ").await, "ho a\r\na\r\n/ # ");
    // Ctrl-C ends what runs, and not the shell
    send(&mut socket, 0, "echo up; sleep 1000\r").await;
    until(&mut socket, "up\r\n").await;
    send(&mut socket, 0, "\x03").await;
    assert_eq!(until(&mut socket, "# ").await, "^C\r\n/ # ");
    send(&mut socket, 0, "\x04").await;
    let (channels, _) = rest(&mut socket).await;
    assert_eq!(
        (channels[1].as_slice(), exit(&channels)),
        (&b"\r\n"[..], "130".into())
    );

    for command in ["sleep&command=1000", "agnhost&command=pause"] {
        let path = format!("exec/test/web/main?command={command}&input=1&output=1&tty=1");
        let mut socket = scene.session(&path, "v5.channel.k8s.io").await;
        send(&mut socket, 0, "\x03").await;
        assert_eq!(exit(&rest(&mut socket).await.0), "130");
    }

    windows(&scene);
    let cmd = "exec/test/web/main?command=cmd&input=1&output=1&tty=1";
    let mut socket = scene.session(cmd, "v5.channel.k8s.io").await;
    until(&mut socket, "\r\n\r\nC:\\>").await;
    send(&mut socket, 0, "echo a\r").await;
    let shown = until(&mut socket, "\r\n\r\nC:\\>").await;
    assert_eq!(shown, "echo a\r\na\r\n\r\nC:\\>");
    send(&mut socket, 0, "exit 3\r").await;
    assert_eq!(exit(&rest(&mut socket).await.0), "3");
    scene.empty().await;
}
