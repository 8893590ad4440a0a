//! Small programs that report on their system.
//!
//! Texts of Windows: Microsoft's pages of `tasklist`, `net user` and `nltest`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::nodes::image::Family;
use crate::program::forms::Call;
use crate::program::{ADMINISTRATOR, Place, Ran, Started, shell};
use crate::topology::Os;
use crate::world::Page;

/// `pause`: stays until it is stopped.
pub(crate) fn pause(call: &Call<'_>) -> Option<Started> {
    call.words::<0>().map(|[]| Started::stays())
}

/// `sleep SECONDS`.
pub(crate) fn sleep(call: &Call<'_>) -> Option<Ran> {
    let [seconds] = call.words()?;
    Some(Ran::sleeps(shell::seconds(seconds)?))
}

/// `echo WORD…`.
pub(crate) fn echo(call: &Call<'_>) -> Ran {
    Ran::prints(call.args.join(" ") + "\n")
}

/// `hostname`.
pub(crate) fn hostname(call: &Call<'_>) -> Option<Ran> {
    let [] = call.words()?;
    let Place { os, hostname, .. } = call.place();
    Some(Ran::prints(format!("{hostname}{}", end_of_line(*os))))
}

/// The line end of the programs of an operating system.
pub(crate) fn end_of_line(os: Os) -> &'static str {
    match os {
        Os::Linux => "\n",
        Os::Windows => "\r\n",
    }
}

/// `id`.
pub(crate) fn id(call: &Call<'_>) -> Option<Ran> {
    let [] = call.words()?;
    let user = call.place().user.as_deref().unwrap_or("0(root)");
    Some(Ran::prints(format!(
        "uid={user} gid=0(root) groups=0(root)\n"
    )))
}

/// `findstr /l WORD` of the input.
pub(crate) fn filter(call: &Call<'_>) -> Option<Ran> {
    let ["/l", word] = call.words()? else {
        return None;
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-.:".contains(letter);
    if word.is_empty() || word.starts_with('-') || !word.chars().all(is_plain) {
        return None;
    }
    let end = end_of_line(call.place().os);
    let text = String::from_utf8_lossy(call.input);
    let matching = text.lines().filter(|line| line.contains(word));
    let lines = matching.map(|line| format!("{line}{end}"));
    let lines = lines.collect::<Vec<_>>().concat();
    let code = u32::from(lines.is_empty());
    Some(Ran::prints(lines).ending(code))
}

/// The entry point of IIS' image.
pub(crate) fn iis() -> Started {
    Started::Serves {
        listening: BTreeMap::from([(80, Page::Iis)]),
        listening_udp: BTreeMap::new(),
        warm_up: Duration::from_secs(4),
        prints: "Service 'w3svc' has been stopped\r\n\r\nService 'w3svc' started\r\n".to_owned(),
    }
}

/// `whoami`: `runAsUserName`, or the image's user (kubernetes/website, configure-runasusername.md:
/// `ContainerUser` is nanoserver's).
pub(crate) fn who_am_i(call: &Call<'_>) -> Option<Ran> {
    let [] = call.words()?;
    let place = call.place();
    let image = match place.family {
        Family::Nanoserver => "ContainerUser",
        _ => ADMINISTRATOR,
    };
    let user = place.user.as_deref().unwrap_or(match place.host_process {
        true => "NT AUTHORITY\\SYSTEM",
        false => image,
    });
    let user = user.to_lowercase();
    Some(Ran::prints(match user.contains('\\') {
        true => format!("{user}\r\n"),
        false => format!("user manager\\{user}\r\n"),
    }))
}

const EVERYWHERE: &[&str] = &[
    "System Idle Process",
    "System",
    "smss.exe",
    "csrss.exe",
    "wininit.exe",
    "services.exe",
    "lsass.exe",
    "svchost.exe",
];

/// What each node runs beside containers.
const OF_NODE: [&str; 3] = [
    "containerd.exe",
    "C:\\k\\kubelet.exe --windows-service",
    "kube-proxy.exe",
];

fn sees_host(place: &Place) -> bool {
    place.host_process || place.sees_host
}

/// The command lines of the processes that a program sees: its node's and those of all containers there but in virtual
/// machines (Microsoft, "Isolation Modes"), or its own container's.
pub(crate) fn lines<'a>(call: &Call<'a>) -> Vec<&'a str> {
    let (place, world) = (call.place(), call.seat.view.world);
    let own = place.lines.iter().map(String::as_str);
    if !sees_host(place) {
        return own.collect();
    }
    let node = place.origin.node(world);
    let there = node.into_iter().flat_map(|node| world.pods.on(node));
    let there = there.filter(|(_, pod)| !pod.isolated);
    let there = there
        .flat_map(|(_, pod)| &pod.told.lines)
        .map(String::as_str);
    OF_NODE.into_iter().chain(own).chain(there).collect()
}

