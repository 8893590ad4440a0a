//! `sh -c` and the small programs of Linux images: busybox' in agnhost and busybox.
//!
//! Commands, variables, pipes and redirections; no functions, loops, groups or substitutions, for
//! which a script is refused by name. Texts are busybox' (shell/ash.c, coreutils).

use super::script::{self, Command, Step, number, parse, path, sequence};
use super::seat::Seat;
use super::{Place, Ran, Refusal, Sight, Started, launch, nslookup, ping};
use crate::image::Family;
use crate::network::Origin;
use crate::topology::Os;

use super::script::sleep;

/// Runs a script.
pub(super) fn run(place: &Place, script: &str, input: &[u8], view: &Sight<'_>) -> Started {
    if script::stays(
        script,
        &["while true", "while :", "sleep infinity", "tail -f"],
    ) {
        return Started::stays();
    }
    let commands = match parse(script, Os::Linux) {
        Ok(commands) => commands,
        Err(why) => return script::not_understood(script, why),
    };
    let mut place = place.clone();
    let mut code = 0;
    sequence(&place.clone(), &commands, input, |command, input| {
        let step = step(&mut place, command, input, view, code);
        if let Step::Next(Started::Ended(ran)) = &step {
            code = ran.code;
        }
        step
    })
}

fn step(place: &mut Place, command: &Command, input: &[u8], view: &Sight<'_>, code: u32) -> Step {
    let words = words(place, &command.text, code);
    let Some(name) = words.first().map(String::as_str) else {
        return Step::Next(Started::Ended(Ran::default()));
    };
    Step::Next(match name {
        ":" => Started::Ended(Ran::default()),
        "exit" => return Step::Last(Ran::code(number(words.get(1)).unwrap_or(code) & 0xff)),
        "cd" => {
            let to = words.get(1).map(|to| path(place, to)).unwrap_or_default();
            place.directory = to;
            Started::Ended(Ran::default())
        }
        "export" => {
            let pairs = words[1..].iter().filter_map(|word| word.split_once('='));
            let mut env = (*place.env).clone();
            env.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            place.env = env.into();
            Started::Ended(Ran::default())
        }
        "for" | "while" | "if" | "case" | "until" => {
            Refusal::not_simulated(&format!("`{name}` of a shell"))
        }
        _ => match launch(place, &words, input, view) {
            Started::Refused(Refusal::Missing(_)) => {
                Started::Ended(Ran::complains(format!("sh: {name}: not found\n"), 127))
            }
            other => other,
        },
    })
}

