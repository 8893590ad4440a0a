//! `cat`, `ls`, `rm`, `touch` and `mkdir` of busybox (coreutils).

use super::super::script::{MOST_TEXT, path};
use super::super::{Place, Ran, Refusal, Started, system};
use crate::files::FileError;
use crate::topology::Os;

pub(super) fn cat(place: &Place, args: &[String], input: &[u8]) -> Ran {
    if args.iter().any(|arg| arg.len() > 1 && arg.starts_with('-')) {
        return Refusal::instead_of("cat of this kind");
    }
    let own = ["-".to_owned()];
    let files = if args.is_empty() { &own } else { args };
    let mut all = Ran::default();
    for file in files {
        if all.stdout.len() > MOST_TEXT {
            return Refusal::instead_of("files of so much text");
        }
        let at = path(place, file);
        let read = match file.as_str() {
            "-" => Ok(input.to_vec()),
            "/dev/null" => Ok(Vec::new()),
            _ => place.files.read(&at),
        };
        let code = all.code;
        all = all.then(match read {
            Ok(stdout) => Ran {
                stdout,
                code,
                ..Ran::default()
            },
            Err(_) if system::is_unknown(place, &at) => {
                return Refusal::instead_of(&format!("the content of {file}"));
            }
            Err(error) => Ran::complains(
                format!("cat: can't open '{file}': {}\n", error.text(Os::Linux)),
                1,
            ),
        });
    }
    all
}

/// `ls [-1A] [FILE]`.
pub(super) fn list(place: &Place, args: &[String]) -> Started {
    let flags: Vec<&String> = args.iter().filter(|arg| arg.starts_with('-')).collect();
    let operands: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    if operands.len() > 1
        || flags
            .iter()
            .any(|flag| !matches!(flag.as_str(), "-1" | "-A"))
    {
        return Refusal::not_simulated(&format!("ls {}", args.join(" ")));
    }
    let of = operands.first().map_or(".", |of| of.as_str());
    let at = if of == "." {
        place.directory.clone()
    } else {
        path(place, of)
    };
    if system::is_unlisted(place, &at) {
        return Refusal::not_simulated(&format!("the content of {of}"));
    }
    let hidden = flags.iter().any(|flag| *flag == "-A");
    Started::Ended(match place.files.list(&at) {
        Some(names) => {
            let shown = names.iter().filter(|name| hidden || !name.starts_with('.'));
            Ran::prints(shown.map(|name| name.clone() + "\n").collect::<String>())
        }
        None if place.files.read(&at).is_ok() => Ran::prints(format!("{of}\n")),
        None => Ran::complains(format!("ls: {of}: No such file or directory\n"), 1),
    })
}

/// `rm [-rf] FILE…`, `touch FILE…` and `mkdir [-p] DIRECTORY…`.
pub(super) fn change(place: &Place, name: &str, args: &[String]) -> Started {
    let (flags, files): (Vec<&String>, Vec<&String>) =
        args.iter().partition(|arg| arg.starts_with('-'));
    let known = |flag: &&String| match name {
        "rm" => matches!(flag.as_str(), "-f" | "-r" | "-rf" | "-fr"),
        "mkdir" => *flag == "-p",
        _ => false,
    };
    if files.is_empty() || !flags.iter().all(known) {
        return Refusal::not_simulated(&format!("{name} {}", args.join(" ")));
    }
    let has = |letter| flags.iter().any(|flag| flag.contains(letter));
    let mut ran = Ran::default();
    for file in files {
        let at = path(place, file);
        let there = place.files.list(&at).is_some();
        let changed = match name {
            "mkdir" if there && has('p') => Ok(()),
            "mkdir" if there || place.files.read(&at).is_ok() => {
                let text = format!("mkdir: can't create directory '{file}': File exists\n");
                ran = ran.then(Ran::complains(text, 1));
                continue;
            }
            "mkdir" => place.files.make_directory(&at),
            "touch" if there => Ok(()),
            "touch" => place.files.write(&at, b"", true),
            _ if there && has('r') => {
                return Refusal::not_simulated("rm -r of a directory");
            }
            _ if there => {
                let text = format!("rm: '{file}' is a directory\n");
                ran = ran.then(Ran::complains(text, 1));
                continue;
            }
            _ => place.files.remove(&at),
        };
        if let Err(error) = changed {
            if name == "rm" && has('f') && error == FileError::Missing {
                continue;
            }
            let why = error.text(Os::Linux);
            let text = match name {
                "rm" => format!("rm: can't remove '{file}': {why}\n"),
                "mkdir" => format!("mkdir: can't create directory '{file}': {why}\n"),
                _ => format!("touch: {file}: {why}\n"),
            };
            let code = ran.code.max(1);
            ran = ran.then(Ran::complains(text, code));
        }
    }
    let code = u32::from(!ran.stderr.is_empty());
    Started::Ended(ran.ending(code))
}
