//! What somebody sends to a program that runs: through a pipe, or typed at a terminal.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::program::{Heard, Wants};
use crate::topology::Os;

/// What comes from the client of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Bytes(Bytes),
    /// Its side is closed.
    End,
    /// It was more than is taken.
    TooMuch,
}

/// What comes in for one program, and waits until it is read.
pub(crate) struct Keyboard {
    from: UnboundedReceiver<Sent>,
    os: Os,
    terminal: Option<Terminal>,
    keys: VecDeque<Key>,
    /// What a program gets that wants everything up to the end.
    whole: Vec<u8>,
    /// What the terminal shows of what is typed.
    echo: Vec<u8>,
    interrupted: bool,
    ended: bool,
    too_much: bool,
}

/// What a terminal hands on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Bytes(Vec<u8>),
    End,
    Interrupt,
}

/// What a keyboard has to tell before a program goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    Echo(Vec<u8>),
    Interrupt,
    TooMuch,
}

impl Keyboard {
    pub(crate) fn new(os: Os, terminal: bool, from: UnboundedReceiver<Sent>) -> Self {
        Self {
            from,
            os,
            terminal: terminal.then(|| Terminal::new(os)),
            keys: VecDeque::new(),
            whole: Vec::new(),
            echo: Vec::new(),
            interrupted: false,
            ended: false,
            too_much: false,
        }
    }

    pub(crate) fn os(&self) -> Os {
        self.os
    }

    /// Waits until something comes, and takes it. Nothing is lost where the wait is given up.
    pub(crate) async fn receive(&mut self) {
        match self.from.recv().await {
            Some(Sent::Bytes(bytes)) => self.take(&bytes),
            Some(Sent::End) => self.ended = true,
            Some(Sent::TooMuch) => self.too_much = true,
            None => std::future::pending().await,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let Some(terminal) = &mut self.terminal else {
            return self.keys.push_back(Key::Bytes(bytes.to_vec()));
        };
        for byte in bytes {
            match terminal.take(*byte, &mut self.echo) {
                Some(Key::Interrupt) => {
                    // What was typed before and not read is thrown away (termios, `ISIG`)
                    self.keys.clear();
                    self.whole.clear();
                    self.interrupted = true;
                }
                key => self.keys.extend(key),
            }
        }
    }

    /// What is to be told at once.
    pub(crate) fn news(&mut self) -> Option<News> {
        if !self.echo.is_empty() {
            return Some(News::Echo(std::mem::take(&mut self.echo)));
        }
        if std::mem::take(&mut self.too_much) {
            return Some(News::TooMuch);
        }
        // A console that is closed ends what runs in it
        let hung_up = self.ended
            && self.keys.is_empty()
            && self.os == Os::Windows
            && self.terminal.take().is_some();
        (std::mem::take(&mut self.interrupted) || hung_up).then_some(News::Interrupt)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted || self.too_much
    }

    /// What a program reads next, if it is there.
    pub(crate) fn next(&mut self, wants: Wants) -> Option<Heard> {
        loop {
            let key = match self.keys.pop_front() {
                None if self.ended => Key::End,
                key => key?,
            };
            match (key, wants) {
                (Key::Bytes(bytes), Wants::Some) => return Some(Heard::Bytes(bytes)),
                (Key::Bytes(bytes), Wants::All) => self.whole.extend(bytes),
                (Key::End, Wants::All) => {
                    return Some(Heard::Bytes(std::mem::take(&mut self.whole)));
                }
                (Key::End, Wants::Some) => return Some(Heard::End),
                (Key::Interrupt, _) => return Some(Heard::Interrupt),
            }
        }
    }
}

/// A terminal that keeps a line until it is whole and shows what is typed: termios(3) in canonical
/// mode, and a console of Windows that reads lines. Keys that move the cursor do nothing.
struct Terminal {
    os: Os,
    line: Vec<u8>,
    escape: Escape,
    /// Whether the last key was Enter, as CR.
    returned: bool,
}

/// Where in the sequence of a key it is.
#[derive(Clone, Copy)]
enum Escape {
    Outside,
    Begun,
    Inside,
}

/// termios(3): what a line may hold before its end.
const LONGEST_LINE: usize = 4095;

const CONTROL_C: u8 = 0x03;
const CONTROL_D: u8 = 0x04;
const CONTROL_U: u8 = 0x15;
const CONTROL_Z: u8 = 0x1A;
const ESCAPE: u8 = 0x1B;

impl Terminal {
    fn new(os: Os) -> Self {
        Self {
            os,
            line: Vec::new(),
            escape: Escape::Outside,
            returned: false,
        }
    }

