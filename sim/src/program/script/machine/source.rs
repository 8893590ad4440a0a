//! A shell that reads its commands: it runs each line as soon as it has it.

use super::{Machine, Phrase, Tongue, Turn};
use crate::program::input::{Heard, Input, interrupted};
use crate::program::script::machine::frame::Frame;
use crate::program::{Place, Ran, Sight, Started};
use crate::topology::Os;

/// Where the commands come from.
#[derive(Clone)]
pub(super) struct Source {
    /// What has come and was not read yet.
    pending: Vec<u8>,
    ended: bool,
    /// The lines of a command that is not whole yet.
    begun: String,
    terminal: bool,
    prompt: Prompt,
}

/// What a shell shows where it waits for a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prompt {
    Never,
    Due,
    Shown,
}

impl Source {
    fn prompt_again(&mut self) {
        if self.prompt == Prompt::Shown {
            self.prompt = Prompt::Due;
        }
    }

    /// The next line with its end; what stands without one only when nothing comes any more.
    fn line(&mut self) -> Option<String> {
        let end = self.pending.iter().position(|byte| *byte == b'\n');
        let end = match end {
            Some(at) => at + 1,
            None if self.ended && !self.pending.is_empty() => self.pending.len(),
            None => return None,
        };
        let line: Vec<u8> = self.pending.drain(..end).collect();
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}

impl Machine {
    /// A shell that reads its commands from its input.
    pub(in crate::program) fn reading(
        tongue: &'static dyn Tongue,
        place: &Place,
        prompts: bool,
        input: &Input,
        view: &Sight<'_>,
    ) -> Self {
        let source = Source {
            pending: input.bytes().to_vec(),
            ended: !input.is_open(),
            begun: String::new(),
            terminal: input.is_terminal(),
            prompt: match prompts {
                true => Prompt::Due,
                false => Prompt::Never,
            },
        };
        let mut machine = Self::new(tongue, place, super::List::default(), input.behind(), view);
        machine.frames = vec![Frame::Source(source)];
        machine
    }

    /// Goes on with the next line, if there is one.
    pub(super) fn source(&mut self, mut source: Source) -> Turn {
        if source.prompt == Prompt::Due {
            source.prompt = Prompt::Shown;
            let prompt = self.tongue.prompt(self, !source.begun.is_empty());
            self.frames.push(Frame::Source(source));
            return Turn::Shows(Ran::prints(prompt));
        }
        if let Some(refused) = super::super::too_long(&source.pending) {
            return refused.into();
        }
        let Some(line) = source.line() else {
            if !source.ended {
                self.frames.push(Frame::Source(source));
                return Turn::Reads;
            }
            if !source.begun.is_empty() {
                return super::super::not_understood(&source.begun, Phrase::UNFINISHED).into();
            }
            let end = self.tongue.end(self, source.terminal);
            if end.is_none() {
                source.ended = false;
                source.prompt_again();
                self.frames.push(Frame::Source(source));
            }
            return end.map_or(Turn::Pushed, |ran| Started::Ended(ran).into());
        };
        // A terminal has shown by itself what was typed
        let shown = match source.prompt == Prompt::Shown && !source.terminal {
            true => Ran::prints(self.tongue.shown(&line)),
            false => Ran::default(),
        };
        source.prompt_again();
        source.begun.push_str(&line);
        let phrase = self.tongue.phrase(self, &source.begun);
        if !matches!(phrase, Phrase::Unfinished) {
            source.begun.clear();
        }
        self.frames.push(Frame::Source(source));
        match phrase {
            Phrase::Commands(list) => self.push(list),
            Phrase::Unfinished => {}
            Phrase::NotUnderstood(ran) => return Started::Ended(shown.then(ran)).into(),
        }
        Turn::Shows(shown.ending(self.code))
    }

    /// Takes what has come; gives what is shown at once.
    pub(super) fn hear(&mut self, heard: &Heard) -> Ran {
        let os = self.place.os;
        let Some(Frame::Source(source)) = self.frames.last_mut() else {
            return Ran::default();
        };
        match heard {
            Heard::Bytes(bytes) => source.pending.extend_from_slice(bytes),
            Heard::End => source.ended = true,
            Heard::Interrupt => {
                source.pending.clear();
                source.begun.clear();
                source.prompt_again();
                let code = interrupted(os);
                (self.code, self.level) = (code, code);
                // busybox, shell/ash.c, `preadfd`; a console of Windows shows the same
                return Ran::prints(match os {
                    Os::Linux => "^C\n",
                    Os::Windows => "^C\r\n",
                });
            }
        }
        Ran::default()
    }

    /// Ends all that is run of the line that was typed; whether there is a terminal to type the next at.
    pub(super) fn back_to_prompt(&mut self) -> bool {
        let typed = |frame: &Frame| matches!(frame, Frame::Source(source) if source.terminal);
        let Some(at) = self.frames.iter().rposition(typed) else {
            return false;
        };
        while self.frames.len() > at + 1 {
            self.drop_frame();
        }
        self.level = self.code;
        true
    }

    /// Ends what is run innermost, up to the next loop: `break` and `continue`.
    pub(super) fn leave(&mut self) {
        let stays = |frame: &Frame| frame.is_loop() || matches!(frame, Frame::Source(_));
        while self.frames.last().is_some_and(|frame| !stays(frame)) {
            self.drop_frame();
        }
    }
}
