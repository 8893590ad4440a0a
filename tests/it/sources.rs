//! Rules that no compiler and no lint keeps: the one direction of `src/lib.rs`'s page, no circle of files that leaves
//! its folder, the lengths of files and folders, and which files may use kube and the simulator. Comments and test
//! code do not count, nor does what a `mod.rs` passes on. `core/clippy.toml` bans I/O in core.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;

/// Sources by their paths.
type Sources = BTreeMap<PathBuf, String>;

/// The most lines of a file without its tests, and entries of a folder.
const LONGEST: (usize, usize) = (450, 15);
/// Crates, and the files of the tool that alone may use them.
const BANS: [(&str, &str); 2] = [
    (
        "kube|k8s_openapi",
        "src/(cluster|transport)/|src/cli/simulated/simulate.rs",
    ),
    (
        "hybrid_sim",
        "src/cli/(args/simulated|error|simulated/(demo/.*|simulate|topology/.*)).rs",
    ),
];

fn regex(pattern: &str) -> Regex {
    Regex::new(&format!("(?m){pattern}")).expect("a pattern")
}

/// Reads these folders, without test modules.
fn read(folders: &[&str]) -> Sources {
    let mut left: Vec<_> = folders.iter().map(PathBuf::from).collect();
    let mut sources = Sources::new();
    while let Some(path) = left.pop() {
        let entries = path.read_dir().into_iter().flatten();
        left.extend(entries.map(|entry| entry.expect("an entry").path()));
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            sources.insert(path, text);
        }
    }
    let module = regex(r"#\[cfg\(test\)\]\n.*\bmod (\w+);");
    let tests = sources.iter().flat_map(|(file, text)| {
        let names = module.captures_iter(text);
        names.map(|name| base(file).join(&name[1]))
    });
    let tests: Vec<_> = tests.collect();
    sources.retain(|file, _| !tests.iter().any(|test| base(file).starts_with(test)));
    sources
        .into_iter()
        .map(|(file, text)| (file, code(&text)))
        .collect()
}

/// A source without the test module that ends it, and without comments.
fn code(text: &str) -> String {
    let tests = regex(r"#\[cfg\(test\)\]\n.*\bmod \w+ \{\n").find(text);
    let end = tests.map_or(text.len(), |tests| tests.start());
    regex("^ *//.*$").replace_all(&text[..end], "").into_owned()
}

/// Where the modules of a file are.
fn base(file: &Path) -> PathBuf {
    match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => file.parent().expect("a folder").to_owned(),
        _ => file.with_extension(""),
    }
}

/// The files of its own crate that a file names.
fn used(file: &Path, sources: &Sources) -> BTreeSet<PathBuf> {
    let root = file.ancestors().find(|path| path.ends_with("src"));
    let paths = regex(r"\b(crate|super(?:::super)*)((?:::[a-z_]\w*)+)");
    let each = paths.captures_iter(&sources[file]).filter_map(|path| {
        let from = match path[1].matches("super").count() {
            0 => root?.to_owned(),
            up => base(file).ancestors().nth(up)?.to_owned(),
        };
        let named = from.join(path[2].trim_start_matches("::").replace("::", "/"));
        let within = named.ancestors().take_while(|path| *path != from);
        let mut files = within.flat_map(|path| [path.with_extension("rs"), path.join("mod.rs")]);
        files.find(|other| other != file && sources.contains_key(other))
    });
    each.collect()
}