    fn take(&mut self, byte: u8, echo: &mut Vec<u8>) -> Option<Key> {
        match (self.escape, byte) {
            (Escape::Outside, ESCAPE) => {
                self.escape = Escape::Begun;
                return None;
            }
            (Escape::Outside, _) => {}
            (Escape::Begun, b'[' | b'O') => {
                self.escape = Escape::Inside;
                return None;
            }
            (Escape::Inside, 0x20..=0x3F) => return None,
            (Escape::Begun | Escape::Inside, _) => {
                self.escape = Escape::Outside;
                return None;
            }
        }
        let returned = std::mem::replace(&mut self.returned, byte == b'\r');
        match (byte, self.os) {
            (CONTROL_C, _) => {
                self.line.clear();
                return Some(Key::Interrupt);
            }
            (CONTROL_D, Os::Linux) => {
                let line = std::mem::take(&mut self.line);
                return Some(match line.is_empty() {
                    true => Key::End,
                    false => Key::Bytes(line),
                });
            }
            (b'\n', Os::Windows) if returned => {}
            (b'\r' | b'\n', os) => {
                let end: &[u8] = match os {
                    Os::Linux => b"\n",
                    Os::Windows => b"\r\n",
                };
                echo.extend_from_slice(end);
                let mut line = std::mem::take(&mut self.line);
                if os == Os::Windows && line.first() == Some(&CONTROL_Z) {
                    return Some(Key::End);
                }
                line.extend_from_slice(end);
                return Some(Key::Bytes(line));
            }
            (0x7F | 0x08, _) => self.rub_out(echo),
            (CONTROL_U, Os::Linux) => {
                while !self.line.is_empty() {
                    self.rub_out(echo);
                }
            }
            (CONTROL_Z, Os::Windows) => {
                self.line.push(byte);
                echo.extend_from_slice(b"^Z");
            }
            (0..0x20, _) => {}
            _ if self.line.len() >= LONGEST_LINE => {}
            _ => {
                self.line.push(byte);
                echo.push(byte);
            }
        }
        None
    }

    /// Takes the last letter back, which may have several bytes.
    fn rub_out(&mut self, echo: &mut Vec<u8>) {
        while let Some(byte) = self.line.pop() {
            if byte & 0xC0 != 0x80 {
                echo.extend_from_slice(b"\x08 \x08");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is handed on and what is shown.
    fn typed(os: Os, bytes: &[u8]) -> (Vec<Key>, String) {
        let (mut terminal, mut echo) = (Terminal::new(os), Vec::new());
        let keys = bytes
            .iter()
            .filter_map(|byte| terminal.take(*byte, &mut echo))
            .collect();
        (keys, String::from_utf8(echo).expect("text"))
    }

    fn line(text: &str) -> Key {
        Key::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn a_terminal_hands_on_lines_and_has_keys_for_the_end() {
        let (keys, echo) = typed(Os::Linux, b"a\rb\x04\x04c\x03d\n");
        let expected = [
            line("a\n"),
            line("b"),
            Key::End,
            Key::Interrupt,
            line("d\n"),
        ];
        assert_eq!(
            (keys.as_slice(), echo.as_str()),
            (&expected[..], "a\nbcd\n")
        );
        let (keys, echo) = typed(Os::Windows, b"a\r\nb\x04\r\x1a\r");
        let expected = [line("a\r\n"), line("b\r\n"), Key::End];
        assert_eq!(
            (keys.as_slice(), echo.as_str()),
            (&expected[..], "a\r\nb\r\n^Z\r\n")
        );
    }

    #[test]
    fn what_is_typed_can_be_taken_back_and_cursor_keys_do_nothing() {
        let (keys, echo) = typed(
            Os::Linux,
            "xé\x7f\x7fy\x15z\x1b[A\x1b[1;5C\x1bOP\r".as_bytes(),
        );
        assert_eq!(keys, [line("z\n")]);
        assert_eq!(echo.replace("\x08 \x08", "<"), "xé<<y<z\n");
        let long = [b"x".repeat(5000), b"\n".to_vec()].concat();
        let (keys, _) = typed(Os::Linux, &long);
        assert!(matches!(keys.as_slice(), [Key::Bytes(line)] if line.len() == LONGEST_LINE + 1));
    }

    #[tokio::test]
    async fn a_program_reads_what_it_wants() {
        let (sends, from) = tokio::sync::mpsc::unbounded_channel();
        let mut keyboard = Keyboard::new(Os::Linux, false, from);
        for sent in ["a", "\x03b"] {
            sends.send(Sent::Bytes(sent.into())).expect("it is taken");
            keyboard.receive().await;
        }
        let bytes = |text: &str| Some(Heard::Bytes(text.as_bytes().to_vec()));
        assert_eq!(keyboard.next(Wants::Some), bytes("a"));
        assert_eq!(keyboard.next(Wants::All), None, "it has not ended");
        sends.send(Sent::End).expect("it is taken");
        keyboard.receive().await;
        assert_eq!(
            keyboard.next(Wants::All),
            bytes("\x03b"),
            "a pipe has no keys"
        );
        assert_eq!(keyboard.next(Wants::Some), Some(Heard::End));
        assert_eq!(keyboard.news(), None);
    }

    #[tokio::test]
    async fn an_interrupt_forgets_what_was_not_read() {
        let (sends, from) = tokio::sync::mpsc::unbounded_channel();
        let mut keyboard = Keyboard::new(Os::Windows, true, from);
        let sent = Sent::Bytes("a\rb\x03c\r".into());
        sends.send(sent).expect("it is taken");
        keyboard.receive().await;
        let echo = News::Echo(b"a\r\nbc\r\n".to_vec());
        assert_eq!(keyboard.news(), Some(echo));
        assert_eq!(keyboard.news(), Some(News::Interrupt));
        assert_eq!(
            keyboard.next(Wants::Some),
            Some(Heard::Bytes(b"c\r\n".to_vec()))
        );
        assert_eq!(keyboard.next(Wants::Some), None);
        sends.send(Sent::End).expect("it is taken");
        keyboard.receive().await;
        assert_eq!(
            keyboard.news(),
            Some(News::Interrupt),
            "the console is closed"
        );
    }
}
