//! Commands on one file: its content, and whether it exists.
//!
//! Texts: busybox 1.37 (`coreutils/`); Microsoft's pages of `icacls`, `fsutil` and `mklink`.

use super::forms::{Call, is_whole};
use super::{Place, Ran, Refusal, shell};
use crate::nodes::files::{FileError, LINKS, Links};
use crate::program::windows::system::end_of_line;
use crate::program::windows::{folder, host};
use crate::topology::Os;

/// The absolute path of a file within the container's files.
fn path(place: &Place, file: &str) -> String {
    let file = match place.os {
        Os::Linux => file.to_owned(),
        Os::Windows => shell::expanded(place, file).replace("C:\\hpc\\", "C:\\"),
    };
    let absolute = match place.os {
        Os::Linux => file.starts_with('/'),
        Os::Windows => file.contains(':') || file.starts_with(['\\', '/']),
    };
    match absolute {
        true => file,
        false => format!("{}/{file}", place.directory),
    }
}

/// The path, unless a shell would interpret a character of it; Windows' variables are allowed.
fn plain(file: &str) -> Option<&str> {
    let read = |letter: char| " \"'`$^<>|&;()*?".contains(letter);
    (!file.is_empty() && !file.contains(read)).then_some(file)
}

/// The content of a file; an error if the image might have the file with unknown content.
fn content(call: &Call<'_>, file: &str) -> Result<Result<Vec<u8>, FileError>, Ran> {
    let place = call.place();
    let at = path(place, file);
    let follows = place.files.links == Links::Container;
    let behind = || follows.then(|| folder::behind_link(call, &at))?;
    let bytes = match place.files.read(&at) {
        Err(error) => behind().map_or(Err(error), |at| place.files.read(&at)),
        read => read,
    };
    if bytes.is_ok() {
        return Ok(bytes);
    }
    match is_of_system(place.os, &at) {
        true => Err(Refusal::instead_of(&format!("the content of {file}"))),
        false => Ok(bytes),
    }
}

/// Whether a path lies in a folder where an image has its own files.
fn is_of_system(os: Os, path: &str) -> bool {
    const LINUX: &[&str] = &[
        "bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr",
    ];
    let path = path.replace('\\', "/").to_lowercase();
    let path = path.strip_prefix("c:").unwrap_or(&path);
    let first = path.trim_start_matches('/').split('/').next();
    let first = first.unwrap_or_default();
    match os {
        Os::Linux => LINUX.contains(&first),
        Os::Windows => first.starts_with("program files") || first == "windows",
    }
}

/// Runs `succeeded` with the content of a file, or `failed` with the reason why there is none.
fn with(
    call: &Call<'_>,
    file: &str,
    succeeded: impl FnOnce(Vec<u8>) -> Ran,
    failed: impl FnOnce(FileError) -> Ran,
) -> Ran {
    match content(call, file) {
        Ok(Ok(bytes)) => succeeded(bytes),
        Ok(Err(error)) => failed(error),
        Err(refused) => refused,
    }
}

/// busybox's error message, `PROGRAM: FILE: WHY`.
fn complains(program: &str, file: &str, error: FileError) -> Ran {
    let why = error.text(Os::Linux);
    Ran::complains(format!("{program}: can't open '{file}': {why}\n"), 1)
}

/// `cat FILE`, or `cat` of its input.
pub(crate) fn read(call: &Call<'_>) -> Option<Ran> {
    match call.args {
        [] => Some(Ran::prints(call.input)),
        [file] => Some(with(call, plain(file)?, Ran::prints, |error| match error {
            // busybox reports an error of read, not of open (bb_simple_perror_msg)
            FileError::IsDirectory => Ran::complains("cat: read error: Is a directory\n", 1),
            error => complains("cat", file, error),
        })),
        _ => None,
    }
}

/// `rm -f FILE`.
pub(crate) fn delete(call: &Call<'_>) -> Option<Ran> {
    let ["-f", file] = call.words()? else {
        return None;
    };
    let place = call.place();
    Some(match place.files.remove(&path(place, plain(file)?)) {
        Ok(()) | Err(FileError::Missing) => Ran::default(),
        Err(error) => {
            let why = error.text(Os::Linux);
            Ran::complains(format!("rm: can't remove '{file}': {why}\n"), 1)
        }
    })
}

/// `test -e FILE`.
pub(crate) fn exists(call: &Call<'_>) -> Option<Ran> {
    let ["-e", file] = call.words()? else {
        return None;
    };
    Some(is_there(call, plain(file)?))
}

