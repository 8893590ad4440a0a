//! `winconform explain`.

use winconform_core::report::explain::explain;

use crate::cli::args::ExplainArgs;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::suites;

pub(crate) fn run(args: &ExplainArgs, screen: &Screen) -> Result<u8, CliError> {
    let suites = suites::load(args.suites.suites.as_deref())?;
    let text = explain(&suites, &args.claim).map_err(|unknown| {
        let area = &args.claim;
        let next = match &unknown.nearest {
            _ if suites.has_area(area) => format!("see `winconform list --select area={area}`"),
            Some(near) => format!("did you mean `{near}`?"),
            None => "see `winconform list`".to_owned(),
        };
        CliError::Usage(format!("{unknown}\n({next})"))
    })?;
    screen.say(&text);
    Ok(0)
}
