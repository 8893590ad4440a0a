//! The manifests in `manifests/rbac` are what the checks ask for, no more and no less.
//!
//! `INSTA_UPDATE=always cargo test --test rbac` writes them anew. That a real server lets the
//! account do all of it, and what the lack of each verb costs, is shown in `access.rs`.

use std::path::Path;

use winconform::engine::roles;

#[path = "world/suites.rs"]
mod suites;

#[test]
fn the_manifests_are_those_generated() {
    let roles = roles(&suites::of_areas(&["env", "reject"])).expect("the manifests are valid");
    for (file, generated) in [
        ("read-only.yaml", roles.objects),
        ("metrics.yaml", roles.paths),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("manifests/rbac")
            .join(file);
        if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
            std::fs::write(&path, &generated).expect("it can be written");
        }
        let written = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(
            written, generated,
            "manifests/rbac/{file} is not what the checks ask for: \
             INSTA_UPDATE=always cargo test --test rbac writes it anew"
        );
    }
}
