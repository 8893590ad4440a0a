//! The one direction of `src/lib.rs`'s page, kept by reading every file: who may use whom, which
//! part may do I/O, and how long a file may be.
//!
//! Reads paths such as `crate::plan::Plan`, in `use` lines and in bodies, with their groups
//! opened; comments, strings and test code do not count. Out of scope: what Cargo keeps by itself.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use source::{paths, tokens, without_tests};

/// Lines of a file without its tests.
const LONGEST: usize = 450;

/// A crate of ours, by where its sources are.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Part {
    Core,
    Root,
    Sim,
}

impl Part {
    const ALL: [Self; 3] = [Self::Core, Self::Root, Self::Sim];

    fn folder(self) -> &'static str {
        match self {
            Self::Core => "core/src",
            Self::Root => "src",
            Self::Sim => "sim/src",
        }
    }

    /// What must not be used, where it may be nevertheless, and what to do instead. A path is
    /// met by any path that begins so; one that begins with `*::` also by any that contains it.
    fn bans(self) -> &'static [Ban] {
        match self {
            Self::Core => CORE,
            Self::Root => ROOT,
            Self::Sim => SIM,
        }
    }
}

struct Ban {
    path: &'static str,
    except: &'static [&'static str],
    hint: &'static str,
}

const fn ban(path: &'static str, hint: &'static str) -> Ban {
    Ban {
        path,
        except: &[],
        hint,
    }
}

const NO_IO: &str = "core does no I/O: let the root ask, and take the answer as data";
const NO_CLOCK: &str = "core has no clock: take the time as an argument";
const CORE: &[Ban] = &[
    ban("kube", "kube types stay in src/cluster and src/transport"),
    ban(
        "k8s_openapi",
        "kube types stay in src/cluster and src/transport",
    ),
    ban("tokio", NO_IO),
    ban("hyper", NO_IO),
    ban("std::env", NO_IO),
    ban("std::fs", NO_IO),
    ban("std::io::stdin", NO_IO),
    ban("std::net::TcpListener", NO_IO),
    ban("std::net::TcpStream", NO_IO),
    ban("std::net::UdpSocket", NO_IO),
    ban("std::process", NO_IO),
    ban("std::thread", NO_IO),
    ban("*::Instant::now", NO_CLOCK),
    ban("*::SystemTime", NO_CLOCK),
    ban("*::Timestamp::now", NO_CLOCK),
    ban("*::Zoned::now", NO_CLOCK),
    ban("hybrid_sim", "core must not know the simulator"),
    ban("winconform", "core must not know what is built on it"),
];

const KUBE: &[&str] = &["src/cluster/", "src/transport/", "src/cli/simulate.rs"];
const THIN: &str = "kube types stay in src/cluster and src/transport: give it a method there";
const ROOT: &[Ban] = &[
    Ban {
        path: "kube",
        except: KUBE,
        hint: THIN,
    },
    Ban {
        path: "k8s_openapi",
        except: KUBE,
        hint: THIN,
    },
    Ban {
        path: "hybrid_sim",
        except: &[
            "src/cli/args/simulated.rs",
            "src/cli/error.rs",
            "src/cli/demo.rs",
            "src/cli/demo/",
            "src/cli/simulate.rs",
            // What `simulate --topology FILE` reads
            "src/cli/topology.rs",
        ],
        hint: "only the commands that start a simulation may know it",
    },
];

const APART: &str = "the simulator must not know the answers: it depends on no crate of ours";
const SIM: &[Ban] = &[ban("winconform", APART), ban("winconform_core", APART)];

/// The modules of core and root in the order of the page.
struct Order {
    core: Vec<String>,
    root: Vec<String>,
}

impl Order {
    /// Reads the paragraph `One direction: … in the pure crate `winconform-core`, then … here.`
    fn read(page: &str) -> Self {
        let text: String = page
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .flat_map(|line| [line, "\n"])
            .collect();
        let (_, paragraph) = text
            .split_once("One direction:")
            .expect("src/lib.rs has the order");
        let (core, rest) = paragraph
            .split_once("`winconform-core`")
            .expect("core's modules first");
        let (root, _) = rest
            .split_once("here.")
            .expect("the root's modules end with `here.`");
        let names = |text: &str| {
            text.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect()
        };
        Self {
            core: names(core),
            root: names(root),
        }
    }

    fn of(&self, part: Part) -> Option<&[String]> {
        match part {
            Part::Core => Some(&self.core),
            Part::Root => Some(&self.root),
            Part::Sim => None,
        }
    }
}

struct Violation {
    file: String,
    line: usize,
    what: String,
    hint: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            what,
            hint,
        } = self;
        write!(f, "{file}:{line}: {what}\n    {hint}")
    }
}

