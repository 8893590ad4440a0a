//! `type` and `dir`.

use super::super::script::{MOST_TEXT, path};
use super::super::{Place, Ran, Refusal, system};
use super::shown;
use crate::topology::Os;

pub(super) fn type_files(place: &Place, files: &[String]) -> Ran {
    let mut all = Ran::default();
    for file in files {
        if all.stdout.len() > MOST_TEXT {
            return Refusal::instead_of("files of so much text");
        }
        all = all.then(match place.files.read(&path(place, file)) {
            Ok(bytes) => Ran::prints(bytes),
            Err(_) if system::is_unknown(place, &path(place, file)) => {
                return Refusal::instead_of(&format!("the content of {file}"));
            }
            Err(error) => Ran::complains(format!("{}\r\n", error.text(Os::Windows)), 1),
        });
    }
    all
}

pub(super) fn directory(place: &Place, args: &[String]) -> Ran {
    let bare = args.iter().any(|arg| arg.eq_ignore_ascii_case("/b"));
    let of = args
        .iter()
        .find(|arg| !arg.starts_with('/'))
        .map_or("", String::as_str);
    let at = path(place, of);
    if system::is_unlisted(place, &at) {
        return Refusal::instead_of(&format!("the content of {of}"));
    }
    let names = match place.files.list(&at) {
        Some(names) => names,
        None if place.files.read(&at).is_ok() => {
            vec![of.rsplit(['\\', '/']).next().unwrap_or_default().to_owned()]
        }
        None => return Ran::complains("File Not Found\r\n", 1),
    };
    if bare {
        return Ran::prints(
            names
                .iter()
                .map(|name| format!("{name}\r\n"))
                .collect::<Vec<_>>()
                .concat(),
        );
    }
    let mut out = format!(
        " Volume in drive C has no label.\r\n Volume Serial Number is 0000-0000\r\n\r\n Directory of {}\r\n\r\n",
        shown(place, of)
    );
    let (mut count, mut bytes, mut folders) = (0, 0, 0);
    for name in &names {
        let file = match of.rsplit(['\\', '/']).next() {
            Some(last) if last == name && names.len() == 1 => at.clone(),
            _ => format!("{at}/{name}"),
        };
        let size = match place.files.read(&file) {
            Ok(content) => {
                count += 1;
                bytes += content.len();
                format!("{:>17}", grouped(content.len()))
            }
            Err(_) => {
                folders += 1;
                format!("{:<17}", "   <DIR>")
            }
        };
        out.push_str(&format!("01/01/2026  12:00 AM {size} {name}\r\n"));
    }
    out.push_str(&format!(
        "{count:>16} File(s) {:>14} bytes\r\n{folders:>16} Dir(s)  21,296,336,896 bytes free\r\n",
        grouped(bytes)
    ));
    Ran::prints(out)
}

/// A number with commas between its thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
