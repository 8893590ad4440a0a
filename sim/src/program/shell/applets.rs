//! The small programs of Linux images: busybox' in agnhost and busybox. Texts are busybox'
//! (coreutils, findutils, networking, procps).

use super::super::input::{Input, copies, gathers};
use super::super::net::Net;
use super::super::script::path;
use super::super::seat::Seat;
use super::super::{Place, Ran, Refusal, Sight, Started, nslookup, ping};
use super::text;
use crate::image::Family;
use crate::network::Origin;
use crate::topology::Os;

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

/// The applets that busybox 1.35 has and that are not simulated (`busybox --list` of Debian's).
const LACKING: &[&str] = &[
    "arp",
    "awk",
    "base64",
    "bc",
    "cal",
    "chgrp",
    "chmod",
    "chown",
    "chroot",
    "clear",
    "cmp",
    "cp",
    "cut",
    "dd",
    "df",
    "diff",
    "dmesg",
    "dnsdomainname",
    "du",
    "egrep",
    "expand",
    "expr",
    "fgrep",
    "find",
    "fold",
    "free",
    "getopt",
    "groups",
    "gunzip",
    "gzip",
    "hexdump",
    "hostid",
    "ifconfig",
    "ionice",
    "ipcalc",
    "kill",
    "killall",
    "less",
    "ln",
    "logger",
    "md5sum",
    "mkfifo",
    "mknod",
    "mktemp",
    "more",
    "mount",
    "mv",
    "nc",
    "netstat",
    "nl",
    "nproc",
    "nslookup",
    "od",
    "paste",
    "pidof",
    "ping",
    "ping6",
    "ps",
    "readlink",
    "realpath",
    "renice",
    "reset",
    "rev",
    "rmdir",
    "route",
    "sed",
    "setsid",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "shred",
    "shuf",
    "sort",
    "stat",
    "strings",
    "stty",
    "su",
    "sync",
    "sysctl",
    "tar",
    "tee",
    "telnet",
    "time",
    "timeout",
    "top",
    "tr",
    "traceroute",
    "tty",
    "umount",
    "uniq",
    "unzip",
    "uptime",
    "usleep",
    "vi",
    "watch",
    "wget",
    "who",
    "xargs",
    "xxd",
    "yes",
    "zcat",
    "which",
];

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a small program, if there is one of that name.
pub(in crate::program) fn applet(
    place: &Place,
    name: &str,
    args: &[String],
    input: &Input,
    view: &Sight<'_>,
) -> Option<Started> {
    let seat = Seat { place, view: *view };
    if input.is_open() && reads(name, args) {
        if name == "cat" {
            return Some(copies(place.os));
        }
        let (place, name, args) = (place.clone(), name.to_owned(), args.to_vec());
        return Some(gathers(place.os, move |all, view| {
            let missing = || Started::Refused(Refusal::Missing(name.clone()));
            applet(&place, &name, &args, &all.into(), view).unwrap_or_else(missing)
        }));
    }
    Some(match name {
        "sleep" => text::sleep(args),
        "seq" => text::seq(args),
        "date" => text::date(args, &seat),
        "uname" => text::uname(args, &seat),
        "wc" => text::wc(args, input.bytes()),
        "head" => text::head(args, place, input.bytes()),
        "tail" => text::tail(args, place, input.bytes()),
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
        "whoami" if place.user.is_none() => Started::Ended(Ran::prints("root\n")),
        "which" if place.family == Family::Busybox => which(place, args, view),
        "cat" => Started::Ended(cat(place, args, input.bytes())),
        "grep" => Started::Ended(grep(args, input.bytes())),
        "ls" => Started::Ended(list(place, args)),
        "rm" | "touch" | "mkdir" => Started::Ended(change(place, name, args)),
        "test" | "[" => Started::Ended(test(place, args)),
        "ip" => address(&seat, args),
        // agnhost's image is Alpine's (test/images/agnhost/Dockerfile), whose busybox has it
        "ping" => ping::linux(args, &seat),
        "nslookup" if place.family == Family::Agnhost => nslookup::bind(args, &seat),
        "dig" if place.family == Family::Agnhost => Refusal::not_simulated(name),
        // agnhost's image is Alpine's: what busybox has there, it has
        _ if LACKING.contains(&name) => Refusal::not_simulated(name),
        _ => return None,
    })
}

/// Whether an applet reads its input, rather than files.
fn reads(name: &str, args: &[String]) -> bool {
    match name {
        "cat" => args.is_empty(),
        "grep" | "wc" => true,
        "head" | "tail" => text::reads_input(args),
        _ => false,
    }
}

fn id(place: &Place, args: &[String]) -> Ran {
    let user = place.user.as_deref().unwrap_or("0");
    match args.first().map(String::as_str) {
        Some("-u") => Ran::prints(format!("{user}\n")),
        _ if user == "0" => Ran::prints("uid=0(root) gid=0(root) groups=0(root)\n"),
        _ => Ran::prints(format!("uid={user} gid=0(root) groups=0(root)\n")),
    }
}

/// `which NAME…`: where the image has it.
fn which(place: &Place, args: &[String], view: &Sight<'_>) -> Started {
    let mut ran = Ran::default();
    for name in args {
        let there = match name.as_str() {
            "sh" | "ash" | "which" => true,
            name => applet(place, name, &[], &Input::default(), view).is_some(),
        };
        match there {
            // Where the official image has everything
            true => ran.say(format!("/bin/{name}\n")),
            false => ran.code = 1,
        }
    }
    Started::Ended(ran)
}

fn cat(place: &Place, args: &[String], input: &[u8]) -> Ran {
    if args.is_empty() {
        return Ran::prints(input);
    }
    let mut all = Ran::default();
    for file in args {
        let code = all.code;
        all = all.then(
            match (file.as_str(), place.files.read(&path(place, file))) {
                (_, Ok(bytes)) => Ran::prints(bytes).ending(code),
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