/// The command line with these words of a pod on the network of the program's node, as `HostProcess` ones are.
pub(crate) fn line_on_node<'a>(call: &Call<'a>, words: &str) -> Option<&'a str> {
    let (place, world) = (call.place(), call.seat.view.world);
    let pods = world.pods.on_host(place.origin.node(world)?);
    let mut lines = pods.flat_map(|(_, pod)| &pod.told.lines);
    lines.find(|line| line.contains(words)).map(String::as_str)
}

/// `tasklist /fo csv /nh`.
pub(crate) fn processes(call: &Call<'_>) -> Option<Ran> {
    let ["/fo", "csv", "/nh"] = call.words()? else {
        return None;
    };
    let place = call.place();
    let lines = lines(call);
    let specific = (!sees_host(place)).then_some("CExecSvc.exe");
    let system = EVERYWHERE.iter().copied().chain(specific);
    let programs = lines.iter().filter_map(|line| {
        let program = line.split(' ').next()?;
        let name = program.rsplit(['\\', '/']).next()?;
        // An image's own program is not known
        name.strip_suffix(".exe").map(|_| name)
    });
    let names = system.chain(programs).chain(["tasklist.exe"]);
    let line = |(number, name): (usize, &str)| {
        format!(
            "\"{name}\",\"{}\",\"Services\",\"0\",\"4,096 K\"\r\n",
            number * 4
        )
    };
    Some(Ran::prints(
        names.enumerate().map(line).collect::<Vec<_>>().concat(),
    ))
}

/// `net user NAME PASSWORD /add` and `net user NAME`.
pub(crate) fn user(call: &Call<'_>) -> Option<Ran> {
    let place = call.place();
    let at = |name: &str| format!("/Windows/System32/config/{name}");
    let done = "The command completed successfully.\r\n\r\n";
    if let Some(["user", name, _, "/add"]) = call.words() {
        let added = place.files.write(&at(name), b"");
        return added.is_ok().then(|| Ran::prints(done));
    }
    let ["user", name] = call.words()? else {
        return None;
    };
    if place.files.read(&at(name)).is_ok() {
        return Some(Ran::prints(format!(
            "User name                    {name}\r\n{done}"
        )));
    }
    let words = "The user name could not be found.\r\n\r\nMore help is available by typing NET HELPMSG 2221.\r\n\r\n";
    Some(Ran::complains(words, 2))
}

/// `nltest /PARENTDOMAIN` (Microsoft, "Troubleshoot gMSAs for Windows containers"; kubernetes,
/// `test/e2e/windows/gmsa_kubelet.go`).
pub(crate) fn domain(call: &Call<'_>) -> Option<Ran> {
    let ["/PARENTDOMAIN"] = call.words()? else {
        return None;
    };
    Some(match &call.place().domain {
        Some(domain) => Ran::prints(format!(
            "{domain}. (1)\r\nThe command completed successfully\r\n"
        )),
        None => {
            let words =
                "Getting parent domain failed: Status = 1722 0x6ba RPC_S_SERVER_UNAVAILABLE\r\n";
            Ran::complains(words, 1722)
        }
    })
}
