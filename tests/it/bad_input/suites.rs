//! Suites with mistakes: the tool reports each with its place, all at once.

use std::fs;
use std::path::{Path, PathBuf};

use super::tool::{Said, Tool, check};

/// A folder of suites.
pub(super) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/bad_input/suites")
        .join(name)
}

/// A tool with the sound folder, over which tests copy other files.
fn sound() -> Tool {
    let tool = Tool::new();
    tool.lay(&folder("sound"), "suites");
    tool
}

fn list(tool: &Tool) -> Said {
    tool.run(&["list", "--suites", "suites"])
}

#[test]
fn the_sound_folder_is_sound() {
    let said = list(&sound());
    assert_eq!((said.stderr.as_str(), said.code), ("", Some(0)));
}

/// Copies the folder of each mistake over the sound one.
#[test]
fn every_mistake_is_told_with_its_place() {
    let mut names: Vec<_> = fs::read_dir(folder(""))
        .expect("the folder of mistakes")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .filter(|name| name != "sound")
        .collect();
    names.sort();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        let tool = sound();
        tool.lay(&folder(&name), "suites");
        let said = list(&tool);
        assert_eq!(said.code, Some(2), "{name}: {}", said.stderr);
        check(&format!("suites-{name}"), &said.errors());
    }
}

#[test]
fn a_missing_file_is_told_once_and_hides_no_other_mistake() {
    for missing in ["claims.yaml", "limitations.yaml"] {
        let tool = sound();
        tool.lay(&folder("unknown-key"), "suites");
        fs::remove_file(tool.path("suites").join(missing)).expect("removed");
        check(&format!("suites-without-{missing}"), &list(&tool).errors());
    }
}

#[test]
fn a_copy_within_the_suites_is_told_once() {
    let tool = sound();
    tool.lay(&folder("sound"), "suites/suites");
    check("suites-within-suites", &list(&tool).errors());
    fs::remove_file(tool.path("suites/suites/claims.yaml")).expect("removed");
    fs::remove_file(tool.path("suites/suites/limitations.yaml")).expect("removed");
    check("suites-of-a-folder-twice", &list(&tool).errors());
}

#[test]
fn a_megabyte_of_a_word_is_counted_and_not_shown() {
    let tool = sound();
    let word = "x".repeat(1 << 20);
    tool.write(
        "suites/net/service.yaml",
        format!("cases:\n  - claim: {word}\n    name: {word}\n    over: {{pool: {word}}}\n"),
    );
    check("suites-huge-word", &list(&tool).errors());
}

#[test]
fn what_is_no_text_or_too_much_of_it() {
    let tool = sound();
    tool.write("suites/net/service.yaml", [0xFF, 0xFE, 0x00, 0x80]);
    check("suites-not-utf8", &list(&tool).errors());
    tool.write("suites/net/service.yaml", vec![b'#'; (4 << 20) + 1]);
    check("suites-too-large", &list(&tool).errors());
    tool.write("suites/net/service.yaml", "[".repeat(100_000));
    check("suites-too-deep", &list(&tool).errors());
    let twice = |text: String, n| format!("{text}a{n}: &a{n} [*a{m}, *a{m}]\n", m = n - 1);
    let laughs = (1..40).fold("a0: &a0 [1]\n".to_owned(), twice);
    tool.write("suites/net/service.yaml", laughs);
    check("suites-laughs", &list(&tool).errors());
}

#[test]
fn a_folder_that_is_none() {
    let tool = Tool::new();
    check("suites-nowhere", &list(&tool).errors());
    tool.write("suites", "claims: []");
    check("suites-a-file", &list(&tool).errors());
    let tool = Tool::new();
    fs::create_dir(tool.path("suites")).expect("a folder");
    check("suites-empty-folder", &list(&tool).errors());
}

#[test]
fn a_suite_must_be_a_regular_file() {
    let tool = sound();
    let path = tool.path("suites/net/endless.yaml");
    std::os::unix::fs::symlink("/dev/zero", path).expect("a link");
    check("suites-endless", &list(&tool).errors());
}
