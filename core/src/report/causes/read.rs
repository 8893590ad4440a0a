//! Reads the catalogue of causes, and finds all that is wrong with it.

use strum::VariantArray as _;

use super::catalogue::{Beside, Component, Rule, Side};
use crate::claims::{Pattern, read_pattern};
use crate::document::{Decoder, Diagnostics, Node, parse};

/// The rules of a catalogue in their order, or all problems of its text; `file` names it in these.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Rule>, Diagnostics> {
    let root = parse(file, text)?;
    let mut decoder = Decoder::new(file);
    let mut rules: Vec<Rule> = Vec::new();
    for item in decoder.list(&root, "the catalogue").unwrap_or_default() {
        let Some(rule) = read_rule(&mut decoder, item) else {
            continue;
        };
        if let Some(before) = rules.iter().find(|before| before.leaves_nothing_to(&rule)) {
            let message = format!(
                "this cause fits no check: `{}`, before it, takes all of them",
                before.says
            );
            let hint = "put it before the other, or remove one of them".to_owned();
            decoder.report(item, message, Some(hint));
        }
        rules.push(rule);
    }
    Diagnostics::check(decoder.finish())?;
    Ok(rules)
}

fn read_rule(decoder: &mut Decoder<'_>, node: &Node) -> Option<Rule> {
    let mut fields = decoder.fields(node, "a cause")?;
    let component = fields.read(decoder, "component", |decoder, node| {
        decoder.member(node, "component", Component::VARIANTS)
    });
    let says = fields.text(decoder, "says");
    let likely = fields.text(decoder, "likely");
    let side = fields.or(decoder, "side", Side::default(), |decoder, node| {
        decoder.member(node, "side", Side::VARIANTS)
    });
    let shown_by = fields.read(decoder, "shown_by", |decoder, node| {
        decoder.some(node, "`shown_by`", read_checks)
    });
    let words = fields.or(decoder, "words", Vec::new(), |decoder, node| {
        decoder.some(node, "`words`", read_word)
    });
    let evidence = fields.or(decoder, "evidence", Vec::new(), |decoder, node| {
        decoder.some(node, "`evidence`", read_word)
    });
    let from_windows = fields.or(decoder, "from_windows", false, |decoder, node| {
        decoder.flag(node, "`from_windows`")
    });
    let explains = fields.or(decoder, "explains", Vec::new(), |decoder, node| {
        decoder.some(node, "`explains`", read_checks)
    });
    let explains_from = fields.or(decoder, "explains_from", Vec::new(), |decoder, node| {
        decoder.some(node, "`explains_from`", read_checks)
    });
    // Without any it explains no check that fails
    let explains_failed = fields.maybe(decoder, "explains_failed", |decoder, node| {
        decoder.each(node, "`explains_failed`", read_checks)
    });
    let guess = fields.or(decoder, "guess", false, |decoder, node| {
        decoder.flag(node, "`guess`")
    });
    let unless = fields.or(decoder, "unless", Vec::new(), |decoder, node| {
        decoder.some(node, "`unless`", read_checks)
    });
    let beside = fields.or(decoder, "beside", Vec::new(), |decoder, node| {
        decoder.some(node, "`beside`", read_beside)
    });
    let look = fields.text(decoder, "look");
    let link = fields.maybe(decoder, "link", |decoder, node| {
        decoder.text(node, "`link`").map(str::to_owned)
    });
    fields.finish(decoder);
    Some(Rule {
        component: component?,
        says: says?,
        likely: likely?,
        side: side?,
        shown_by: shown_by?,
        words: words?,
        evidence: evidence?,
        from_windows: from_windows?,
        explains: explains?,
        explains_from: explains_from?,
        explains_failed: explains_failed?,
        guess: guess?,
        unless: unless?,
        beside: beside?,
        look: look?,
        link: link?,
    })
}

fn read_beside(decoder: &mut Decoder<'_>, node: &Node) -> Option<Beside> {
    let mut fields = decoder.fields(node, "an item of `beside`")?;
    let checks = fields.read(decoder, "checks", read_checks);
    let says = fields.text(decoder, "says");
    fields.finish(decoder);
    Some(Beside {
        checks: checks?,
        says: says?,
    })
}

fn read_checks(decoder: &mut Decoder<'_>, node: &Node) -> Option<Pattern> {
    read_pattern(decoder, node, "a pattern")
}