/// The arguments of one command, with variables in place of their names.
fn words(place: &Place, text: &str, code: u32) -> Vec<String> {
    let (mut words, mut word, mut begun) = (Vec::new(), String::new(), false);
    let mut quote = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => (quote, begun) = (Some(letter), true),
            (letter, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => {
                word.extend(letters.next());
                begun = true;
            }
            ('$', None | Some('"')) => {
                let name: String = match letters.peek() {
                    Some('?') => {
                        letters.next();
                        word.push_str(&code.to_string());
                        begun = true;
                        continue;
                    }
                    Some('{') => {
                        letters.next();
                        letters
                            .by_ref()
                            .take_while(|letter| *letter != '}')
                            .collect()
                    }
                    _ => std::iter::from_fn(|| {
                        letters.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                    })
                    .collect(),
                };
                match name.as_str() {
                    "" => word.push('$'),
                    "HOSTNAME" => word.push_str(&place.hostname),
                    name => word.push_str(place.env.get(name).map_or("", String::as_str)),
                }
                begun = begun || !word.is_empty();
            }
            (' ' | '\t', None) => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (other, _) => {
                word.push(other);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// The variables of a process: the container's, and what the runtime adds.
fn variables(place: &Place) -> String {
    let own = [
        ("HOSTNAME", place.hostname.as_str()),
        ("HOME", "/root"),
        ("PATH", PATH),
    ];
    let mut all: std::collections::BTreeMap<&str, &str> = own.into_iter().collect();
    all.extend(
        place
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    all.iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect::<Vec<_>>()
        .concat()
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a small program, if there is one of that name.
pub(super) fn applet(
    place: &Place,
    name: &str,
    args: &[String],
    input: &[u8],
    view: &Sight<'_>,
) -> Option<Started> {
    let seat = Seat { place, view: *view };
    Some(match name {
        "sleep" => sleep(args),
        "true" => Started::Ended(Ran::code(0)),
        "false" => Started::Ended(Ran::code(1)),
        "echo" => Started::Ended(match args.split_first() {
            Some((flag, rest)) if flag == "-n" => Ran::prints(rest.join(" ")),
            _ => Ran::prints(format!("{}\n", args.join(" "))),
        }),
        "printf" => match args {
            [text] if !text.contains('%') => Started::Ended(Ran::prints(text.replace("\\n", "\n"))),
            _ => Refusal::not_simulated("printf with values"),
        },
        "hostname" => Started::Ended(Ran::prints(format!("{}\n", place.hostname))),
        "pwd" => Started::Ended(Ran::prints(match place.directory.as_str() {
            "" => "/\n".to_owned(),
            directory => format!("{directory}\n"),
        })),
        "env" => Started::Ended(Ran::prints(variables(place))),
        "printenv" => Started::Ended(match args.first() {
            None => Ran::prints(variables(place)),
            Some(name) => match place.env.get(name) {
                Some(value) => Ran::prints(format!("{value}\n")),
                None => Ran::code(1),
            },
        }),
        "id" => Started::Ended(id(place, args)),
        "cat" => Started::Ended(cat(place, args, input)),
        "grep" => Started::Ended(grep(args, input)),
        "ls" => Started::Ended(list(place, args)),
        "rm" | "touch" | "mkdir" => Started::Ended(change(place, name, args)),
        "test" | "[" => Started::Ended(test(place, args)),
        "ip" => address(&seat, args),
        "ping" if place.family == Family::Busybox => ping::linux(args, &seat),
        "nslookup" if place.family == Family::Agnhost => nslookup::bind(args, &seat),
        "ping" | "nslookup" | "wget" | "nc" | "dig" | "ps" | "wc" | "head" | "tail" => {
            Refusal::not_simulated(name)
        }
        _ => return None,
    })
}

fn id(place: &Place, args: &[String]) -> Ran {
    let user = place.user.as_deref().unwrap_or("0");
    match args.first().map(String::as_str) {
        Some("-u") => Ran::prints(format!("{user}\n")),
        _ if user == "0" => Ran::prints("uid=0(root) gid=0(root) groups=0(root)\n"),
        _ => Ran::prints(format!("uid={user} gid=0(root) groups=0(root)\n")),
    }
}

fn cat(place: &Place, args: &[String], input: &[u8]) -> Ran {
    if args.is_empty() {
        return Ran {
            stdout: input.to_vec(),
            ..Ran::default()
        };
    }
    let mut all = Ran::default();
    for file in args {
        let code = all.code;
        all = all.then(
            match (file.as_str(), place.files.read(&path(place, file))) {
                (_, Ok(stdout)) => Ran {
                    stdout,
                    code,
                    ..Ran::default()
                },
                (_, Err(error)) => Ran::complains(
                    format!("cat: can't open '{file}': {}\n", error.text(Os::Linux)),
                    1,
                ),
            },
        );
    }
    all
}

/// `grep [-q] WORD`, where WORD is no pattern.
fn grep(args: &[String], input: &[u8]) -> Ran {
    let word = args.iter().find(|arg| !arg.starts_with('-'));
    let word = word.map_or("", String::as_str);
    let text = String::from_utf8_lossy(input);
    let found: Vec<&str> = text.lines().filter(|line| line.contains(word)).collect();
    let quiet = args.iter().any(|arg| arg == "-q");
    let mut ran = Ran::code(u32::from(found.is_empty()));
    if !quiet {
        ran.stdout = found
            .iter()
            .flat_map(|line| format!("{line}\n").into_bytes())
            .collect();
    }
    ran
}

fn list(place: &Place, args: &[String]) -> Ran {
    let of = args.iter().find(|arg| !arg.starts_with('-'));
    let of = of.map_or(".", String::as_str);
    let at = if of == "." {
        place.directory.clone()
    } else {
        path(place, of)
    };
    match place.files.list(&at) {
        Some(names) => Ran::prints(
            names
                .iter()
                .map(|name| format!("{name}\n"))
                .collect::<Vec<_>>()
                .concat(),
        ),
        None if place.files.read(&at).is_ok() => Ran::prints(format!("{of}\n")),
        None => Ran::complains(format!("ls: {of}: No such file or directory\n"), 1),
    }
}

fn change(place: &Place, name: &str, args: &[String]) -> Ran {
    let force = args
        .iter()
        .any(|arg| arg.starts_with('-') && arg.contains('f'));
    for file in args.iter().filter(|arg| !arg.starts_with('-')) {
        let at = path(place, file);
        let changed = match name {
            // A directory is there as soon as something is in it
            "mkdir" => Ok(()),
            "touch" => place.files.write(&at, b"", true),
            _ => place.files.remove(&at),
        };
        if let Err(error) = changed
            && !force
        {
            let verb = if name == "rm" { "can't remove " } else { "" };
            return Ran::complains(
                format!("{name}: {verb}'{file}': {}\n", error.text(Os::Linux))
                    .replace("touch: '", "touch: "),
                1,
            );
        }
    }
    Ran::default()
}

fn test(place: &Place, args: &[String]) -> Ran {
    let args: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| *arg != "]")
        .collect();
    let holds = match args[..] {
        ["-f" | "-e" | "-r", file] if place.files.read(&path(place, file)).is_ok() => true,
        ["-s", file] => place
            .files
            .read(&path(place, file))
            .is_ok_and(|bytes| !bytes.is_empty()),
        ["-d" | "-e", file] => place.files.list(&path(place, file)).is_some(),
        ["-n", text] => !text.is_empty(),
        ["-z", text] => text.is_empty(),
        [one, "=", other] => one == other,
        [one, "!=", other] => one != other,
        _ => false,
    };
    Ran::code(u32::from(!holds))
}

/// `ip addr`, as far as the pod's own address goes.
fn address(seat: &Seat<'_>, args: &[String]) -> Started {
    use super::net::Net;
    if !args.iter().any(|arg| arg.starts_with('a')) {
        return Refusal::not_simulated("ip of this kind");
    }
    let length = if matches!(seat.place.origin, Origin::Pod(_)) {
        24
    } else {
        8
    };
    Started::Ended(Ran::prints(format!(
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN qlen 1000\n    \
         link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n    inet 127.0.0.1/8 scope host lo\n       \
         valid_lft forever preferred_lft forever\n\
         2: eth0@if7: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 1500 qdisc noqueue state UP\n    \
         inet {}/{length} scope global eth0\n       valid_lft forever preferred_lft forever\n",
        seat.address()
    )))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{place, run as start};
    use super::*;

    fn sh(script: &str) -> Started {
        start(&place(Os::Linux, Family::Agnhost), &["sh", "-c", script])
    }

    fn ended(script: &str) -> (String, String, u32) {
        match sh(script) {
            Started::Ended(ran) => (
                String::from_utf8(ran.stdout).expect("text"),
                String::from_utf8(ran.stderr).expect("text"),
                ran.code,
            ),
            other => panic!("{script}: {other:?}"),
        }
    }

    #[test]
    fn commands_follow_their_joints() {
        assert_eq!(ended("true && echo yes || echo no").0, "yes\n");
        assert_eq!(
            ended("echo a; exit 3; echo b"),
            ("a\n".to_owned(), String::new(), 3)
        );
        assert_eq!(
            ended("nonesuch"),
            (String::new(), "sh: nonesuch: not found\n".to_owned(), 127)
        );
        assert_eq!(ended("false; echo $?").0, "1\n");
        assert_eq!(ended("false || exit 4").2, 4);
    }

    #[test]
    fn files_variables_and_pipes() {
        assert_eq!(
            ended("echo one > /tmp/f && echo two >> /tmp/f; cat /tmp/f").0,
            "one\ntwo\n"
        );
        assert_eq!(
            ended("export A='x y'; echo \"$A\" ${A}z '$A'").0,
            "x y x yz $A\n"
        );
        assert_eq!(ended("echo found | grep -q found && echo yes").0, "yes\n");
        assert_eq!(
            ended("cat /nonesuch").1,
            "cat: can't open '/nonesuch': No such file or directory\n"
        );
        assert_eq!(ended("cat /nonesuch 2>/dev/null; echo $?").0, "1\n");
        assert_eq!(
            ended("cat /nonesuch > /tmp/all 2>&1; cat /tmp/all").0,
            ended("cat /nonesuch").1
        );
        assert_eq!(
            ended("touch /a/b; ls /a; test -f /a/b && [ -d /a ] && echo both").0,
            "b\nboth\n"
        );
        assert_eq!(ended("cat < /none").2, 2);
    }

    #[test]
    fn endless_scripts_stay_and_sleeps_take_real_time() {
        assert_eq!(sh("while true; do sleep 1; done"), Started::stays());
        let Started::Ended(ran) = sh("sleep 5") else {
            panic!("it ends")
        };
        assert_eq!(
            (ran.slept, ran.took),
            (Duration::from_secs(5), Duration::ZERO)
        );
        assert!(matches!(
            sh("sleep -1"),
            Started::Ended(Ran { code: 1, .. })
        ));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for script in [
            "echo $(date)",
            "echo `date`",
            "(true)",
            "for a in b; do c; done",
            "sleep 1 &",
        ] {
            assert!(
                matches!(sh(script), Started::Refused(Refusal::NotSimulated(_))),
                "{script}"
            );
        }
    }

    #[test]
    fn odd_scripts_do_no_harm() {
        for script in [
            "", "'", "\"", "$", "${", ">", "<", "|", "||", "&&", "2>", "2>&", ">&", "\\", "é>é",
            "|a|", "a 2>&1|b",
        ] {
            let _ = sh(script);
        }
    }
}
