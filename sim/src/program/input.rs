//! What programs read: all of it when they begin, or as it comes.

use std::fmt;
use std::sync::Arc;

use super::windows::CONTROL_C;
use super::{Ran, Sight, Started, View};
use crate::topology::Os;

/// The input of a program.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// All that there is.
    Given(Arc<[u8]>),
    /// It comes while the program runs: from a pipe, or typed at a terminal.
    Open { terminal: bool },
}

impl Default for Input {
    fn default() -> Self {
        Self::Given(Arc::default())
    }
}

impl From<&[u8]> for Input {
    fn from(bytes: &[u8]) -> Self {
        Self::Given(bytes.into())
    }
}

impl Input {
    /// What is there before the program begins.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Given(bytes) => bytes,
            Self::Open { .. } => &[],
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Open { terminal: true })
    }

    /// The input of what a shell starts that has read its own commands from here: a pipe it has read
    /// by blocks, so that nothing is left of what was there (busybox, shell/ash.c, `preadfd`).
    pub(super) fn behind(&self) -> Self {
        match self {
            Self::Given(_) => Self::default(),
            Self::Open { .. } => self.clone(),
        }
    }
}

/// What comes to a program that reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Bytes(Vec<u8>),
    End,
    /// Ctrl-C.
    Interrupt,
}

/// How much a program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// Whatever comes next.
    Some,
    /// Everything up to the end.
    All,
}

