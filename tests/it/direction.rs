//! Checks the one direction of `src/lib.rs`'s page in every file: which module may use which, which may do
//! I/O, and how long a file may be. Cargo checks the rest: core has no `kube` and no `tokio`, and neither
//! core nor the simulator depends on the crates that use it.
//!
//! Comments and test code do not count.

use std::path::{Path, PathBuf};

use regex::Regex;

/// The most lines of a file, without its tests.
const LONGEST: usize = 450;

const FOLDERS: [&str; 3] = ["core/src/", "src/", "sim/src/"];

/// A folder, a pattern that its files must not contain, prefixes of exempt paths, and what to do instead.
const BANS: [(&str, &str, &[&str], &str); 4] = [
    (
        "core/src/",
        r"\b(std::(env|fs|process|thread)|io::stdin|TcpListener|TcpStream|UdpSocket)\b",
        &[],
        "core does no I/O: let the root ask, and take the answer as data",
    ),
    (
        "core/src/",
        r"\b(Instant::now|SystemTime|Timestamp::now|Zoned::now)\b",
        &[],
        "core has no clock: take the time as an argument",
    ),
    (
        "src/",
        r"(^|[^:\w])(kube|k8s_openapi)(::|;)",
        &[
            "src/cluster/",
            "src/transport/",
            "src/cli/simulated/simulate.rs",
        ],
        "kube types stay in src/cluster and src/transport: give it a method there",
    ),
    (
        "src/",
        r"(^|[^:\w])hybrid_sim(::|;)",
        &[
            "src/cli/args/simulated.rs",
            "src/cli/error.rs",
            "src/cli/simulated/demo/",
            "src/cli/simulated/simulate.rs",
            // It reads the file of `simulate --topology FILE`
            "src/cli/simulated/topology.rs",
        ],
        "only the commands that start a simulation may know it",
    ),
];

/// The modules of core and root in the order of the page: `One direction: … in the pure crate
/// `winconform-core`, then … here.`
fn order(folder: &str) -> Vec<String> {
    let page = read(&root().join("src/lib.rs")).replace("\n//!", "");
    let parts = Regex::new("One direction:(.*)`winconform-core`(.*?)here\\.").expect("a pattern");
    let parts = parts
        .captures(&page)
        .expect("the order of core's modules, then the root's");
    let names = match folder {
        "core/src/" => &parts[1],
        "src/" => &parts[2],
        _ => "",
    };
    let names = names.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// Everything that is wrong with one file; `file` is its path from the repository's root.
fn wrong(folder: &str, file: &str, source: &str, order: &[String]) -> Vec<String> {
    let code = code(source);
    let mut problems = Vec::new();
    let length = code.lines().count();
    if length > LONGEST {
        let what = format!("{length} lines without tests; {LONGEST} at most");
        problems.push(format!("{file}: {what}: which two concepts are in it?"));
    }
    for (_, names, _, hint) in BANS.iter().filter(|(of, _, except, _)| {
        *of == folder && !except.iter().any(|place| file.starts_with(place))
    }) {
        for (line, used) in used(&code, names) {
            let used = used.trim_matches(|c: char| !c.is_alphanumeric());
            problems.push(format!("{file}:{line}: uses `{used}`: {hint}"));
        }
    }
    let module = file.strip_prefix(folder).expect("a file of the folder");
    let module = module.trim_end_matches(".rs").trim_end_matches("/mod");
    let depth = module.split('/').count();
    let module = module.split('/').next().unwrap_or_default();
    let place = |name: &str| order.iter().position(|known| known == name);
    if order.is_empty() || ["lib", "main"].contains(&module) {
        return problems;
    }
    // Items of lib.rs itself are no modules
    let outside = format!(
        r"\b(crate|super(::super){{{}}})::([a-z_]\w*|[{{*])",
        depth - 1
    );
    for (line, path) in used(&code, &outside) {
        let used = path.rsplit("::").next().unwrap_or_default();
        let is_before = place(used).is_some() && place(used) < place(module);
        if used != module && !is_before {
            let order = order.join(" → ");
            problems.push(format!(
                "{file}:{line}: `{module}` uses `{used}`; the order is {order}, a `use` for each"
            ));
        }
    }
    problems
}

/// Every match of a pattern in the code, with its line.
fn used<'c>(code: &'c str, pattern: &str) -> Vec<(usize, &'c str)> {
    let pattern = Regex::new(&format!("(?m){pattern}")).expect("a pattern");
    let line = |at: usize| code[..at].lines().count().max(1);
    let hits = pattern.find_iter(code);
    hits.map(|hit| (line(hit.end()), hit.as_str())).collect()
}

