//! What a system of continuous integration gets beside the reports.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use winconform_core::record::RunView;
use winconform_core::report::ci::{self, azure, github, metadata, summary};
use winconform_core::text::printable;

use super::args::Ci;
use super::error::CliError;
use super::out::{self, ANNOTATIONS, JUNIT, JUNIT_OF_PROW, METADATA, SUMMARY};
use super::screen::Screen;
use crate::transport::encode;

impl Ci {
    /// The system meant, with the variables of this process for [`Ci::Auto`].
    pub(crate) fn system(self) -> Self {
        self.by(|name| std::env::var(name).ok())
    }

    fn by(self, variable: impl Fn(&str) -> Option<String>) -> Self {
        if self != Self::Auto {
            return self;
        }
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let is_true = |name: &str| variable(name).is_some_and(|it| it.eq_ignore_ascii_case("true"));
        let systems = [
            (is_true("GITHUB_ACTIONS"), Self::Github),
            (is_true("GITLAB_CI"), Self::Gitlab),
            (is_true("TF_BUILD"), Self::Azure),
            (is_set("PROW_JOB_ID"), Self::Prow),
        ];
        let found = systems.into_iter().find(|(is, _)| *is);
        found.map_or(Self::None, |(_, system)| system)
    }

    /// The folder of the reports, if none is named.
    pub(crate) fn folder(self) -> Option<PathBuf> {
        let artifacts = std::env::var_os("ARTIFACTS").filter(|path| !path.is_empty());
        artifacts.filter(|_| self == Self::Prow).map(PathBuf::from)
    }

    /// Tells the system why a run did not begin.
    pub(crate) fn fail(self, error: &CliError, screen: &Screen) {
        let text = error.render();
        let text = text.trim_end().trim_start_matches("error: ").to_owned();
        let lines = match self {
            Self::Github => vec![ci::github_error(&text)],
            Self::Azure => vec![ci::azure_error(&text)],
            Self::Auto | Self::None | Self::Gitlab | Self::Prow => Vec::new(),
        };
        screen.command(&lines);
    }

    /// Writes every report that is a file, and what this system reads beside them.
    pub(crate) fn write(self, folder: &Path, view: &RunView) -> Result<(), CliError> {
        let junit = match self {
            Self::Prow => JUNIT_OF_PROW,
            _ => JUNIT,
        };
        // Those of a run that another system read
        let _ = out::withdraw(folder);
        out::write(folder, view, junit)?;
        match self {
            Self::Azure => out::write_text(&folder.join(SUMMARY), &summary(view)),
            Self::Gitlab => match link(folder) {
                Some(link) => out::write_text(&folder.join(ANNOTATIONS), &link),
                None => Ok(()),
            },
            Self::Prow => {
                let path = folder.join(METADATA);
                match !path.exists() || out::is_ours(&path) {
                    true => out::write_text(&path, &metadata(view)),
                    false => Ok(()),
                }
            }
            Self::Auto | Self::None | Self::Github => Ok(()),
        }
    }

    /// Tells the system of a run whose reports are in the folder, if there is one.
    pub(crate) fn tell(self, view: &RunView, folder: Option<&Path>, screen: &Screen) {
        let commands = match self {
            Self::Github => {
                let path = std::env::var_os("GITHUB_STEP_SUMMARY");
                if let Some(path) = path.filter(|path| !path.is_empty())
                    && let Err(error) = append(Path::new(&path), &summary(view))
                {
                    let path = printable(&path.to_string_lossy());
                    screen.complain(&format!(
                        "warning: cannot write `{path}`, $GITHUB_STEP_SUMMARY: {error}\n"
                    ));
                }
                github(view)
            }
            Self::Azure => {
                let summary = folder.map(|folder| folder.join(SUMMARY));
                let summary = summary.and_then(|path| path.canonicalize().ok());
                let upload = |path: PathBuf| format!("##vso[task.uploadsummary]{}", path.display());
                azure(view).into_iter().chain(summary.map(upload)).collect()
            }
            Self::Auto | Self::None | Self::Gitlab | Self::Prow => Vec::new(),
        };
        screen.command(&commands);
    }
}

/// GitLab's annotations of a job: a link to the page among its artifacts (GitLab, "CI/CD artifacts reports types").
fn link(folder: &Path) -> Option<String> {
    let (job, project) = (
        std::env::var("CI_JOB_URL").ok()?,
        std::env::var("CI_PROJECT_DIR").ok()?,
    );
    let page = folder.canonicalize().ok()?.join(out::PAGE);
    let within = page.strip_prefix(Path::new(&project).canonicalize().ok()?);
    let segments = within.ok()?.iter();
    let segments = segments.map(|segment| Some(encode(segment.to_str()?)));
    let path = segments.collect::<Option<Vec<_>>>()?.join("/");
    let url = format!("{job}/artifacts/file/{path}");
    let link = json!({"external_link": {"label": "report.html", "url": url}});
    Some(json!({"winconform": [link]}).to_string() + "\n")
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_known_by_its_variables() {
        for (set, ci, system) in [
            ("GITHUB_ACTIONS", Ci::Auto, Ci::Github),
            ("TF_BUILD", Ci::Auto, Ci::Azure),
            ("GITLAB_CI", Ci::Auto, Ci::Gitlab),
            ("PROW_JOB_ID", Ci::Auto, Ci::Prow),
            ("CI", Ci::Auto, Ci::None),
            ("GITHUB_ACTIONS", Ci::None, Ci::None),
            ("GITHUB_ACTIONS", Ci::Azure, Ci::Azure),
        ] {
            let variable = |name: &str| (name == set).then(|| "true".to_owned());
            assert_eq!(ci.by(variable), system, "{set}");
            assert_eq!(
                Ci::Auto.by(|name| (name == set).then(String::new)),
                Ci::None
            );
        }
    }
}
