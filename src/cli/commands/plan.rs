//! `winconform plan`.

use winconform_core::record::Exit;
use winconform_core::report::{claims, nothing_selected, plan};
use winconform_core::text::printable;

use crate::cli::args::{Format, ShownArgs};
use crate::cli::connect::connected;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::settings;
use crate::engine::{cost, plan_of};

pub(crate) async fn run(args: ShownArgs, screen: &Screen) -> Result<u8, CliError> {
    let (suites, settings) = settings::read(&args.on.checks)?;
    let cluster = connected(&args.on.cluster, &settings.config, screen).await?;
    let (facts, selected) =
        plan_of(&cluster, &suites, &settings.config, &settings.selection).await?;
    let costs = cost(&selected.plan, &facts, &settings.config, false);
    match args.format {
        Format::Text => {
            screen.say(&claims::plan_text(&selected.plan));
            screen.say(&plan::costs_text(&costs));
            let fixtures = selected.plan.fixtures();
            if let Some(node) = &settings.config.disrupt
                && fixtures.iter().any(|key| key.name.disrupts())
            {
                let node = printable(&node.value);
                screen.say(&format!("boots {node} after all other checks\n"));
            }
        }
        Format::Json => screen.say(&plan::json(
            &selected.plan,
            &costs,
            &settings.selection,
            &selected.left_out,
        )),
    }
    if selected.plan.checks.is_empty() {
        let unchecked = settings.selection.unchecked();
        let reason = nothing_selected(unchecked, &selected.left_out);
        screen.complain(&format!("{reason}\n"));
        return Ok(Exit::NothingSelected.code());
    }
    Ok(0)
}