/// A source without its tests, which end a file, and with its comments blanked.
fn code(source: &str) -> String {
    let tests = Regex::new(r"#\[cfg\(test\)\]\n.*\bmod \w+ \{\n").expect("a pattern");
    let end = tests
        .find(source)
        .map_or(source.len(), |tests| tests.start());
    let comments = Regex::new("(?m)^ *//.*$").expect("a pattern");
    comments.replace_all(&source[..end], "").into_owned()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every `.rs` file below a folder but those of test modules.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("the folder can be listed") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                paths.push(path);
            }
        }
    }
    let tests: Vec<_> = paths.iter().flat_map(|file| test_modules(file)).collect();
    let is_test = |file: &PathBuf| {
        let module = file.with_extension("");
        tests.iter().any(|test| module.starts_with(test))
    };
    paths.retain(|file| !is_test(file));
    paths
}

/// The modules that a file declares with `#[cfg(test)] mod name;`, as paths without extension.
fn test_modules(file: &Path) -> Vec<PathBuf> {
    let inside = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => file.parent().expect("a file is in a folder").to_owned(),
        _ => file.with_extension(""),
    };
    let source = read(file);
    let tests = Regex::new(r"#\[cfg\(test\)\]\n.*\bmod (\w+);").expect("a pattern");
    let names = tests.captures_iter(&source);
    names.map(|name| inside.join(&name[1])).collect()
}

#[test]
fn everything_goes_in_one_direction() {
    let mut problems = Vec::new();
    for folder in FOLDERS {
        let files = files(&root().join(folder));
        assert!(files.len() > 10, "too few files in {folder}");
        let order = order(folder);
        for file in files {
            let name = file.strip_prefix(root()).expect("is in the repository");
            problems.extend(wrong(folder, &name.to_string_lossy(), &read(&file), &order));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A seed gives the same run each time only if chance never decides which arm is polled first.
#[test]
fn every_select_is_biased() {
    let files = FOLDERS
        .iter()
        .flat_map(|folder| files(&root().join(folder)));
    let mut count = 0;
    for file in files {
        for rest in read(&file).split("select! {").skip(1) {
            count += 1;
            assert!(rest.trim_start().starts_with("biased;"), "{file:?}");
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn the_page_has_every_module_once() {
    for folder in ["core/src/", "src/"] {
        let lib = read(&root().join(folder).join("lib.rs"));
        let declared = used(&lib, r"^pub mod \w+;$").into_iter();
        let declared =
            declared.map(|(_, line)| line.trim_start_matches("pub mod ").trim_end_matches(';'));
        let mut declared: Vec<_> = declared.collect();
        let mut ordered = order(folder);
        declared.sort_unstable();
        ordered.sort_unstable();
        assert_eq!(declared, ordered, "{folder}lib.rs and `One direction:`");
    }
}

/// Checks the links of the pages to files, not those to headings and to other sites.
#[test]
fn every_link_leads_to_a_file() {
    let entries = root().join("docs").read_dir().expect("the book");
    let pages = entries.map(|entry| entry.expect("an entry").path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let top = ["README.md", "CONTRIBUTING.md", "faults/README.md"].map(|page| root().join(page));
    let link = Regex::new(r"\]\(([^)#\s]+)").expect("a pattern");
    let mut count = 0;
    for page in pages.chain(top) {
        let text = read(&page);
        let links = link.captures_iter(&text).map(|hit| hit[1].to_owned());
        for link in links.filter(|link| !link.starts_with("http")) {
            count += 1;
            let file = page.parent().expect("a folder").join(&link);
            assert!(file.exists(), "{}: {link} leads nowhere", page.display());
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn a_planted_violation_is_found_with_its_line() {
    let order = ["claims", "method", "plan"].map(str::to_owned);
    let problems = |folder: &str, file: &str, source: &str| {
        let problems = wrong(folder, file, source, &order).into_iter();
        let begin = |line: String| line.split(": ").take(2).collect::<Vec<_>>().join(": ");
        problems.map(begin).collect::<Vec<_>>()
    };
    let source = "//! crate::plan\nuse crate::claims::Id;\nuse crate::plan::Plan;\n";
    let used = "core/src/method/http.rs:3: `method` uses `plan`; the order is claims → method → plan, a `use` for each";
    assert_eq!(
        problems("core/src/", "core/src/method/http.rs", source),
        [used]
    );
    for source in [
        "use crate::{plan::Plan};\n",
        "use super::super::super::plan;\n",
    ] {
        assert_eq!(
            problems("core/src/", "core/src/method/http.rs", source).len(),
            1
        );
    }
    let source = "fn f() {\n    super::super::plan::f();\n    std::time::Instant::now();\n    io::stdin().lines();\n}\n";
    assert_eq!(
        problems("core/src/", "core/src/method/http.rs", source).len(),
        3
    );
    let source = "use kube::Client;\n#[cfg(test)]\nmod tests {\n    use crate::plan::Plan;\n}\n";
    assert_eq!(
        problems("src/", "src/engine/run.rs", source),
        ["src/engine/run.rs:1: uses `kube`"]
    );
    let long = "fn f() {}\n".repeat(LONGEST + 1);
    assert_eq!(
        problems("sim/src/", "sim/src/nodes/node/mod.rs", &long).len(),
        1
    );
}