/// A word that is searched for in texts of lower case.
fn read_word(decoder: &mut Decoder<'_>, node: &Node) -> Option<String> {
    let text = decoder.text(node, "a word")?;
    let lower = text.to_lowercase();
    if text != lower {
        let message = format!("`{text}` is in no text: all texts are compared in lower case");
        return decoder.fail(node, message, Some(format!("write `{lower}`")));
    }
    Some(lower)
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::FILE;
    use super::*;

    /// What is wrong with a catalogue, for people; empty if nothing is.
    fn problems(text: &str) -> String {
        match read("causes.yaml", text) {
            Ok(_) => String::new(),
            Err(problems) => problems.to_string(),
        }
    }

    /// The problems of the file are the message of this test.
    #[test]
    fn the_catalogue_has_no_problems() {
        let (file, text) = FILE;
        match read(file, text) {
            Ok(rules) => assert_eq!(rules.len(), text.matches("- component:").count()),
            Err(problems) => panic!("{problems}"),
        }
    }

    #[test]
    fn all_problems_are_told_at_once_with_their_places() {
        let text = "\
- component: kubelets
  says: nothing works
  likely: the kubelet
  shown_by: [net.a b, '']
  wrods: [timeout]
  look: kubectl get nodes
- component: dns
  says: ''
  likely: its pods
  side: here
  shown_by: []
  words: [Timeout, 5]
  beside: [{checks: 'net.x]', says: names resolve}]
  look: kubectl get pods
";
        let expected = "\
causes.yaml:1:14: unknown component `kubelets`
  hint: did you mean `kubelet`? known are: admission, api-server, application, authorization, cni, \
container-runtime, controller-manager, dns, egress, host-firewall, image-registry, kube-proxy, kubelet, \
load-balancer, node-labels, node-os, scheduler, service-network
causes.yaml:4:14: `net.a b` is not a pattern of checks
  hint: a pattern holds letters, digits, `.`, `-`, `/`, `[`, `]`, `=`, `,` and the wildcards `*` and `?`
causes.yaml:4:23: a pattern must not be empty
causes.yaml:5:3: a cause has an unknown key `wrods`
  hint: did you mean `words`? known are: component, says, likely, side, shown_by, words, evidence, \
from_windows, explains, explains_from, explains_failed, guess, unless, beside, look, link
causes.yaml:8:9: `says` must not be empty
causes.yaml:10:9: unknown side `here`
  hint: known are: from, to, way, reach, about, named, observer, cluster
causes.yaml:11:13: `shown_by` must not be empty
causes.yaml:12:11: `Timeout` is in no text: all texts are compared in lower case
  hint: write `timeout`
causes.yaml:12:20: a word must be text, not a number
  hint: put it in quotes if it is meant as text
causes.yaml:13:21: `net.x]` is not a pattern of checks
  hint: the bracket of a pattern has a claim's id or a wildcard before it, and nothing after it
10 problems";
        assert_eq!(problems(text), expected);
    }

    #[test]
    fn a_pattern_has_a_bounded_length() {
        let row = |letters| {
            let shown_by = "a".repeat(letters);
            format!("- {{shown_by: [{shown_by}], component: dns, says: a, likely: b, look: c}}")
        };
        assert_eq!(problems(&row(200)), "");
        let long = "a".repeat(201);
        let expected = format!(
            "causes.yaml:1:15: `{long}` is not a pattern of checks\n  \
             hint: a pattern has 1 to 200 characters\n1 problem"
        );
        assert_eq!(problems(&row(201)), expected);
    }

    #[test]
    fn what_is_no_list_of_causes_is_refused() {
        for (text, expected) in [
            (
                "component: dns",
                "1:1: the catalogue must be a list, not a mapping",
            ),
            ("- dns", "1:3: a cause must be a mapping, not text"),
            (
                "- {says: a, says: b}",
                "1:13: not valid YAML: the key `says` appears twice",
            ),
        ] {
            assert_eq!(
                problems(text),
                format!("causes.yaml:{expected}\n1 problem"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_cause_for_which_an_earlier_one_leaves_no_check_is_refused() {
        let row = |rest: &str| {
            format!("- {{component: dns, says: no name, likely: a, look: b, shown_by: {rest}}}\n")
        };
        let problem = "causes.yaml:2:3: this cause fits no check: `no name`, before it, takes all \
                       of them\n  hint: put it before the other, or remove one of them\n1 problem";
        for (first, second, expected) in [
            ("[net.a, net.b]", "[net.b]", problem),
            ("[net.b]", "[net.a, net.b]", ""),
            // Words are in what was seen, and in why nothing was
            ("[net.b]", "[net.b], words: [timeout]", ""),
            ("[net.b], words: [timeout]", "[net.b]", ""),
            (
                "[net.b], words: [dns, time]",
                "[net.b], words: [timeout]",
                problem,
            ),
            ("[net.b], words: [timeout]", "[net.b], words: [time]", ""),
            ("[net.b], from_windows: true", "[net.b]", ""),
            ("[net.b]", "[net.b], from_windows: true", problem),
            ("[net.b], unless: [net.c]", "[net.b]", ""),
            ("[net.b]", "[net.b], unless: [net.c]", problem),
        ] {
            let text = row(first) + &row(second);
            assert_eq!(problems(&text), expected, "{text}");
        }
    }
}