/// Everything that is wrong with one file; `file` is its path from the repository's root.
fn check(part: Part, file: &str, source: &str, order: &Order) -> Vec<Violation> {
    let (tokens, code_lines) = without_tests(&tokens(source), source.lines().count());
    let module = module(part, file);
    let mut found = BTreeMap::new();
    let mut wrong = |line: usize, what: String, hint: String| {
        found.entry((line, what)).or_insert(hint);
    };
    if code_lines > LONGEST {
        let what = format!("{code_lines} lines without tests; {LONGEST} at most");
        wrong(
            1,
            what,
            "one file is one concept: which two are in it?".to_owned(),
        );
    }
    for (line, path) in paths(&tokens) {
        let path = absolute(&path, &module);
        let written = path.join("::");
        for ban in part.bans() {
            if is_met(ban.path, &path) && !ban.except.iter().any(|place| file.starts_with(place)) {
                wrong(line, format!("uses `{written}`"), ban.hint.to_owned());
            }
        }
        if let Some((what, hint)) = order
            .of(part)
            .and_then(|order| backward(order, &module, &path))
        {
            wrong(line, what, hint);
        }
    }
    let violation = |((line, what), hint)| Violation {
        file: file.to_owned(),
        line,
        what,
        hint,
    };
    found.into_iter().map(violation).collect()
}

/// What is wrong with a module's use of a path, and what to do.
fn backward(order: &[String], module: &[String], path: &[String]) -> Option<(String, String)> {
    let ([module, ..], [root, used, ..]) = (module, path) else {
        return None;
    };
    // Items of lib.rs itself are no modules
    if root != "crate" || module == used || used.starts_with(char::is_uppercase) {
        return None;
    }
    let place = |name: &str| order.iter().position(|known| known == name);
    for name in [module, used] {
        if place(name).is_none() {
            let hint = "give it its place under `One direction:` in src/lib.rs".to_owned();
            return Some((format!("the module `{name}` is not in the order"), hint));
        }
    }
    (place(module) < place(used)).then(|| {
        let path = path.join("::");
        let order = order.join(" → ");
        (
            format!("`{module}` uses `{path}`, and `{used}` comes after `{module}`"),
            format!("order: {order}; move what both need to `{module}` or before it"),
        )
    })
}

fn is_met(banned: &str, path: &[String]) -> bool {
    let begins = |banned: &str, path: &[String]| {
        let banned: Vec<_> = banned.split("::").collect();
        path.len() >= banned.len() && banned.iter().zip(path).all(|(a, b)| a == b)
    };
    match banned.strip_prefix("*::") {
        None => begins(banned, path),
        Some(banned) => (0..path.len()).any(|at| begins(banned, &path[at..])),
    }
}

/// The path of the module that a file is, without `crate`: `src/cli/run.rs` → `cli`, `run`.
fn module(part: Part, file: &str) -> Vec<String> {
    let file = file
        .trim_start_matches(part.folder())
        .trim_end_matches(".rs");
    let mut names: Vec<_> = file.split('/').filter(|name| !name.is_empty()).collect();
    if matches!(names.last(), Some(&("mod" | "lib" | "main"))) {
        names.pop();
    }
    names.into_iter().map(str::to_owned).collect()
}

/// A path with `self` and `super` resolved against the module it stands in.
fn absolute(path: &[String], module: &[String]) -> Vec<String> {
    let supers = path
        .iter()
        .take_while(|name| *name == "super" || *name == "self")
        .count();
    if supers == 0 {
        return path.to_vec();
    }
    let up = path
        .iter()
        .take(supers)
        .filter(|name| *name == "super")
        .count();
    let kept = module.len().saturating_sub(up);
    let here = module[..kept].iter().cloned();
    std::iter::once("crate".to_owned())
        .chain(here)
        .chain(path[supers..].iter().cloned())
        .collect()
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn order() -> Order {
    Order::read(&read(&repository().join("src/lib.rs")))
}

/// Every `.rs` file below a folder, sorted, except those that are test modules.
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
    let tests: BTreeSet<_> = found.iter().flat_map(|file| test_modules(file)).collect();
    found.retain(|file| {
        !tests
            .iter()
            .any(|test| file.with_extension("").starts_with(test))
    });
    found.sort();
    found
}

