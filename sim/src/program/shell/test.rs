//! `test` and `[` of busybox (coreutils/test.c), with as many words as POSIX gives a meaning.

use super::super::script::path;
use super::super::{Place, Ran, Refusal, Started, system};

pub(super) fn run(place: &Place, name: &str, args: &[String]) -> Started {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let args = match (name, args.split_last()) {
        ("[", Some((&"]", args))) => args,
        ("[", _) => return Started::Ended(Ran::complains("sh: missing ]\n", 2)),
        _ => &args,
    };
    Started::Ended(match holds(place, args) {
        Ok(holds) => Ran::code(u32::from(!holds)),
        Err(ran) => ran,
    })
}

fn holds(place: &Place, args: &[&str]) -> Result<bool, Ran> {
    let unknown = |word: &str| Ran::complains(format!("sh: {word}: unknown operand\n"), 2);
    match *args {
        [] => Ok(false),
        [text] => Ok(!text.is_empty()),
        ["!", text] => Ok(text.is_empty()),
        [one, operator, other] if BINARY.contains(&operator) => compared(one, operator, other),
        ["!", ..] if args.len() <= 4 => Ok(!holds(place, &args[1..])?),
        ["(", text, ")"] => Ok(!text.is_empty()),
        [operator, text] if is_operator(operator) => one(place, operator, text),
        [one, operator, _] if operator.starts_with('-') && !one.starts_with('-') => {
            Err(match OTHERS.contains(&operator) {
                true => not_simulated(args),
                false => unknown(operator),
            })
        }
        [_, operator] if BINARY.contains(&operator) => Err(Ran::complains(
            format!("sh: {operator}: argument expected\n"),
            2,
        )),
        [_, other] => Err(unknown(other)),
        _ => Err(not_simulated(args)),
    }
}

fn not_simulated(args: &[&str]) -> Ran {
    Refusal::instead_of(&format!("test {}", args.join(" ")))
}

const BINARY: &[&str] = &[
    "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-a", "-o",
];

/// What is known by its name alone.
const OTHERS: &[&str] = &["-nt", "-ot", "-ef"];

fn is_operator(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next() == Some('-')
        && letters
            .next()
            .is_some_and(|letter| "bcdefghknprstuwxzGLOS".contains(letter))
        && letters.next().is_none()
}

fn one(place: &Place, operator: &str, text: &str) -> Result<bool, Ran> {
    match operator {
        "-n" => return Ok(!text.is_empty()),
        "-z" => return Ok(text.is_empty()),
        _ => {}
    }
    let at = path(place, text);
    let directory = place.files.list(&at).is_some();
    let file = place.files.read(&at);
    if !directory && system::is_unknown(place, &at) {
        return Err(Refusal::instead_of(&format!("the content of {text}")));
    }
    match operator {
        "-e" | "-r" => Ok(directory || file.is_ok()),
        "-d" => Ok(directory),
        "-f" => Ok(file.is_ok()),
        "-s" => Ok(directory || file.is_ok_and(|bytes| !bytes.is_empty())),
        // Of modes and kinds nothing is known, but that what is missing has none
        _ if !directory && file.is_err() => Ok(false),
        _ => Err(not_simulated(&[operator, text])),
    }
}

fn compared(one: &str, operator: &str, other: &str) -> Result<bool, Ran> {
    match operator {
        "=" | "==" => return Ok(one == other),
        "!=" => return Ok(one != other),
        "-a" => return Ok(!one.is_empty() && !other.is_empty()),
        "-o" => return Ok(!one.is_empty() || !other.is_empty()),
        _ => {}
    }
    let number = |word: &str| -> Result<i64, Ran> {
        let bad = |_| Ran::complains(format!("sh: {word}: bad number\n"), 2);
        word.trim().parse().map_err(bad)
    };
    let (one, other) = (number(one)?, number(other)?);
    Ok(match operator {
        "-eq" => one == other,
        "-ne" => one != other,
        "-lt" => one < other,
        "-le" => one <= other,
        "-gt" => one > other,
        _ => one >= other,
    })
}
