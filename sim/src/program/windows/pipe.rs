//! Named pipes of a Windows node, which containers read that mount them.

use crate::program::Ran;
use crate::program::forms::Call;

/// What the script of a server has before the name of its pipe.
pub(crate) const SERVER: &str = "[IO.Pipes.NamedPipeServerStream]::new('";

/// `set /p NAME=<\\.\pipe\PIPE& set NAME`.
pub(crate) fn read(call: &Call<'_>, script: &str) -> Option<Ran> {
    let (variable, rest) = script.strip_prefix("set /p ")?.split_once(r"=<\\.\pipe\")?;
    let (name, printed) = rest.split_once("& set ")?;
    if printed != variable {
        return None;
    }
    Some(match line(call, name) {
        Some(line) => Ran::prints(format!("{variable}={line}\r\n")),
        None => Ran::complains(
            format!(
                "The system cannot find the file specified.\r\n\
                 Environment variable {variable} not defined\r\n"
            ),
            1,
        ),
    })
}

/// The line that a pipe has for a program: a pod on the network of the program's node serves it, as a `HostProcess`
/// container does, and the program's container mounts it or is one of these, too.
fn line(call: &Call<'_>, name: &str) -> Option<String> {
    let (place, world) = (call.place(), call.seat.view.world);
    if !place.host_process && !place.pipes.contains(&format!(r"\\.\pipe\{name}")) {
        return None;
    }
    let begins = format!("{SERVER}{name}'");
    let beside = world.pods.on_host(place.origin.node(world)?);
    let mut lines = beside.flat_map(|(_, pod)| &pod.told.lines);
    let server = lines.find(|line| line.contains(&begins))?;
    let (_, rest) = server.split_once(".WriteLine('")?;
    rest.split_once('\'').map(|(line, _)| line.to_owned())
}
