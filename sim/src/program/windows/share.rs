//! Folders that a server of SMB shares, to which containers write as the account of their credential spec.

use crate::fault::FaultKind;
use crate::names::Query;
use crate::program::Ran;
use crate::program::forms::Call;
use crate::program::shell::expanded;
use crate::program::web::net::{Link, Net};
use crate::topology::{Build, Pool};

/// What the script that connects to the server has before the variable with a path there, and after it.
pub(crate) const REACH: [&str; 2] = [
    "[Net.Sockets.TcpClient]::new(($env:",
    r" -split '\\')[2], 445).Dispose()",
];

/// Connects to the server of the path that a variable has.
pub(crate) fn reach(call: &Call<'_>, variable: &str) -> Ran {
    let path = expanded(call.place(), &format!("%{variable}%"));
    let (found, _) = call
        .seat
        .find(&Query::address(server(&path).unwrap_or_default()));
    let address = found.ok().and_then(|found| found.first().copied());
    match address.map(|address| call.seat.open(address, 445)) {
        Some(Link::Open(_)) => Ran::default(),
        _ => Ran::complains("Exception calling \".ctor\" with \"2\" argument(s)\r\n", 1),
    }
}

fn server(path: &str) -> Option<&str> {
    path.strip_prefix(r"\\")?.split('\\').next()
}

/// `>FILE echo LINE& (if not exist FILE exit 1)& type FILE& del /q FILE& if exist FILE exit 2`, of a file on a share.
pub(crate) fn write(call: &Call<'_>, script: &str) -> Option<Ran> {
    let (file, rest) = script.strip_prefix('>')?.split_once(" echo ")?;
    let (line, rest) = rest.split_once("& ")?;
    let after = format!("& type {file}& del /q {file}& if exist {file} exit 2");
    if rest != format!("(if not exist {file} exit 1){after}") {
        return None;
    }
    let path = expanded(call.place(), file);
    let is_written = server(&path).is_some_and(|server| is_let_in(call, server));
    Some(match is_written {
        true => Ran::prints(format!("{line}\r\n")),
        false => Ran::complains("The network path was not found.\r\n", 1),
    })
}

/// Whether the server lets in anybody, or takes the container for the account of its credential spec: here one of its
/// domain does. A kernel of Windows Server 2019 without its patch offers no account (Kubernetes 1.24, "Windows containers
/// in Kubernetes").
fn is_let_in(call: &Call<'_>, server: &str) -> bool {
    let world = call.seat.view.world;
    let name = call.place().origin.node(world);
    let Some((name, node)) = name.and_then(|name| Some((name, world.nodes.get(name)?))) else {
        return false;
    };
    if world.faults.any(FaultKind::SharesOpen) {
        return true;
    }
    let suffers = |kind| world.suffers(kind, name);
    let domain = call.place().domain.as_ref();
    let server = server.to_ascii_lowercase();
    let is_of_domain = domain.is_some_and(|domain| server.ends_with(&format!(".{domain}")));
    let is_patched = node.pool != Pool::Windows(Build::Ws2019) || suffers(FaultKind::SharesOffered);
    is_of_domain && is_patched && !suffers(FaultKind::SharesRefused)
}