/// The modules that a file declares with `#[cfg(test)] mod name;`, as paths without extension.
fn test_modules(file: &Path) -> Vec<PathBuf> {
    let inside = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => file.parent().expect("a file is in a folder").to_owned(),
        _ => file.with_extension(""),
    };
    let source = read(file);
    let pairs = source.lines().zip(source.lines().skip(1));
    pairs
        .filter(|(attribute, _)| attribute.trim() == "#[cfg(test)]")
        .filter_map(|(_, line)| line.trim().strip_prefix("mod ")?.strip_suffix(';'))
        .map(|name| inside.join(name))
        .collect()
}

#[test]
fn everything_goes_in_one_direction() {
    let order = order();
    let mut found = Vec::new();
    for part in Part::ALL {
        let files = files(&repository().join(part.folder()));
        assert!(files.len() > 10, "too few files in {}", part.folder());
        for file in files {
            let name = file
                .strip_prefix(repository())
                .expect("is in the repository");
            found.extend(check(part, &name.to_string_lossy(), &read(&file), &order));
        }
    }
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert!(
        found.is_empty(),
        "{} violations:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn the_page_has_every_module_once() {
    let order = order();
    for (part, ordered) in [(Part::Core, &order.core), (Part::Root, &order.root)] {
        let lib = read(&repository().join(part.folder()).join("lib.rs"));
        let declared = lib
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        let mut declared: Vec<_> = declared.collect();
        let mut ordered: Vec<_> = ordered.iter().map(String::as_str).collect();
        declared.sort_unstable();
        ordered.sort_unstable();
        assert_eq!(
            declared,
            ordered,
            "{}/lib.rs and `One direction:`",
            part.folder()
        );
    }
}

fn found(part: Part, file: &str, source: &str) -> Vec<String> {
    let order = Order {
        core: ["claims", "way", "plan"].map(str::to_owned).to_vec(),
        root: ["transport", "cluster", "cli"].map(str::to_owned).to_vec(),
    };
    check(part, file, source, &order)
        .iter()
        .map(|violation| format!("{} {}", violation.line, violation.what))
        .collect()
}

#[test]
fn a_planted_violation_is_found_with_its_line() {
    let source = "//! `crate::plan`\nuse crate::{claims::Id, plan::{Plan, Check}};\n";
    assert_eq!(
        found(Part::Core, "core/src/way/http.rs", source),
        [
            "2 `way` uses `crate::plan::Check`, and `plan` comes after `way`",
            "2 `way` uses `crate::plan::Plan`, and `plan` comes after `way`",
        ]
    );
    let source = "fn now() {\n    super::super::cli::say();\n    kube::Client::try_default();\n}";
    assert_eq!(
        found(Part::Root, "src/cluster/facts.rs", source),
        ["2 `cluster` uses `crate::cli::say`, and `cli` comes after `cluster`"]
    );
    assert_eq!(
        found(Part::Root, "src/cli/run.rs", source),
        ["3 uses `kube::Client::try_default`"]
    );
    let source = "use std::{net::{IpAddr, TcpStream}, time::Instant};\nfn f() { Instant::now() }";
    assert_eq!(
        found(Part::Core, "core/src/claims/id.rs", source),
        ["1 uses `std::net::TcpStream`", "2 uses `Instant::now`"]
    );
    assert_eq!(
        found(
            Part::Sim,
            "sim/src/node.rs",
            "use winconform_core::way::Ask;"
        ),
        ["1 uses `winconform_core::way::Ask`"]
    );
    assert_eq!(
        found(Part::Core, "core/src/new.rs", "use crate::claims::Id;"),
        ["1 the module `new` is not in the order"]
    );
    let long = "fn f() {}\n".repeat(LONGEST + 1);
    assert_eq!(
        found(Part::Sim, "sim/src/node.rs", &long),
        ["1 451 lines without tests; 450 at most"]
    );
}

#[test]
fn what_only_looks_like_a_violation_is_not_one() {
    let source = r##"
        /* crate::plan /* nested */ crate::plan */ // crate::plan
        const A: &str = "crate::plan \" crate::plan"; const B: &str = r#"" crate::plan"#;
        const C: [char; 3] = ['"', '\'', '\u{22}']; fn f<'a>(_: &'a str) {} // "crate::plan
        use crate::claims::Id; use super::compare; use self::inner::crate_plan;
        #[cfg(test)] use crate::plan::Plan;
        #[cfg(test)] mod tests { use crate::plan::{Plan, Check}; fn f() { { crate::plan::f() } } }
    "##;
    assert_eq!(found(Part::Core, "core/src/way/http.rs", source), [""; 0]);
    let tests = "fn f() {}\n".repeat(LONGEST);
    let source = format!("#[cfg(test)]\nmod tests {{\n{tests}}}\nfn f() {{}}\n");
    assert_eq!(found(Part::Core, "core/src/way/http.rs", &source), [""; 0]);
}