/// What breaks a rule; `order` names the modules of the crate.
fn wrong(sources: &Sources, order: &[PathBuf]) -> Vec<String> {
    let mut problems = Vec::new();
    let uses: BTreeMap<_, _> = sources
        .keys()
        .map(|file| (file, used(file, sources)))
        .collect();
    let place = |file: &Path| {
        order
            .iter()
            .position(|module| base(file).starts_with(module))
    };
    for (file, text) in sources {
        let name = file.display();
        for other in uses[file].iter().filter(|other| place(other) > place(file)) {
            problems.push(format!(
                "{name} uses {}, which comes after it",
                other.display()
            ));
        }
        let (mut led_to, mut left) = (BTreeSet::new(), vec![file]);
        while let Some(next) = left.pop() {
            left.extend(uses[next].iter().filter(|other| led_to.insert(*other)));
        }
        let is_back =
            |other: &&&PathBuf| other.parent() != file.parent() && uses[**other].contains(file);
        // The simulator has eight circles and no order
        for other in led_to.iter().filter(is_back).filter(|_| !order.is_empty()) {
            problems.push(format!(
                "{name} leads to {}, which uses it",
                other.display()
            ));
        }
        if text.contains("use crate::{") || text.contains("::*;") && !order.is_empty() {
            problems.push(format!(
                "{name} hides what it uses: write a `use` for each module"
            ));
        }
        if text.lines().count() > LONGEST.0 {
            problems.push(format!("{name} is too long: which two concepts are in it?"));
        }
        for (banned, may) in BANS.iter().filter(|_| file.starts_with("src")) {
            let uses = regex(&format!(r"(^|[^:\w])({banned})(::|;)")).is_match(text);
            if uses && !regex(&format!("^({may})")).is_match(&file.to_string_lossy()) {
                problems.push(format!("{name} uses {banned}: give {may} a method for it"));
            }
        }
        // A seed gives the same run each time only if chance never decides which arm is polled first
        let mut selects = text.split("select! {").skip(1);
        if selects.any(|arms| !arms.trim_start().starts_with("biased;")) {
            problems.push(format!("{name} has a select that is not biased"));
        }
    }
    problems
}

#[test]
fn sources_keep_the_rules() {
    let page = std::fs::read_to_string("src/lib.rs")
        .expect("the page")
        .replace("\n//!", "");
    let parts = regex("One direction:(.*)`winconform-core`(.*?)here\\.").captures(&page);
    let parts = parts.expect("the order of core's modules, then the root's");
    for (folder, names) in [("core/src", &parts[1]), ("src", &parts[2])] {
        let names = names.split('`').skip(1).step_by(2);
        let order: Vec<_> = names.map(|name| Path::new(folder).join(name)).collect();
        let sources = read(&[folder]);
        let modules = sources.keys().filter_map(|file| {
            let module = Path::new(folder).join(file.strip_prefix(folder).ok()?.iter().next()?);
            Some(module.with_extension(""))
                .filter(|path| !path.ends_with("lib") && !path.ends_with("main"))
        });
        let ordered: BTreeSet<_> = order.iter().cloned().collect();
        assert_eq!(
            ordered,
            modules.collect(),
            "modules of {folder} and `One direction:`"
        );
        let problems = wrong(&sources, &order);
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
    let problems = wrong(&read(&["sim/src"]), &[]);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let all = read(&["core/src", "src", "sim/src", "tests/virtual", "tests/real"]);
    assert!(all.len() > 400, "{} sources", all.len());
    let mut entries = BTreeMap::<_, BTreeSet<_>>::new();
    for path in all.keys().flat_map(|file| file.ancestors()) {
        entries.entry(path.parent()).or_default().insert(path);
    }
    entries.retain(|folder, entries| folder.is_some_and(|_| entries.len() > LONGEST.1));
    assert!(entries.is_empty(), "too many entries: {entries:?}");
}

#[test]
fn a_planted_violation_is_found() {
    let problems = |files: &[(&str, &str)]| {
        let files = files
            .iter()
            .map(|(file, text)| (PathBuf::from(file), code(text)));
        let order = ["src/cluster", "src/engine"].map(PathBuf::from);
        wrong(&files.collect(), &order).len()
    };
    let later = "//! crate::engine\nuse crate::engine::run::go;\n#[cfg(test)]\nmod tests {\nuse kube::Api;\n}";
    assert_eq!(
        problems(&[("src/cluster/a.rs", later), ("src/engine/run.rs", "")]),
        1
    );
    let back = "use super::super::cluster::a;\nuse super::b::c;\n";
    let files = [
        ("src/engine/b/c.rs", "use crate::engine::run;"),
        ("src/engine/run.rs", back),
    ];
    assert_eq!(problems(&files), 2);
    for text in [
        "use kube::Client;",
        "select! { a",
        &"\n".repeat(LONGEST.0 + 1),
    ] {
        assert_eq!(problems(&[("src/engine/run.rs", text)]), 1, "{text}");
    }
}
