//! The small programs of Linux images: busybox' in agnhost and busybox. Texts are busybox'
//! (coreutils, findutils, networking, procps).

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::super::input::Input;
use super::super::net::Net;
use super::super::seat::Seat;
use super::super::{Place, Ran, Refusal, Sight, Started, launch, nslookup, ping};
use super::{files, grep, test, text};
use crate::image::Family;
use crate::network::Origin;

/// The variables of a process: the container's, and what the runtime adds.
fn variables(place: &Place) -> BTreeMap<String, String> {
    let own = ["HOSTNAME", "HOME", "PATH"];
    let own = own.map(|name| (name.to_owned(), variable(place, name).unwrap_or_default()));
    let mut all = BTreeMap::from(own);
    all.extend((*place.env).clone());
    all
}

/// One of them.
pub(super) fn variable(place: &Place, name: &str) -> Option<String> {
    let own = [
        ("HOSTNAME", place.hostname.as_str()),
        ("HOME", "/root"),
        ("PATH", PATH),
    ];
    let own = own.iter().find(|(own, _)| *own == name);
    let own = || own.map(|(_, value)| (*value).to_owned());
    place.env.get(name).cloned().or_else(own)
}

/// Where a process is.
pub(super) fn directory(place: &Place) -> String {
    if place.directory.is_empty() {
        return "/".to_owned();
    }
    place.directory.clone()
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
        "echo" => echo(args),
        "printf" => match args {
            [text] if !text.contains('%') => match text::unescaped(text) {
                Some(text) => Started::Ended(Ran::prints(text)),
                None => Refusal::not_simulated("printf of this kind"),
            },
            _ => Refusal::not_simulated("printf with values"),
        },
        "hostname" => match args {
            [] => Started::Ended(Ran::prints(format!("{}\n", place.hostname))),
            [flag] if flag == "-i" => Started::Ended(Ran::prints(format!("{}\n", seat.address()))),
            [flag] if flag == "-s" => {
                let short = place.hostname.split('.').next().unwrap_or_default();
                Started::Ended(Ran::prints(format!("{short}\n")))
            }
            _ => Refusal::not_simulated(&format!("hostname {}", args.join(" "))),
        },
        "pwd" => Started::Ended(Ran::prints(directory(place) + "\n")),
        "env" => env(place, args, input, view),
        "printenv" => Started::Ended(printenv(place, args)),
        "id" => id(place, args),
        "whoami" if place.user.is_none() => Started::Ended(Ran::prints("root\n")),
        "which" if place.family == Family::Busybox => which(place, args, view),
        "cat" => Started::Ended(files::cat(place, args, input.bytes())),
        "grep" => grep::run(args, place, input.bytes()),
        "ls" => files::list(place, args),
        "rm" | "touch" | "mkdir" => files::change(place, name, args),
        "test" | "[" => test::run(place, name, args),
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

/// `echo [-neE]… WORD…`.
fn echo(args: &[String]) -> Started {
    let flag = |arg: &&String| {
        let letters = arg.strip_prefix('-').unwrap_or_default();
        !letters.is_empty()
            && letters
                .chars()
                .all(|letter| matches!(letter, 'n' | 'e' | 'E'))
    };
    let flags = args.iter().take_while(flag).count();
    let (flags, words) = args.split_at(flags);
    let flags = flags.concat();
    let escapes = flags
        .rfind('e')
        .is_some_and(|at| !flags[at..].contains('E'));
    let mut said = words.join(" ");
    if escapes {
        said = match text::unescaped(&said) {
            Some(said) => said,
            None => return Refusal::not_simulated("echo -e of this kind"),
        };
    }
    if !flags.contains('n') {
        said.push('\n');
    }
    Started::Ended(Ran::prints(said))
}

/// `env [-i] [NAME=VALUE…] [PROGRAM…]`.
fn env(place: &Place, args: &[String], input: &Input, view: &Sight<'_>) -> Started {
    let mut place = place.clone();
    let pairs = args.iter().map_while(|arg| arg.split_once('='));
    let pairs: Vec<_> = pairs.filter(|(name, _)| !name.starts_with('-')).collect();
    let program = &args[pairs.len()..];
    let mut env = (*place.env).clone();
    env.extend(
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    place.env = env.into();
    match program.first() {
        None => Started::Ended(listed(&place)),
        Some(flag) if flag.starts_with('-') => {
            Refusal::not_simulated(&format!("env {}", args.join(" ")))
        }
        Some(_) => match launch(&place, program, input, view) {
            Started::Refused(Refusal::Missing(file)) => Started::Ended(Ran::complains(
                format!("env: can't execute '{file}': No such file or directory\n"),
                127,
            )),
            other => other,
        },
    }
}

fn listed(place: &Place) -> Ran {
    let all = variables(place);
    let all = all.iter().map(|(name, value)| format!("{name}={value}\n"));
    Ran::prints(all.collect::<String>())
}

fn printenv(place: &Place, names: &[String]) -> Ran {
    if names.is_empty() {
        return listed(place);
    }
    let mut ran = Ran::default();
    for name in names {
        match variable(place, name) {
            Some(value) => ran.say(format!("{value}\n")),
            None => ran.code = 1,
        }
    }
    ran
}

fn id(place: &Place, args: &[String]) -> Started {
    let user = place.user.as_deref().unwrap_or("0");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Started::Ended(Ran::prints(match args[..] {
        ["-u"] => format!("{user}\n"),
        ["-g" | "-G"] => "0\n".to_owned(),
        ["-un"] if user == "0" => "root\n".to_owned(),
        ["-gn" | "-Gn"] => "root\n".to_owned(),
        [] if user == "0" => "uid=0(root) gid=0(root) groups=0(root)\n".to_owned(),
        [] => format!("uid={user} gid=0(root) groups=0(root)\n"),
        _ => return Refusal::not_simulated("id of this kind"),
    }))
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

/// `ip addr`, as far as the pod's own address goes.
fn address(seat: &Seat<'_>, args: &[String]) -> Started {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let addresses = |word: &str| matches!(word, "a" | "addr" | "address");
    let shown = |word: &str| matches!(word, "s" | "sh" | "show" | "l" | "ls" | "list");
    let known = match args[..] {
        [of] => addresses(of),
        [of, verb] => addresses(of) && shown(verb),
        _ => false,
    };
    if !known {
        return Refusal::not_simulated("ip of this kind");
    }
    let pod = matches!(seat.place.origin, Origin::Pod(_));
    let own = seat.address();
    let (word, length) = match (own, pod) {
        (IpAddr::V6(_), _) => ("inet6", 64),
        (IpAddr::V4(_), true) => ("inet", 24),
        (IpAddr::V4(_), false) => ("inet", 8),
    };
    Started::Ended(Ran::prints(format!(
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN qlen 1000\n    \
         link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n    inet 127.0.0.1/8 scope host lo\n       \
         valid_lft forever preferred_lft forever\n\
         2: eth0@if7: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 1500 qdisc noqueue state UP\n    \
         {word} {own}/{length} scope global eth0\n       valid_lft forever preferred_lft forever\n"
    )))
}
