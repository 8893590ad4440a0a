//! The commands that simulate a cluster.

pub(crate) mod demo;
pub(crate) mod simulate;
pub(crate) mod topology;
pub(crate) mod warnings;

use winconform_core::report::wrap;

/// The fewest columns for what a name is, beside it.
const BESIDE: usize = 40;

/// The lines of a list for a name and what it is: from this column on or, where there is little room, below the name.
fn described(name: &str, column: usize, what: &str, width: usize) -> Vec<String> {
    let is_beside = width >= column + BESIDE;
    let margin = if is_beside { column } else { 6 };
    let what = wrap(what, width - margin);
    let mut lines: Vec<_> = what
        .iter()
        .map(|line| format!("{:margin$}{line}", ""))
        .collect();
    match lines
        .first_mut()
        .filter(|_| is_beside && name.len() < column)
    {
        Some(first) => first.replace_range(..name.len(), name),
        None => lines.insert(0, name.to_owned()),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_is_comes_below_it_where_there_is_little_room() {
        let what = "what it is, in many words";
        assert_eq!(described("  name", 8, "a b", 60), ["  name  a b"]);
        assert_eq!(
            described("name", 25, what, 60),
            ["name", "      what it is, in many words"]
        );
        assert_eq!(described("longer", 3, "a", 60), ["longer", "   a"]);
        let long = [what; 2].join(" ");
        let lines = [
            "name    what it is, in many words what it is, in",
            "        many words",
        ];
        assert_eq!(described("name", 8, &long, 48), lines);
    }
}
