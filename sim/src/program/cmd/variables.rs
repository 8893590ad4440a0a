//! The variables of `cmd`, and what `%NAME%` stands for.

use super::super::script::Machine;
use super::super::{Place, Ran, Refusal};
use super::{MOST_LETTERS, TOO_LONG, standing};

/// The variables of a process: the container's own over the system's.
fn variables(place: &Place) -> Vec<(String, String)> {
    let user = place.user.as_deref().unwrap_or("ContainerAdministrator");
    let user = user.rsplit('\\').next().unwrap_or(user);
    let system = [
        // A NetBIOS name has 15 letters (Microsoft, "Naming conventions in Active Directory")
        (
            "COMPUTERNAME",
            place.hostname.to_uppercase().chars().take(15).collect(),
        ),
        // Under bindflt a HostProcess container's files also stand at this mount point
        ("CONTAINER_SANDBOX_MOUNT_POINT", "C:\\hpc".to_owned()),
        ("ComSpec", "C:\\Windows\\system32\\cmd.exe".to_owned()),
        ("OS", "Windows_NT".to_owned()),
        ("Path", "C:\\Windows\\system32;C:\\Windows;".to_owned()),
        ("PROCESSOR_ARCHITECTURE", "AMD64".to_owned()),
        ("ProgramData", "C:\\ProgramData".to_owned()),
        ("SystemDrive", "C:".to_owned()),
        ("SystemRoot", "C:\\Windows".to_owned()),
        ("TEMP", format!("C:\\Users\\{user}\\AppData\\Local\\Temp")),
        ("USERNAME", user.to_owned()),
        ("USERPROFILE", format!("C:\\Users\\{user}")),
        ("windir", "C:\\Windows".to_owned()),
    ];
    let own = |name: &str| place.env.keys().any(|key| key.eq_ignore_ascii_case(name));
    let mut all: Vec<(String, String)> = system
        .into_iter()
        .filter(|(name, _)| {
            !own(name) && (place.host_process || *name != "CONTAINER_SANDBOX_MOUNT_POINT")
        })
        .map(|(name, value)| (name.to_owned(), value))
        .chain(
            place
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        )
        .collect();
    all.sort_by_key(|(name, _)| name.to_ascii_lowercase());
    all
}

/// A variable's value; names have no case.
pub(in crate::program) fn variable(place: &Place, name: &str) -> Option<String> {
    let mut all = variables(place).into_iter();
    Some(all.find(|(key, _)| key.eq_ignore_ascii_case(name))?.1)
}

pub(super) fn set(machine: &mut Machine, rest: &str) -> Ran {
    if rest.starts_with('/') {
        return Refusal::instead_of(&format!("set {rest}"));
    }
    if let Some((name, value)) = rest.trim_matches('"').split_once('=') {
        let assigned = machine.assign(name, value.to_owned(), true);
        return assigned.err().unwrap_or_default();
    }
    let place = &machine.place;
    // A prefix shows all that begin with it
    let begins = |name: &str| {
        name.to_ascii_lowercase()
            .starts_with(&rest.to_ascii_lowercase())
    };
    let shown = variables(place)
        .iter()
        .filter(|(name, _)| begins(name))
        .map(|(name, value)| format!("{name}={value}\r\n"))
        .collect::<Vec<_>>()
        .concat();
    if shown.is_empty() {
        return Ran::complains(format!("Environment variable {rest} not defined\r\n"), 1);
    }
    Ran::prints(shown)
}

/// What the shell itself computes (`set /?`, at its end), and is not simulated.
const COMPUTED: &[&str] = &[
    "CMDCMDLINE",
    "CMDEXTVERSION",
    "DATE",
    "HIGHESTNUMANODENUMBER",
    "RANDOM",
    "TIME",
];

/// What stands for `%NAME%`: a variable, or what the shell knows by that name; `None` for an unknown
/// one.
fn value(machine: &Machine, name: &str) -> Result<Option<String>, &'static str> {
    let plain = name.split(':').next().unwrap_or_default();
    let known = match variable(&machine.place, plain) {
        None if plain.eq_ignore_ascii_case("CD") => Some(standing(&machine.place)),
        None if plain.eq_ignore_ascii_case("ERRORLEVEL") => {
            Some(machine.level.cast_signed().to_string())
        }
        None if COMPUTED
            .iter()
            .any(|known| known.eq_ignore_ascii_case(plain)) =>
        {
            return Err("a variable that the shell computes");
        }
        known => known,
    };
    match name.contains(':') && known.is_some() {
        true => Err("a part of a variable"),
        false => Ok(known),
    }
}

/// Puts values for `%NAME%`, before anything else is looked at; unknown names stay as they are.
pub(super) fn expanded(machine: &Machine, line: &str) -> Result<String, &'static str> {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let known = match after.split_once('%') {
            Some((name, behind)) => value(machine, name)?.map(|value| (value, behind)),
            None => None,
        };
        match known {
            Some((value, behind)) => {
                out.push_str(&value);
                rest = behind;
            }
            None => {
                out.push('%');
                rest = after;
            }
        }
        if out.len() > MOST_LETTERS {
            return Err(TOO_LONG);
        }
    }
    let line = out + rest;
    match line.chars().count() {
        0..=MOST_LETTERS => Ok(line),
        _ => Err(TOO_LONG),
    }
}
