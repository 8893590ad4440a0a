//! The commands and their arguments.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use winconform_core::config::parse_duration;
use winconform_core::report::terminal::Detail;
use winconform_core::text::is_dns_label;

#[cfg(feature = "demo")]
mod simulated;

#[cfg(feature = "demo")]
pub(crate) use simulated::{DemoArgs, Pace, SimulateArgs};

/// Tells whether a live hybrid Kubernetes cluster does what Kubernetes documents for Windows.
#[derive(Debug, Parser)]
#[command(name = "winconform", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  conformant             1  internal error     2  usage or invalid file
   10  not conformant        11  could not tell    12  nothing selected
   20  refused for safety    21  cluster unreachable
  130  interrupted by a signal (reports are still written; a second SIGINT abandons tear-down)";

#[cfg(feature = "demo")]
const SIMULATED: &str = "\
The simulated nodes can pull only a few images, and can run only a few programs in them:
docs/simulated-programs.md lists both.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check the cluster, remove everything again, and report
    Run(RunArgs),
    /// Show what a run would check on this cluster, and what it would skip and why
    Plan(ShownArgs),
    /// Show the facts of the cluster, each with its source or the reason why it is unknown
    Facts(FactsArgs),
    /// List the images a run would pull on this cluster, by pool, with what runs them
    Images(ShownArgs),
    /// Pull the images a run would pull, on every node it may use, and leave nothing else
    Prepull(PrepullArgs),
    /// Show which permissions a run has on this cluster, and which checks each missing one costs
    Preflight(ShownArgs),
    /// List all claims
    List(ListArgs),
    /// Explain one claim: who makes it, how it is checked, what is known of it; or what a run saw of a check
    Explain(ExplainArgs),
    /// Remove what a killed run left behind
    Cleanup(CleanupArgs),
    /// Make the reports of a run again from its record, and exit as that run did
    Report(ReportArgs),
    /// Say what changed from one run to another
    Diff(DiffArgs),
    /// Say what became of each claim from run to run
    Trend(TrendArgs),
    /// Print a script that completes commands and options in a shell
    Completions { shell: Shell },
    /// Write manual pages into a folder
    Man {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print an example or the schema of a config file, or check one
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Run the checks on a simulated cluster, in simulated time; needs no real cluster
    #[cfg(feature = "demo")]
    #[command(after_help = SIMULATED)]
    Demo(DemoArgs),
    /// Join simulated nodes to a control plane, until interrupted
    #[cfg(feature = "demo")]
    #[command(after_help = SIMULATED)]
    Simulate(SimulateArgs),
}

/// Which cluster.
#[derive(Args, Debug)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig [default: $KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Its context; needed when it has several
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// Which protected cluster is meant nevertheless.
#[derive(Args, Debug)]
pub(crate) struct ProtectedArgs {
    /// Go on though the cluster of this context is protected, by `protected` in the config file or by
    /// the annotation winconform/protected of its namespace kube-system
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) allow_protected: Option<String>,
}

/// Which suites.
#[derive(Args, Debug, Default)]
pub(crate) struct SuitesArgs {
    /// A folder of suites in place of the built-in ones
    #[arg(long, value_name = "DIR")]
    pub(crate) suites: Option<PathBuf>,
}

/// What is checked.
#[derive(Args, Debug, Default)]
pub(crate) struct SelectArgs {
    /// Use only the checks that EXPR selects; may be repeated. EXPR is an id or pattern
    /// (`net.*[pool=windows-2022*`), area=net, type=rejection, pool=windows-2022, node=2,
    /// source=linux-pod or workload=job; a leading `!` excludes what it selects
    #[arg(long, value_name = "EXPR")]
    pub(crate) select: Vec<String>,
}

/// Which checks, of which cluster.
#[derive(Args, Debug)]
pub(crate) struct OnClusterArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) checks: ChecksArgs,
}

