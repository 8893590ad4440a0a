//! Commands on the log of a build, and texts that must not be taken for one.

use strum::IntoStaticStr;

use super::super::causes::{Cause, causes};
use super::super::text::folded::add;
use super::super::text::patterns::{line, pattern};
use super::super::text::short::outcome;
use crate::record::{Exit, RunView, exit};
use crate::text::counted;
use crate::verdict::Verdict;

/// The most annotations, and the most kinds of checks in one: GitHub shows ten of a level for a step and drops the
/// others without a word.
const MOST: usize = 10;
/// Columns of a text about checks.
const WIDTH: usize = 200;

#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd)]
#[strum(serialize_all = "lowercase")]
enum Level {
    Error,
    Warning,
    Notice,
}

/// One thing to say about a run.
struct Annotation {
    level: Level,
    title: String,
    text: String,
}

/// Workflow commands of GitHub, a line each (docs.github.com, "Workflow commands for GitHub Actions").
pub fn github(view: &RunView) -> Vec<String> {
    annotations(view).iter().map(of_github).collect()
}

/// Logging commands of Azure Pipelines, a line each (Microsoft, "Logging commands").
pub fn azure(view: &RunView) -> Vec<String> {
    annotations(view).iter().filter_map(of_azure).collect()
}

/// The workflow command of GitHub for an error of a run that did not begin.
pub fn github_error(text: &str) -> String {
    of_github(&Annotation::of_run(Level::Error, text.to_owned()))
}

/// The logging command of Azure Pipelines for the same.
pub fn azure_error(text: &str) -> String {
    let error = Annotation::of_run(Level::Error, text.to_owned());
    of_azure(&error).unwrap_or_default()
}

impl Annotation {
    fn of_run(level: Level, text: String) -> Self {
        let title = "winconform".to_owned();
        Self { level, title, text }
    }
}

fn of_github(one: &Annotation) -> String {
    let level: &str = one.level.into();
    let title = escaped(&one.title, "%25")
        .replace(':', "%3A")
        .replace(',', "%2C");
    format!("::{level} title={title}::{}", escaped(&one.text, "%25"))
}

fn of_azure(one: &Annotation) -> Option<String> {
    let kind: &str = one.level.into();
    let text = escaped(&format!("{}: {}", one.title, one.text), "%AZP25");
    // Azure Pipelines has no notices
    (one.level != Level::Notice).then(|| format!("##vso[task.logissue type={kind}]{text}"))
}

/// A text on one line, with this in place of `%`.
fn escaped(text: &str, percent: &str) -> String {
    let text = text.replace('%', percent);
    text.replace('\r', "%0D").replace('\n', "%0A")
}

/// A text in which no line is a command of a build system: GitHub reads lines that begin with `::`, both read
/// `##[` and `##vso[` wherever it stands (actions/runner, `ActionCommand.cs`; azure-pipelines-agent, `Command.cs`).
pub fn harmless(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let line = line.replace("##[", "# #[").replace("##vso[", "# #vso[");
        let begins = line.len() - line.trim_start().len();
        match line.get(begins..).and_then(|rest| rest.strip_prefix("::")) {
            Some(rest) => format!("{}: :{rest}", &line[..begins]),
            None => line,
        }
    });
    lines.collect()
}

/// What the run came to unless it is conformant, one for each cause, one for the failures without one, one for the
/// limitations that are lifted; what exceeds the most of all is counted in one.
fn annotations(view: &RunView) -> Vec<Annotation> {
    let (causes, unexplained) = causes(view);
    let level = match exit(view) {
        Exit::Conformant => None,
        Exit::NotConformant => Some(Level::Error),
        Exit::CouldNotTell | Exit::NothingSelected | Exit::Interrupted => Some(Level::Warning),
    };
    let came_to = level.map(|level| Annotation::of_run(level, outcome(view)));
    let mut annotations: Vec<_> = causes.iter().map(of_cause).collect();
    for (verdict, level) in [
        (Verdict::Fail, Level::Error),
        (Verdict::Inconclusive, Level::Warning),
    ] {
        let of_it = unexplained
            .iter()
            .filter(|check| check.verdict() == Some(verdict));
        let ids = of_it.map(|check| check.planned.id.as_str());
        annotations.extend(of_checks(level, "no known cause", ids));
    }
    annotations.sort_by_key(|one| one.level);
    annotations.splice(..0, came_to);
    let checks = view.checks.values();
    let lifted = checks.filter(|check| check.verdict() == Some(Verdict::LimitationLifted));
    let ids = lifted.map(|check| check.planned.id.as_str());
    let lifted = of_checks(Level::Notice, "a documented limitation is lifted", ids);
    let most = MOST - usize::from(lifted.is_some());
    let more = annotations.len().saturating_sub(most - 1);
    if more > 1 {
        annotations.truncate(most - 1);
        let text = format!("and {more} more: see the reports");
        annotations.push(Annotation::of_run(Level::Warning, text));
    }
    annotations.extend(lifted);
    annotations
}

fn of_cause(cause: &Cause<'_>) -> Annotation {
    let component: &str = cause.component.into();
    let fails = |verdict| verdict == Some(Verdict::Fail);
    let level = match cause.checks.iter().any(|check| fails(check.verdict())) {
        true => Level::Error,
        false => Level::Warning,
    };
    let count = counted(cause.checks.len(), "check");
    let works = match cause.beside.as_str() {
        "" => String::new(),
        beside => format!("\nworks: {beside}"),
    };
    let evidence = match cause.evidence.as_str() {
        "" => String::new(),
        evidence => format!("\nevidence: {evidence}"),
    };
    Annotation {
        level,
        title: format!("winconform: {component}"),
        text: format!(
            "{} ({count}){works}\n{}: {}{evidence}\nlook: {}",
            cause.says,
            cause.certainty(),
            cause.likely,
            cause.look
        ),
    }
}

/// One annotation for checks, by their patterns; none for no checks.
fn of_checks<'c>(
    level: Level,
    title: &str,
    ids: impl Iterator<Item = &'c str>,
) -> Option<Annotation> {
    let mut groups = Vec::new();
    for id in ids {
        add(&mut groups, pattern(id), id);
    }
    let shown = groups
        .iter()
        .take(MOST)
        .map(|(pattern, ids)| line(pattern, ids, "", WIDTH));
    let mut shown: Vec<_> = shown.collect();
    let more = groups.len().saturating_sub(MOST);
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    (!groups.is_empty()).then(|| Annotation {
        level,
        title: format!("winconform: {title}"),
        text: shown.join("\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_harmless_text_is_a_command() {
        for (text, shown) in [
            ("plain :: text\n", "plain :: text\n"),
            ("a\n  ::add-mask::x\n", "a\n  : :add-mask::x\n"),
            ("::error::x", ": :error::x"),
            (
                "seen ##vso[task.complete]\n",
                "seen # #vso[task.complete]\n",
            ),
            ("###[group]", "## #[group]"),
            ("## a\n", "## a\n"),
        ] {
            let told = harmless(text);
            assert!(!told.contains("##vso[") && !told.contains("##["), "{told}");
            assert_eq!(told, shown);
        }
    }
}