fn is_there(call: &Call<'_>, file: &str) -> Ran {
    // Nano Server has no Windows on Windows (Microsoft, "Windows container base images")
    if file.eq_ignore_ascii_case("C:\\Windows\\SysWOW64\\cmd.exe") {
        return Ran::code(u32::from(!is_whole(call.place())));
    }
    with(
        call,
        file,
        |_| Ran::default(),
        |error| Ran::code(u32::from(error != FileError::IsDirectory)),
    )
}

/// `stat -c '%a %u %g' FILE` and `icacls FILE`: files have no modes here, so the result is the same for all.
pub(crate) fn access(call: &Call<'_>) -> Option<Ran> {
    if call.place().os == Os::Linux {
        let ["-c", "%a %u %g", file] = call.words()? else {
            return None;
        };
        return Some(with(
            call,
            plain(file)?,
            |_| Ran::prints("644 0 0\n"),
            |error| {
                let why = error.text(Os::Linux);
                Ran::complains(format!("stat: can't stat '{file}': {why}\n"), 1)
            },
        ));
    }
    let [file] = call.words()?;
    Some(with(
        call,
        plain(file)?,
        |_| {
            let indent = " ".repeat(file.len() + 1);
            let at = path(call.place(), file);
            let by = match call.place().files.has_mode(&at) {
                true => "",
                false => "(I)",
            };
            Ran::prints(format!(
                "{file} BUILTIN\\Administrators:{by}(F)\r\n{indent}NT AUTHORITY\\SYSTEM:{by}(F)\r\n\
                 {indent}BUILTIN\\Users:{by}(RX)\r\n\r\n\
                 Successfully processed 1 files; Failed processing 0 files\r\n"
            ))
        },
        |error| {
            let why = error.text(Os::Windows);
            Ran::prints("Successfully processed 0 files; Failed processing 1 files\r\n")
                .then(Ran::complains(format!("{file}: {why}\r\n"), 2))
        },
    ))
}

/// `fsutil file createnew FILE BYTES` and `fsutil volume diskfree PATH`.
pub(crate) fn space(call: &Call<'_>) -> Option<Ran> {
    let place = call.place();
    if let Some(["file", "createnew", file, bytes]) = call.words() {
        let size: usize = bytes.parse().ok().filter(|bytes| *bytes <= 64 << 20)?;
        let at = path(place, plain(file)?);
        // ERROR_FILE_EXISTS
        if place.files.read(&at).is_ok() {
            return Some(Ran::prints("Error:  The file exists.\r\n").ending(1));
        }
        return Some(match place.files.write(&at, &vec![0; size]) {
            Ok(()) => Ran::prints(format!("File {file} is created\r\n")),
            Err(error) => Ran::prints(format!("Error:  {}\r\n", error.text(Os::Windows))).ending(1),
        });
    }
    let ["volume", "diskfree", _] = call.words()? else {
        return None;
    };
    Some(host::free_space(call))
}

/// Writes a line to a file, as a shell's `echo` does.
pub(crate) fn write(place: &Place, file: &str, text: &str) -> Ran {
    let Some(file) = plain(file) else {
        return Refusal::instead_of(&format!("echo > {file}"));
    };
    let line = format!("{text}{}", end_of_line(place.os));
    match place.files.write(&path(place, file), line.as_bytes()) {
        Ok(()) => Ran::default(),
        Err(error) => {
            let why = error.text(place.os);
            let words = match place.os {
                Os::Linux => format!("sh: can't create {file}: {why}\n"),
                Os::Windows => format!("{why}\r\n"),
            };
            Ran::complains(words, 1)
        }
    }
}