/// Which checks, and with which settings.
#[derive(Args, Debug, Default)]
pub(crate) struct ChecksArgs {
    #[command(flatten)]
    pub(crate) suites: SuitesArgs,
    /// A config file (see `winconform config example`); --select takes the place of its `select`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Have this Windows node boot after all other checks, to see whether pods on it work again; whatever runs there
    /// ends. The config file has to allow it, too (`allow: [disruption]`)
    #[arg(long, value_name = "NODE")]
    pub(crate) yes_disrupt: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print a config file that sets every setting to its default and explains it
    Example,
    /// Print the JSON Schema of config files
    Schema,
    /// Tell everything that is wrong with a config file
    Check(ConfigCheckArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ConfigCheckArgs {
    /// The config file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) suites: SuitesArgs,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    Text,
    /// As in report.json
    Json,
    /// As in junit.xml
    Junit,
}

/// The report on standard output.
#[derive(Args, Debug)]
pub(crate) struct ReportFormArgs {
    /// The form of the report on standard output
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ReportFormat,
    /// Print every check and every finding with its evidence, not what matters most
    #[arg(long, conflicts_with = "format")]
    pub(crate) details: bool,
    /// Which system of continuous integration reads this
    #[arg(long, value_enum, value_name = "SYSTEM", default_value = "auto")]
    pub(crate) ci: Ci,
    /// Tell in the reports what changed since an older run: its record.jsonl or report.json, or the folder that has them
    #[arg(long, value_name = "RUN")]
    pub(crate) baseline: Option<PathBuf>,
}

impl ReportFormArgs {
    /// How much is told.
    pub(crate) fn detail(&self) -> Detail {
        match self.details {
            true => Detail::Full,
            false => Detail::Short,
        }
    }
}

/// A system of continuous integration.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Ci {
    /// The one whose variables are set, if one's are
    Auto,
    /// None
    None,
    /// Annotations, and the summary of the step
    Github,
    /// File `winconform-annotations.json`, with a link to report.html
    Gitlab,
    /// Issues of the task, and its summary
    Azure,
    /// Files `junit_winconform.xml` and `metadata.json`; a run without --out writes into $ARTIFACTS
    Prow,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) on: OnClusterArgs,
    #[command(flatten)]
    pub(crate) protected: ProtectedArgs,
    /// Begin nothing more after this long, such as 20m or 1h 30m: tear down and report
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) deadline: Option<Duration>,
    #[command(flatten)]
    pub(crate) shown: ReportFormArgs,
    /// Write record.jsonl, junit.xml, report.json, report.html and metrics.prom into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Give this run a Lease of its own, so that it can run at the same time as runs without an id or with another one
    #[arg(long, value_name = "NAME", value_parser = parse_id)]
    pub(crate) id: Option<String>,
    /// Run every check N times, in the same workloads: the worst verdict of a check counts, and a
    /// check whose verdicts differ is flaky
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "yes_disrupt", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) repeat: u32,
    /// Run every check again and again for this long, such as 8h; the deadline ends it, too
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["repeat", "yes_disrupt"])]
    pub(crate) soak: Option<Duration>,
    /// Resume the run that wrote this record: checks that have a verdict about the cluster keep it.
    /// The cluster, the suites and the config file must be the same
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["repeat", "soak"])]
    pub(crate) resume: Option<PathBuf>,
    /// Run only the checks that failed, could not be told or were not tested in the run that wrote this record
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["select", "resume"])]
    pub(crate) rerun_failed: Option<PathBuf>,
    /// Leave what the run created in the cluster, to look at it; `winconform cleanup` removes it
    #[arg(long, value_enum, value_name = "WHEN", default_value = "never")]
    pub(crate) keep: KeepWhen,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum KeepWhen {
    /// Remove it, always
    Never,
    /// Leave it unless everything is conformant or the run was interrupted
    OnFailure,
    /// Leave it unless the run was interrupted
    Always,
}

/// What is shown of a cluster, and how.
#[derive(Args, Debug)]
pub(crate) struct ShownArgs {
    #[command(flatten)]
    pub(crate) on: OnClusterArgs,
    /// The form on standard output
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct PrepullArgs {
    #[command(flatten)]
    pub(crate) on: OnClusterArgs,
    #[command(flatten)]
    pub(crate) protected: ProtectedArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct FactsArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// The form of the facts
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) suites: SuitesArgs,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// The form of the list
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) suites: SuitesArgs,
    /// The claim's id, such as net.service-ip-from-pod, or that of a case or a check of it
    pub(crate) claim: String,
    /// Print what a run saw of this check, with the raw replies, from its record
    #[arg(long, value_name = "RECORD", conflicts_with = "suites")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct CleanupArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Remove only what the run with this id left [default: what any run left]
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The record of a run: its record.jsonl, or the folder that has it
    #[arg(value_name = "RECORD")]
    pub(crate) record: PathBuf,
    #[command(flatten)]
    pub(crate) shown: ReportFormArgs,
    /// Write junit.xml, report.json, report.html and metrics.prom into this folder, too
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Give nodes, hosts, addresses and other people's objects other names, the same everywhere; --out gets
    /// the record with these names, too
    #[arg(long, requires = "out")]
    pub(crate) anonymize: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The earlier run: its record.jsonl or report.json, or the folder that has them
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,
    /// The later run, likewise
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,
    /// What makes this end with exit code 10
    #[arg(long, value_enum, default_value = "new-failures")]
    pub(crate) gate: DiffGate,
    /// Print every check that changed, not the first of each change
    #[arg(long)]
    pub(crate) details: bool,
}

/// What of a comparison speaks against the later run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum DiffGate {
    /// A check fails that did not before
    NewFailures,
    /// A check fails
    AnyFailure,
    /// A check fails that did not before, or one that was observed no longer is
    LostCoverage,
}

#[derive(Args, Debug)]
pub(crate) struct TrendArgs {
    /// Runs, in any order: each its record.jsonl or report.json, the folder that has them, or a folder of such folders
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// The form on standard output
    #[arg(long, value_enum, default_value = "markdown")]
    pub(crate) format: TrendFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TrendFormat {
    /// Reads as plain text, too
    Markdown,
    /// A page for a browser
    Html,
}

/// Part of a Lease's name: a DNS label that leaves room for the prefix.
fn parse_id(text: &str) -> Result<String, String> {
    let valid = text.len() <= 40 && is_dns_label(text);
    valid
        .then(|| text.to_owned())
        .ok_or_else(|| "1 to 40 of a-z, 0-9 and -, not at either end".to_owned())
}
