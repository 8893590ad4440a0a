//! The page of a run; `ci/page/run` opens it in a browser.

use winconform_core::report::html;
use winconform_core::text::is_hostile;

use crate::runs;

fn page(record: &str) -> String {
    let view = runs::recorded(record).view();
    let page = html::render(&view);
    assert_eq!(page, html::render(&view), "the same bytes each time");
    page
}

/// The text between two marks, each of them once in the page.
fn between<'p>(page: &'p str, begins: &str, ends: &str) -> &'p str {
    let (_, rest) = page
        .split_once(begins)
        .unwrap_or_else(|| panic!("{begins}"));
    rest.split_once(ends).unwrap_or_else(|| panic!("{ends}")).0
}

#[test]
fn a_page_tells_every_verdict() {
    let page = page("every-verdict");
    insta::assert_snapshot!(between(&page, "<body>", "<script>"));
}

#[test]
fn what_a_cluster_says_is_text() {
    for record in [
        "hostile",
        "fixture-failed",
        "killed",
        "setup-died",
        "from-each-node",
    ] {
        let page = page(record);
        let hostile = page.chars().find(|one| *one != '\n' && is_hostile(*one));
        assert_eq!(hostile, None, "{record}");
        for (tag, times) in [
            ("<script", 1),
            ("<style", 1),
            ("<iframe", 0),
            ("<img", 0),
            (" style=", 0),
        ] {
            assert_eq!(page.matches(tag).count(), times, "{record}: {tag}");
        }
        // Links lead into the page, or where the catalogue of causes says
        let links = page
            .split("href=\"")
            .skip(1)
            .map(|rest| rest.split('"').next());
        for link in links.flatten() {
            assert!(
                link.starts_with('#') || link.starts_with("https://"),
                "{link}"
            );
        }
        assert!(page.contains("default-src 'none'"), "{record}");
    }
}

#[test]
fn what_a_cell_leads_to_is_there() {
    for record in ["every-verdict", "failed-by-case", "from-each-node"] {
        let page = page(record);
        for target in page.split("href=\"#").skip(1) {
            let target = target.split('"').next().unwrap_or_default();
            assert!(
                page.contains(&format!("id=\"{target}\"")),
                "{record}: {target}"
            );
        }
    }
}
