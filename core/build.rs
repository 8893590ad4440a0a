//! Has the crate built anew when a manifest is new: `include_dir` tells of those alone that were there.

fn main() {
    println!("cargo::rerun-if-changed=../manifests");
}
