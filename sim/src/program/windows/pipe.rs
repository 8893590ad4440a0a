//! Named pipes of a Windows node, which containers read that mount them, and `HostProcess` ones.

use crate::program::Ran;
use crate::program::forms::Call;
use crate::program::windows::system;

/// What the path of each named pipe begins with.
pub(crate) const PIPES: &str = r"\\.\pipe\";

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

/// The line that a pipe has for a program whose container finds it: a pod on the network of the program's node serves
/// it, as a `HostProcess` container does.
fn line(call: &Call<'_>, name: &str) -> Option<String> {
    let place = call.place();
    let path = format!("{PIPES}{name}");
    place.pipes.iter().find(|pipe| path.starts_with(*pipe))?;
    let server = system::line_on_node(call, &format!("{SERVER}{name}'"))?;
    let (_, rest) = server.split_once(".WriteLine('")?;
    rest.split_once('\'').map(|(line, _)| line.to_owned())
}
