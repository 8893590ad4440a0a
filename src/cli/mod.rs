//! The command line: one file per command; the only code that prints, and the only one that
//! knows exit codes.

mod args;
mod ci;
pub(crate) mod commands;
mod connect;
mod error;
mod out;
mod progress;
mod screen;
mod settings;
mod shell;
#[cfg(feature = "demo")]
pub(crate) mod simulated;
mod suites;

#[cfg(feature = "demo")]
pub use simulated::topology::named as named_topology;

use std::process::ExitCode;

use clap::Parser;
use winconform_core::text::printable;

use args::{Cli, Command};
use error::CliError;
use screen::Screen;

/// Parses the arguments, runs the command and returns the process exit code.
pub fn main() -> ExitCode {
    // Before anything else: rustls chooses no default, though ring is the only provider built in
    let _ = rustls::crypto::ring::default_provider().install_default();
    let screen = Screen::new();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.render().to_string();
            if !error.use_stderr() {
                screen.say(&text);
                return ExitCode::from(screen.ends(0));
            }
            // The error quotes arguments unchanged
            text.lines()
                .for_each(|line| screen.complain(&format!("{}\n", printable(line))));
            return ExitCode::from(2);
        }
    };
    let runtime = match &cli.command {
        #[cfg(feature = "demo")]
        Command::Demo(args) if args.serve.is_none() => simulated::demo::runtime(args.pace),
        _ => tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build(),
    };
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            screen.complain(&format!("error: failed to start: {error}\n"));
            return ExitCode::from(1);
        }
    };
    let code = runtime.block_on(async {
        match command(cli.command, &screen).await {
            Ok(code) => code,
            Err(error) => {
                screen.complain(&error.render());
                error.exit_code()
            }
        }
    });
    // Tasks that hang on a dead server must not hold the process
    runtime.shutdown_background();
    ExitCode::from(screen.ends(code))
}

async fn command(command: Command, screen: &Screen) -> Result<u8, CliError> {
    match command {
        Command::Run(args) => commands::run::run(args, screen).await,
        Command::Plan(args) => commands::plan::run(args, screen).await,
        Command::Facts(args) => commands::facts::run(args, screen).await,
        Command::Images(args) => commands::images::run(args, screen).await,
        Command::Prepull(args) => Box::pin(commands::prepull::run(args, screen)).await,
        Command::Preflight(args) => commands::preflight::run(args, screen).await,
        Command::List(args) => commands::list::run(args, screen),
        Command::Explain(args) => commands::explain::run(&args, screen),
        Command::Cleanup(args) => commands::cleanup::run(args, screen).await,
        Command::Report(args) => commands::report::run(&args, screen),
        Command::Diff(args) => commands::diff::run(&args, screen),
        Command::Trend(args) => commands::trend::run(&args, screen),
        Command::Completions { shell } => Ok(commands::shell::completions(shell, screen)),
        Command::Man { folder } => commands::shell::man(&folder),
        Command::Config(command) => commands::config::run(command, screen),
        #[cfg(feature = "demo")]
        Command::Demo(args) => Box::pin(simulated::demo::run(args, screen)).await,
        #[cfg(feature = "demo")]
        Command::Simulate(args) => simulated::simulate::run(args, screen).await,
    }
}