type Work = dyn Fn(&Heard, &Sight<'_>) -> Started + Send + Sync;

/// What a program does with what it reads. It sees the world as it is then.
#[derive(Clone)]
pub(crate) struct Ear(Arc<Work>);

impl Ear {
    pub(super) fn new(
        work: impl Fn(&Heard, &Sight<'_>) -> Started + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(work))
    }

    pub(crate) fn hear(&self, heard: &Heard, view: &View<'_>) -> Started {
        let spent = super::Spent::default();
        self.at(heard, &Sight::new(view, &spent))
    }

    pub(super) fn at(&self, heard: &Heard, view: &Sight<'_>) -> Started {
        (self.0)(heard, view)
    }
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ear")
    }
}

impl PartialEq for Ear {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Ear {}

/// Exit code of what Ctrl-C has ended: 128 and SIGINT as a shell gives it, `STATUS_CONTROL_C_EXIT`
/// on Windows.
pub(crate) fn interrupted(os: Os) -> u32 {
    match os {
        Os::Linux => 130,
        Os::Windows => CONTROL_C,
    }
}

/// A program that reads its input to the end before it does anything.
pub(super) fn gathers(
    os: Os,
    work: impl Fn(&[u8], &Sight<'_>) -> Started + Send + Sync + 'static,
) -> Started {
    Started::Reads {
        ran: Ran::default(),
        wants: Wants::All,
        ear: Ear::new(move |heard, view| match heard {
            Heard::Bytes(all) => work(all, view),
            Heard::End => work(&[], view),
            Heard::Interrupt => Started::Ended(Ran::code(interrupted(os))),
        }),
    }
}

/// `cat`: it prints what it reads.
pub(super) fn copies(os: Os) -> Started {
    Started::Reads {
        ran: Ran::default(),
        wants: Wants::Some,
        ear: Ear::new(move |heard, _| match heard {
            Heard::Bytes(bytes) => copies(os).after(Ran::prints(bytes.as_slice())),
            Heard::End => Started::Ended(Ran::default()),
            Heard::Interrupt => Started::Ended(Ran::code(interrupted(os))),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Empty, argv, place};
    use super::*;
    use crate::image::Family;

    /// What a program shows at first and after each thing that comes, and its exit code.
    fn talk(os: Os, terminal: bool, args: &[&str], heard: &[Heard]) -> (Vec<String>, Option<u32>) {
        let family = match os {
            Os::Linux => Family::Agnhost,
            Os::Windows => Family::Servercore,
        };
        let nothing = Empty::default();
        let input = Input::Open { terminal };
        let place = place(os, family);
        let mut started = super::super::start(&place, &argv(args), &input, &nothing.view());
        let (mut shown, mut heard) = (vec![String::new()], heard.iter());
        let mut last = None;
        loop {
            let (ran, end) = match started {
                Started::Reads { ran, ear, .. } => {
                    last = Some(ear);
                    (ran, false)
                }
                Started::GoesOn { ran, rest }
                    if heard.as_slice().first() != Some(&Heard::Interrupt) =>
                {
                    started = rest.start(&nothing.view()).after(ran);
                    continue;
                }
                Started::GoesOn { ran, .. } => (ran, false),
                Started::Ended(ran) => (ran, true),
                other => panic!("{other:?}"),
            };
            let told = shown.last_mut().expect("one at least");
            told.push_str(&String::from_utf8_lossy(&ran.stdout));
            told.push_str(&String::from_utf8_lossy(&ran.stderr));
            if end {
                return (shown, Some(ran.code));
            }
            let Some(heard) = heard.next() else {
                return (shown, None);
            };
            shown.push(String::new());
            let ear = last.as_ref().expect("it has read");
            started = ear.hear(heard, &nothing.view());
        }
    }

    fn bytes(text: &str) -> Heard {
        Heard::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn sh_answers_each_line_when_it_has_it() {
        let lines = [
            bytes("A=1; ec"),
            bytes("ho $A\ncd /tmp\n"),
            bytes("for i in a b\n"),
            bytes("do echo $i; done\necho 'x\n"),
            bytes("y' &&\n"),
            bytes("pwd\n"),
            bytes("break\n"),
            bytes("false"),
            Heard::End,
        ];
        let (shown, code) = talk(Os::Linux, false, &["sh"], &lines);
        assert_eq!(
            shown,
            ["", "", "1\n", "", "a\nb\n", "", "x\ny\n/tmp\n", "", "", ""]
        );
        assert_eq!(code, Some(1), "of the last command");
        let (shown, code) = talk(Os::Linux, true, &["sh"], &lines[2..]);
        assert_eq!(
            shown,
            [
                "/ # ",
                "> ",
                "a\nb\n/ # > ",
                "> ",
                "x\ny\n/\n/ # ",
                "/ # ",
                "",
                "/ # \n"
            ]
        );
        assert_eq!(code, Some(1));
        let lines = [bytes("while true; do echo x\n"), Heard::End];
        assert_eq!(
            talk(Os::Linux, false, &["sh"], &lines).1,
            Some(super::super::NOT_SIMULATED)
        );
    }

    #[test]
    fn shells_in_shells_and_their_commands_read_the_same_input() {
        let lines = [
            bytes("sh\n"),
            bytes("exit 3\n"),
            bytes("echo $?; cat | grep b\n"),
            bytes("a\nb\n"),
            bytes("b"),
            Heard::End,
            bytes("wc -c\n"),
            bytes("12345"),
            bytes("exit\n"),
        ];
        let (shown, code) = talk(Os::Linux, true, &["sh"], &lines);
        assert_eq!(
            shown,
            [
                "/ # ", "/ # ", "/ # ", "3\n", "b\n", "", "b\n/ # ", "", "5\n/ # ", ""
            ]
        );
        assert_eq!(code, Some(0));
        let counts = [bytes("a\nb\n"), bytes("c\n"), Heard::End];
        let (shown, _) = talk(Os::Linux, false, &["sh", "-c", "cat | wc -l"], &counts);
        assert_eq!(shown.concat(), "3\n");
    }

    #[test]
    fn windows_shells_show_a_prompt_and_end_by_exit_alone() {
        let lines = [
            bytes("echo hi\r\n"),
            bytes("\r\n"),
            Heard::End,
            bytes("cd Users& powershell -NoLogo\r\n"),
            bytes("while ($true) {\r\n"),
            bytes("'x'; break }\r\n"),
            Heard::End,
            bytes("exit 4\r\n"),
            bytes("exit\r\n"),
        ];
        let (shown, code) = talk(Os::Windows, true, &["cmd"], &lines);
        assert!(shown[0].ends_with("reserved.\r\n\r\nC:\\>"), "{shown:?}");
        assert_eq!(
            shown[1..],
            [
                "hi\r\n\r\nC:\\>",
                "\r\nC:\\>",
                "\r\nC:\\>",
                "PS C:\\Users> ",
                ">> ",
                "x\r\nPS C:\\Users> ",
                "PS C:\\Users> ",
                "\r\nC:\\Users>",
                ""
            ]
        );
        assert_eq!(code, Some(4), "ERRORLEVEL");
        let lines = [bytes("exit 6\n")];
        let (shown, code) = talk(Os::Windows, false, &["cmd"], &lines);
        assert_eq!((shown[1].as_str(), code), ("exit 6\r\n", Some(6)));
        let lines = [bytes("Write-Output a\n"), Heard::End];
        let (shown, code) = talk(Os::Windows, false, &["powershell", "-Command", "-"], &lines);
        assert_eq!((shown.concat().as_str(), code), ("a\r\n", Some(0)));
    }

    #[test]
    fn what_is_not_simulated_does_not_end_a_shell_at_a_terminal() {
        let lines = [
            bytes("for i in 1 2; do awk; done; echo not\n"),
            bytes("sleep 1 | awk\n"),
            bytes("echo $?\n"),
            bytes("exit\n"),
        ];
        let (shown, code) = talk(Os::Linux, true, &["sh"], &lines);
        // What goes to the error stream is put behind the prompt here
        let refused = "/ # hybrid-sim does not simulate `awk`\n";
        assert_eq!(shown[1..3], [refused, refused]);
        assert_eq!((shown[3].as_str(), code), ("222\n/ # ", Some(0)));
        let (_, code) = talk(Os::Linux, false, &["sh"], &lines);
        assert_eq!(code, Some(super::super::NOT_SIMULATED), "no terminal");
        let lines = [
            bytes("netstat\r\n"),
            bytes("echo %ERRORLEVEL%\r\n"),
            bytes("powershell -NoLogo\r\n"),
            bytes("if (1) { 2 }\r\n"),
            bytes("'x'\r\n"),
        ];
        let (shown, _) = talk(Os::Windows, true, &["cmd"], &lines);
        let refused = "\r\nC:\\>hybrid-sim does not simulate `netstat`\n";
        assert_eq!(shown[1..3], [refused, "222\r\n\r\nC:\\>"]);
        assert!(
            shown[4].starts_with("PS C:\\> hybrid-sim does not"),
            "{shown:?}"
        );
        assert_eq!(shown[5], "x\r\nPS C:\\> ");
    }

    #[test]
    fn ctrl_c_leads_back_to_the_prompt() {
        let lines = [
            bytes("cd /tmp; while true; do sleep 1; done\n"),
            Heard::Interrupt,
            bytes("echo $?\n"),
            bytes("cat\n"),
            Heard::Interrupt,
            bytes("exit\n"),
        ];
        let (shown, code) = talk(Os::Linux, true, &["sh"], &lines);
        assert_eq!(shown[1..], ["", "^C\n/ # ", "130\n/ # ", "", "/ # ", ""]);
        assert_eq!(code, Some(130));
        let (_, code) = talk(Os::Windows, true, &["more"], &[Heard::Interrupt]);
        assert_eq!(code, Some(CONTROL_C));
    }
}