/// Commands of `cmd` itself on one file.
pub(crate) fn command(call: &Call<'_>, script: &str) -> Option<Ran> {
    let place = call.place();
    if place.os == Os::Linux {
        return None;
    }
    let says = |error: FileError| Ran::complains(format!("{}\r\n", error.text(Os::Windows)), 1);
    if let Some(file) = script.strip_prefix("type ") {
        return Some(with(call, plain(file)?, Ran::prints, says));
    }
    if let Some(file) = script.strip_prefix("del /q ") {
        let at = path(place, plain(file)?);
        return Some(match place.files.remove(&at) {
            Ok(()) => Ran::default(),
            // Its exit code is still 0
            Err(FileError::Missing) => Ran::complains(
                format!("Could Not Find {}\r\n", shell::expanded(place, file)),
                0,
            ),
            Err(error) => says(error).ending(0),
        });
    }
    if let Some(rest) = script.strip_prefix("if not exist ") {
        let file = rest.strip_suffix(" exit 1")?;
        return Some(is_there(call, plain(file)?));
    }
    if let Some(folder) = script.strip_prefix("dir /al ") {
        let folder = plain(folder)?;
        if let Some(names) = place.files.links(&path(place, folder)) {
            let links = names.into_iter().map(|name| {
                format!("01/01/2026  12:00 AM    <SYMLINKD>     {name} [..data\\{name}]\r\n")
            });
            let links = links.collect::<Vec<_>>().concat();
            return Some(Ran::prints(format!(
                " Directory of {folder}\r\n\r\n{links}"
            )));
        }
        let links = place
            .files
            .read(&path(place, &format!("{folder}\\{LINKS}")));
        return Some(match links {
            Ok(links) => {
                let head = format!(" Directory of {folder}\r\n\r\n");
                Ran::prints([head.into_bytes(), links].concat())
            }
            Err(_) => Ran::complains("File Not Found\r\n", 1),
        });
    }
    let (link, target) = script.strip_prefix("mklink /J ")?.split_once(' ')?;
    let (folder, name) = plain(link)?.rsplit_once('\\')?;
    let shown = format!(
        "01/01/2026  12:00 AM    <JUNCTION>     {name} [{}]\r\n",
        plain(target)?
    );
    let at = path(place, &format!("{folder}\\{LINKS}"));
    if place.files.links == Links::Node {
        place
            .files
            .copy(&path(place, plain(target)?), &path(place, plain(link)?));
    }
    Some(match place.files.write(&at, shown.as_bytes()) {
        Ok(()) => Ran::prints(format!("Junction created for {link} <<===>> {target}\r\n")),
        Err(error) => says(error),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{place, run};
    use super::super::{NOT_SIMULATED, Started};
    use super::*;
    use crate::base::log::Stream;
    use crate::nodes::image::Family;

    fn run_file(place: &Place, argv: &[&str]) -> (u32, String) {
        match run(place, argv) {
            Started::Ended(ran) => (
                ran.code,
                String::from_utf8([Stream::Out, Stream::Error].map(|of| ran.all(of)).concat())
                    .expect("text"),
            ),
            other => panic!("{argv:?}: {other:?}"),
        }
    }

    #[test]
    fn a_file_is_written_read_and_deleted() {
        let linux = place(Os::Linux, Family::Agnhost);
        let windows = place(Os::Windows, Family::Servercore);
        for (place, write, read, exists, delete) in [
            (
                &linux,
                &["sh", "-c", "echo a b > /x/y"][..],
                &["cat", "/x/y"][..],
                &["test", "-e", "/x/y"][..],
                &["rm", "-f", "/x/y"][..],
            ),
            (
                &windows,
                &["cmd", "/c", ">C:\\x\\y echo a b"],
                &["cmd", "/c", "type C:\\x\\y"],
                &["cmd", "/c", "if not exist C:\\x\\y exit 1"],
                &["cmd", "/c", "del /q C:\\x\\y"],
            ),
        ] {
            assert_eq!(run_file(place, exists).0, 1);
            assert_eq!(run_file(place, write), (0, String::new()));
            assert_eq!(run_file(place, exists).0, 0);
            let (code, text) = run_file(place, read);
            assert_eq!((code, text.trim_end()), (0, "a b"));
            assert_eq!(run_file(place, delete), (0, String::new()));
            assert_eq!(run_file(place, read).0, 1);
        }
    }

    #[test]
    fn a_link_leads_to_the_folder_of_its_container() {
        let container = place(Os::Windows, Family::Servercore);
        let link = "mklink /J C:\\volume\\out C:\\inside";
        for script in [">C:\\inside\\file.txt echo a", link] {
            assert_eq!(run_file(&container, &["cmd", "/c", script]).0, 0);
        }
        let read = |file: &str| {
            let script = format!("type C:\\volume\\{file}\\file.txt");
            run_file(&container, &["cmd", "/c", &script])
        };
        assert_eq!(read("out"), (0, "a\r\n".to_owned()));
        assert_eq!(read("in").0, 1);
    }

    #[test]
    fn what_an_image_has_of_its_own_is_not_known() {
        let linux = place(Os::Linux, Family::Agnhost);
        assert_eq!(
            run_file(&linux, &["cat", "/etc/os-release"]).0,
            NOT_SIMULATED
        );
        assert_eq!(run_file(&linux, &["cat", "/nowhere"]).0, 1);
    }
}
