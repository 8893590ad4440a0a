//! Links of the pages.

use std::path::{Path, PathBuf};

use regex::Regex;

/// Checks the links of the pages to files, not those to headings and to other sites.
#[test]
fn every_link_leads_to_a_file() {
    let entries = Path::new("docs").read_dir().expect("the book");
    let pages = entries.map(|entry| entry.expect("an entry").path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let top = [
        "README.md",
        "CONTRIBUTING.md",
        "faults/README.md",
        "kind-configs/README.md",
    ]
    .map(PathBuf::from);
    let link = Regex::new(r"\]\(([^)#\s]+)").expect("a pattern");
    let mut count = 0;
    for page in pages.chain(top) {
        let text = std::fs::read_to_string(&page).expect("a page");
        let links = link.captures_iter(&text).map(|hit| hit[1].to_owned());
        for link in links.filter(|link| !link.starts_with("http")) {
            count += 1;
            let file = page.parent().expect("a folder").join(&link);
            assert!(file.exists(), "{}: {link} leads nowhere", page.display());
        }
    }
    assert!(count > 20, "{count}");
}
