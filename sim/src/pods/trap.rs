//! What the script of a container does on SIGTERM: the handler of its last `trap`.
//!
//! Read from the script's text: a trap in a branch that is not taken counts all the same.

/// The handler of SIGTERM in a shell's script, empty for one that ignores the signal; none without a
/// trap of it, or with one that is taken back (busybox 1.36, shell/ash.c, `trapcmd`).
pub(super) fn handler(argv: &[String]) -> Option<String> {
    let file = argv.first().map(String::as_str).unwrap_or_default();
    let name = file.rsplit('/').next().unwrap_or_default();
    if !["sh", "ash", "bash"].contains(&name) {
        return None;
    }
    let is_option = |word: &&String| word.starts_with('-') && word.ends_with('c');
    let script = argv.iter().skip_while(|word| !is_option(word)).nth(1)?;
    let commands = commands(script);
    let mut traps = commands.iter().filter_map(|words| {
        let at = words.iter().position(|word| word == "trap")?;
        let (handler, signals) = words.get(at + 1..)?.split_first()?;
        let of_it = |signal: &String| {
            let signal = signal.to_uppercase();
            let name = signal.strip_prefix("SIG").unwrap_or(&signal);
            ["TERM", "15"].contains(&name)
        };
        signals.iter().any(of_it).then_some(handler)
    });
    traps.next_back().filter(|handler| *handler != "-").cloned()
}

/// Whether a handler ends its shell.
pub(super) fn exits(handler: &str) -> bool {
    let mut commands = commands(handler).into_iter();
    commands.any(|words| words.iter().any(|word| word == "exit"))
}

/// The words of each command, without their quotes.
fn commands(script: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut letters = script.chars();
    let end = |word: &mut Option<String>, all: &mut Vec<Vec<String>>| {
        if let (Some(word), Some(last)) = (word.take(), all.last_mut()) {
            last.push(word);
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            quote @ ('\'' | '"') => {
                let inside = word.get_or_insert_default();
                while let Some(letter) = letters.next().filter(|letter| *letter != quote) {
                    // Behind double quotes it takes these away from the letter's meaning
                    let next = letters.clone().next();
                    if letter == '\\'
                        && quote == '"'
                        && next.is_some_and(|next| "\"\\$`".contains(next))
                    {
                        inside.extend(letters.next());
                    } else {
                        inside.push(letter);
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            ' ' | '\t' => end(&mut word, &mut all),
            '\n' | ';' | '&' | '|' | '(' | ')' => {
                end(&mut word, &mut all);
                all.push(Vec::new());
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    end(&mut word, &mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(script: &str) -> Option<String> {
        handler(&["/bin/sh", "-c", script].map(str::to_owned))
    }

    #[test]
    fn the_last_handler_of_the_signal_counts() {
        let some = |text: &str| Some(text.to_owned());
        for (script, handler) in [
            (
                "trap 'exit 3' TERM; while true; do sleep 1; done",
                some("exit 3"),
            ),
            (
                "trap \"echo \\\"bye\\\"; exit\" INT TERM\nsleep 9",
                some("echo \"bye\"; exit"),
            ),
            ("trap '' TERM; sleep 9", some("")),
            ("trap : SIGTERM; sleep 9", some(":")),
            ("echo a && trap 'echo b' 2 15 && sleep 9", some("echo b")),
            ("trap 'exit 1' TERM; trap 'exit 2' TERM", some("exit 2")),
            ("trap 'exit 1' TERM; trap - TERM", None),
            ("trap 'exit 1' EXIT INT; sleep 9", None),
            ("echo 'trap x TERM'", None),
            ("sleep 9", None),
        ] {
            assert_eq!(of(script), handler, "{script}");
        }
        let other = ["agnhost", "-c", "trap x TERM"].map(str::to_owned);
        assert_eq!(handler(&other), None);
    }

    #[test]
    fn a_handler_ends_its_shell_or_does_not() {
        for ends in ["exit", "exit 3", "echo bye; exit 0", "sync && exit"] {
            assert!(exits(ends), "{ends}");
        }
        for goes_on in ["", ":", "echo bye", "echo 'exit 3'", "echo exiting"] {
            assert!(!exits(goes_on), "{goes_on}");
        }
    }
}
