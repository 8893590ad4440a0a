//! Writes a constant for each fixture, by the name and the order that its manifest gives it.
//!
//! It also has the crate built anew when a manifest is new: `include_dir` tells of those alone that were there.

#![allow(clippy::disallowed_methods, reason = "a build script does I/O")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../manifests");
    let mut constants = String::from("impl FixtureName {\n");
    for path in manifests(Path::new("../manifests"))? {
        let text = fs::read_to_string(&path)?;
        let says = |what: &str| {
            let key = format!("    fixture.winconform/{what}: ");
            text.lines().find_map(|line| line.strip_prefix(&key))
        };
        if let (Some(name), Some(order)) = (says("name"), says("order")) {
            let order: u16 = order.trim_matches('"').parse()?;
            let constant = name.replace('-', "_").to_uppercase();
            constants += &format!(
                "    /// See `{}`.\n    pub const {constant}: Self = Self {{ order: {order}, name: {name:?} }};\n",
                path.strip_prefix("..")?.display()
            );
        }
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("fixtures.rs"), constants + "}\n")?;
    Ok(())
}

/// The files of a folder and of those in it, by their names.
fn manifests(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            all.extend(manifests(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}
