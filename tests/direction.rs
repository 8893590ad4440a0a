//! The one direction of `src/lib.rs`'s page, kept by reading every file: which module may use which, who may
//! do I/O, and how long a file may be. Cargo keeps the rest: core has no `kube` and no `tokio`, and neither
//! core nor the simulator depends on what is built on it.
//!
//! Comments and test code do not count.

use std::path::{Path, PathBuf};

/// Lines of a file without its tests.
const LONGEST: usize = 450;

const FOLDERS: [&str; 3] = ["core/src/", "src/", "sim/src/"];

/// What must not be used below a folder but in some of its files, and what to do instead.
const BANS: [(&str, &[&str], &[&str], &str); 4] = [
    (
        "core/src/",
        &[
            "std::env",
            "std::fs",
            "std::process",
            "std::thread",
            "io::stdin",
            "TcpListener",
            "TcpStream",
            "UdpSocket",
        ],
        &[],
        "core does no I/O: let the root ask, and take the answer as data",
    ),
    (
        "core/src/",
        &["Instant::now", "SystemTime", "Timestamp::now", "Zoned::now"],
        &[],
        "core has no clock: take the time as an argument",
    ),
    (
        "src/",
        &["kube", "k8s_openapi"],
        &["src/cluster/", "src/transport/", "src/cli/simulate.rs"],
        "kube types stay in src/cluster and src/transport: give it a method there",
    ),
    (
        "src/",
        &["hybrid_sim"],
        &[
            "src/cli/args/simulated.rs",
            "src/cli/error.rs",
            "src/cli/demo.rs",
            "src/cli/demo/",
            "src/cli/simulate.rs",
            // What `simulate --topology FILE` reads
            "src/cli/topology.rs",
        ],
        "only the commands that start a simulation may know it",
    ),
];

/// The modules of core and root in the order of the page: `One direction: … in the pure crate
/// `winconform-core`, then … here.`
fn order(folder: &str) -> Vec<String> {
    let page = read(&root().join("src/lib.rs")).replace("\n//!", "");
    let (_, paragraph) = page.split_once("One direction:").expect("the order");
    let (core, rest) = paragraph
        .split_once("`winconform-core`")
        .expect("core's modules first");
    let (own, _) = rest.split_once("here.").expect("the root's modules");
    let names = match folder {
        "core/src/" => core,
        "src/" => own,
        _ => "",
    };
    let names = names.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// Everything that is wrong with one file; `file` is its path from the repository's root.
fn wrong(folder: &str, file: &str, source: &str, order: &[String]) -> Vec<String> {
    let code = code(source);
    let mut found = Vec::new();
    let length = code.lines().count();
    if length > LONGEST {
        let what = format!("{length} lines without tests; {LONGEST} at most");
        found.push(format!("{file}: {what}: which two concepts are in it?"));
    }
    for (of, names, except, hint) in BANS {
        if of != folder || except.iter().any(|place| file.starts_with(place)) {
            continue;
        }
        for name in names {
            let uses = paths(&code, name).filter(|(_, rest)| !rest.starts_with(is_of_name));
            let uses = uses.filter(|(_, rest)| !is_crate(name) || is_path(rest));
            found.extend(uses.map(|(line, _)| format!("{file}:{line}: uses `{name}`: {hint}")));
        }
    }
    let module = file.strip_prefix(folder).expect("a file of the folder");
    let module = module.trim_end_matches(".rs").trim_end_matches("/mod");
    let depth = module.split('/').count();
    let module = module.split('/').next().unwrap_or_default();
    let place = |name: &str| order.iter().position(|known| known == name);
    if order.is_empty() || ["lib", "main"].contains(&module) {
        return found;
    }
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (line, rest) in paths(&code, &root) {
            let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            let used = &rest[..end];
            // Items of lib.rs itself are no modules
            let is_before = place(used).is_some() && place(used) < place(module);
            if used != module && !used.starts_with(is_upper) && !is_before {
                let order = order.join(" → ");
                found.push(format!(
                    "{file}:{line}: `{module}` uses `{used}`; the order is {order}, a `use` for each"
                ));
            }
        }
    }
    found
}

/// Where a path begins so, by its line, with what follows.
fn paths<'c>(code: &'c str, begin: &str) -> impl Iterator<Item = (usize, &'c str)> {
    let all = code.match_indices(begin).map(|(at, found)| {
        let (before, rest) = (&code[..at], &code[at + found.len()..]);
        (before, rest)
    });
    // A crate stands behind no other path
    let is_crate = is_crate(begin);
    let apart = move |before: &str| match before.ends_with("::") {
        true => !is_crate,
        false => !before.ends_with(is_of_name),
    };
    let all = all.filter(move |(before, _)| apart(before));
    all.map(|(before, rest)| (before.lines().count().max(1), rest))
}

fn is_crate(name: &str) -> bool {
    !name.contains("::") && !name.starts_with(is_upper)
}

/// Whether a name is followed by more of its path, or ends a `use`.
fn is_path(rest: &str) -> bool {
    rest.starts_with("::") || rest.starts_with(';')
}

fn is_of_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_upper(c: char) -> bool {
    c.is_uppercase()
}

/// A source up to its tests, which end a file, its comments blank.
fn code(source: &str) -> String {
    let items = source.match_indices("#[cfg(test)]\n");
    let mut modules = items.filter(|(at, _)| {
        let line = source[*at..].lines().nth(1);
        line.is_some_and(|line| line.contains("mod ") && line.ends_with('{'))
    });
    let end = modules.next().map_or(source.len(), |(at, _)| at);
    let lines = source[..end].lines();
    let lines = lines.map(|line| match line.trim_start().starts_with("//") {
        true => "",
        false => line,
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every `.rs` file below a folder but those of test modules.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("the folder can be listed") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let tests: Vec<_> = found.iter().flat_map(|file| test_modules(file)).collect();
    let is_test = |file: &PathBuf| {
        let module = file.with_extension("");
        tests.iter().any(|test| module.starts_with(test))
    };
    found.retain(|file| !is_test(file));
    found
}

/// The modules that a file declares with `#[cfg(test)] mod name;`, as paths without extension.
fn test_modules(file: &Path) -> Vec<PathBuf> {
    let inside = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => file.parent().expect("a file is in a folder").to_owned(),
        _ => file.with_extension(""),
    };
    let source = read(file);
    let after = source.split("#[cfg(test)]\n").skip(1);
    let names = after.filter_map(|rest| {
        let (line, _) = rest.split_once(';')?;
        let name = line.rsplit_once("mod ")?.1;
        name.chars().all(is_of_name).then(|| inside.join(name))
    });
    names.collect()
}

#[test]
fn everything_goes_in_one_direction() {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let files = files(&root().join(folder));
        assert!(files.len() > 10, "too few files in {folder}");
        let order = order(folder);
        for file in files {
            let name = file.strip_prefix(root()).expect("is in the repository");
            found.extend(wrong(folder, &name.to_string_lossy(), &read(&file), &order));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A seed gives the same run each time, since no arm is polled first by chance.
#[test]
fn every_select_is_biased() {
    let files = FOLDERS
        .iter()
        .flat_map(|folder| files(&root().join(folder)));
    let mut count = 0;
    for file in files {
        let source = read(&file);
        for rest in source.split("select! {").skip(1) {
            count += 1;
            let file = file.display();
            assert!(rest.trim_start().starts_with("biased;"), "{file}");
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn the_page_has_every_module_once() {
    for folder in ["core/src/", "src/"] {
        let lib = read(&root().join(folder).join("lib.rs"));
        let declared = lib
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        let mut declared: Vec<_> = declared.collect();
        let mut ordered = order(folder);
        declared.sort_unstable();
        ordered.sort_unstable();
        assert_eq!(declared, ordered, "{folder}lib.rs and `One direction:`");
    }
}

#[test]
fn a_planted_violation_is_found_with_its_line() {
    let order = ["claims", "way", "plan"].map(str::to_owned);
    let found = |folder: &str, file: &str, source: &str| {
        let found = wrong(folder, file, source, &order).into_iter();
        let begin = |line: String| line.split(": ").take(2).collect::<Vec<_>>().join(": ");
        found.map(begin).collect::<Vec<_>>()
    };
    let source = "//! crate::plan\nuse crate::claims::Id;\nuse crate::plan::Plan;\n";
    let used = [
        "core/src/way/http.rs:3: `way` uses `plan`; the order is claims → way → plan, a `use` for each",
    ];
    assert_eq!(
        found("core/src/", "core/src/way/http.rs", source)[..1],
        used
    );
    let source = "fn f() {\n    super::super::plan::f();\n    std::time::Instant::now();\n    io::stdin().lines();\n}\n";
    assert_eq!(found("core/src/", "core/src/way/http.rs", source).len(), 3);
    let source = "use kube::Client;\n#[cfg(test)]\nmod tests {\n    use crate::plan::Plan;\n}\n";
    assert_eq!(
        found("src/", "src/way/run.rs", source),
        ["src/way/run.rs:1: uses `kube`"]
    );
    let long = "fn f() {}\n".repeat(LONGEST + 1);
    assert_eq!(found("sim/src/", "sim/src/node.rs", &long).len(), 1);
}
