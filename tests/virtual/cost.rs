//! The cost of a whole healthy run with several Windows pools, in counts, which do not vary.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use hybrid_sim::{IpFamilies, Topology};
use libtest_mimic::Trial;
use winconform::engine::RunOptions;
use winconform_core::config::{self, Durations, Limits};
use winconform_core::plan::Selection;
use winconform_core::record::{Activity, Exit, RunView, critical_path};

use crate::nodes::gentle::{HUNDREDTHS, alone};
use crate::rows::clusters::of_row;
use crate::world::{Outcome, World, selection, took, trial, undisturbed, verdicts, within_of};

/// The most execs in one prober with a curl that takes many targets: one for each round that has to hold, as
/// many for each of two groups of fixtures that become ready after the others, since few start at once, one for
/// whether its own server listens, and one for the curl's version.
const EXECS: u64 = 9;
/// The prober that takes two more: one for the cluster's DNS suffix, and one for the controls of the checks
/// that observe from each node.
const TOLD: &str = "prober-linux";
const MORE: u64 = 2;

/// The prober that lists the processes of its node and looks for its address, in two rounds as the control of each of
/// three checks, and that says once what each of eleven checks and controls asks of the node.
const LISTING: &str = "prober-node-windows";
const LISTED: u64 = 17;

fn most_execs(place: &str) -> u64 {
    let listed = LISTED * u64::from(place.starts_with(LISTING));
    EXECS + MORE * u64::from(place.ends_with(TOLD)) + listed
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_second_family_takes_no_more_execs", execs),
        trial("a_curl_of_2017_takes_no_more_execs", old_curl),
        trial("time_and_requests_are_within_their_bounds", bounds),
        trial(
            "what_a_pool_claims_beside_the_network_adds_little_time",
            added,
        ),
        trial("what_no_service_answers_is_not_asked_for_its_pods", silent),
        trial("what_one_exec_cannot_print_goes_by_several", several),
        trial(
            "long_foreign_pages_are_wrong_answers_and_break_nothing",
            foreign,
        ),
        trial("a_page_that_no_exec_can_print_breaks_its_own_look", endless),
    ]
}

/// Its Windows containers have curl 7.55; curl before 7.66 ends at the first operation that fails.
const OLD_CURL: &str = "registry.k8s.io/e2e-test-images/agnhost:2.59";

/// Pods of controllers, which are named anew in each run.
const NAMED_ANEW: [&str; 4] = ["churn-", "iis-", "replica-set-", "win-webserver-"];

fn old_curl() -> Outcome {
    let execs = |agnhost: Option<&str>| {
        let images = agnhost.map(|image| format!("images: {{agnhost: \"{image}\"}}"));
        within_of(Topology::hybrid(), 1, async move |world| {
            let cluster = world.cluster();
            let mut options = world.whole("r0");
            options.config.outside.load_balancers = false;
            if let Some(images) = images {
                let read = config::read("config.yaml", &images, &mut Vec::new());
                options.config.images = read.images;
            }
            let ran = undisturbed(&cluster, &options).await;
            ran.came_to(Exit::Conformant)?;
            let execs = cluster.api.execs().into_iter();
            let named = execs.filter(|(pod, _)| !NAMED_ANEW.iter().any(|one| pod.starts_with(one)));
            Ok::<BTreeMap<_, _>, String>(named.collect())
        })
    };
    let (new, old) = (execs(None)?, execs(Some(OLD_CURL))?);
    let mut places = old.iter();
    match places.find(|(place, count)| new.get(*place).is_none_or(|new| *count > new)) {
        None => Ok(()),
        Some(over) => Err(format!("{over:?}, with a newer curl {new:?}")),
    }
}

fn three_builds(ip_families: IpFamilies) -> Topology {
    Topology {
        ip_families,
        ..of_row("three-builds")
    }
}

/// The execs in each prober, the verdict of every check, and how long the run took.
type Counted = (BTreeMap<String, u64>, BTreeMap<String, String>, Duration);

fn counted(ip_families: IpFamilies, limits: Limits) -> Result<Counted, String> {
    let selection = Selection::default();
    came_to(ip_families, limits, selection, None, Exit::Conformant)
}

/// A healthy run with one family.
static IPV4: LazyLock<Result<Counted, String>> =
    LazyLock::new(|| counted(IpFamilies::IPv4, Limits::default()));

/// The same with both families.
static DUAL_STACK: LazyLock<Result<Counted, String>> =
    LazyLock::new(|| counted(IpFamilies::DualStack, Limits::default()));

fn came_to(
    ip_families: IpFamilies,
    limits: Limits,
    selection: Selection,
    fault: Option<&'static str>,
    exit: Exit,
) -> Result<Counted, String> {
    within_of(three_builds(ip_families), 1, async move |world| {
        if let Some(fault) = fault {
            world.joined.faults().set(fault.parse().expect("a fault"));
        }
        let cluster = world.with(world.server.client(), Durations::default(), limits);
        let mut options = RunOptions {
            selection,
            ..world.settings("r0")
        };
        // The time until a load balancer exists decides how often it is observed
        options.config.outside.load_balancers = false;
        options.config.outside.metadata = false;
        let ran = undisturbed(&cluster, &options).await;
        ran.came_to(exit)?;
        let view = ran.view()?;
        let verdicts = verdicts(&view).into_iter();
        let verdicts = verdicts.map(|(id, verdict)| (id, format!("{verdict:?}")));
        Ok((
            cluster.api.execs().into_iter().collect(),
            verdicts.collect(),
            took(&view),
        ))
    })
}

/// The most requests per additional node between 8 and 24. Each Windows node that is observed from has a Service with
/// one pod of its own, and each exec session reads what it depends on; each prober says once which curl it has, and each
/// server whether it listens.
const REQUESTS: u64 = 18;

/// An error unless each prober that sent requests has its curl on record, once, and with its version.
fn told_once(view: &RunView) -> Outcome {
    let sessions = view.spans.iter().filter_map(|span| match &span.what {
        Activity::ExecSession(from) => from.prober().map(|_| from),
        _ => None,
    });
    let asked: BTreeSet<_> = sessions.collect();
    let told = view.curls.iter().filter(|curl| curl.version.is_some());
    let mut told: Vec<_> = told.map(|curl| &curl.from).collect();
    told.sort();
    match asked.iter().eq(&told) && !told.is_empty() {
        true => Ok(()),
        false => Err(format!("{asked:?} were asked, and {told:?} told")),
    }
}

/// The requests of a run with so many nodes; an error if the run takes too long.
fn requests(nodes: usize) -> Result<u64, String> {
    let topology = three_builds(IpFamilies::IPv4).of_nodes(nodes);
    let view = within_of(topology, 1, async |world| {
        let mut options = world.whole("r0");
        options.config.outside.load_balancers = false;
        options.config.outside.metadata = false;
        let ran = undisturbed(&world.cluster(), &options).await;
        ran.came_to(Exit::Conformant)?;
        ran.view()
    })?;
    told_once(&view)?;
    let path = critical_path(&view).ok_or("there is no critical path")?;
    let took = took(&view);
    let needed = path.took_ms + alone(&view);
    if took.as_millis() * 100 > u128::from(needed) * HUNDREDTHS {
        return Err(format!("{took:?}, and {needed} ms of it is needed"));
    }
    let ended = view.ended.as_ref().ok_or("it has no end")?;
    Ok(ended.requests.iter().map(|(_, count)| count).sum())
}

fn bounds() -> Outcome {
    const FEW: usize = 8;
    const MANY: usize = 24;
    let (few, many) = (requests(FEW)?, requests(MANY)?);
    let more = u64::try_from(MANY - FEW).map_err(|error| error.to_string())? * REQUESTS;
    match many <= few + more {
        true => Ok(()),
        false => Err(format!(
            "{few} requests with {FEW} nodes, {many} with {MANY}"
        )),
    }
}

/// The most that all claims of a pool add to the critical path of those of the network, where the images are on the
/// nodes, in milliseconds. A program that takes two and a half minutes to start is among them.
const ADDED_MS: u64 = 150_000;

const OF_POOL: &str = "pool=windows-2022";
const OF_NETWORK: &str = "net.*[pool=windows-2022*";

fn added() -> Outcome {
    within_of(of_row("hybrid"), 1, async |world: &World| {
        let mut took = Vec::new();
        // The first run has the images pulled
        for (run, checks) in [("r0", OF_POOL), ("r1", OF_NETWORK), ("r2", OF_POOL)] {
            let mut options = RunOptions {
                selection: selection(&[checks]),
                ..world.whole(run)
            };
            options.config.allow.clear();
            options.config.outside.load_balancers = false;
            options.config.outside.metadata = false;
            let ran = undisturbed(&world.cluster(), &options).await;
            ran.came_to(Exit::Conformant)?;
            let view = ran.view()?;
            let path = critical_path(&view).ok_or("there is no critical path")?;
            took.push(path.took_ms);
        }
        match took[2] <= took[1] + ADDED_MS {
            true => Ok(()),
            false => Err(format!("{} ms, and {} of the network", took[2], took[1])),
        }
    })
}

/// The most time of a run whose Linux probers get no answer from any Service, in hundredths of a healthy run:
/// each request takes its whole time-out. It would be 1,500 if a prober repeated each request often enough to
/// meet every pod.
const SILENT: u32 = 400;

fn silent() -> Outcome {
    let (.., healthy) = IPV4.as_ref()?;
    let dead = Some("kube-proxy-dead=linux");
    let (.., silent) = came_to(
        IpFamilies::IPv4,
        Limits::default(),
        Selection::default(),
        dead,
        Exit::NotConformant,
    )?;
    match silent <= *healthy * SILENT / 100 {
        true => Ok(()),
        false => Err(format!("{silent:?}, and {healthy:?} of a healthy one")),
    }
}

fn execs() -> Outcome {
    let (one, ..) = IPV4.as_ref()?;
    let (two, verdicts, _) = DUAL_STACK.as_ref()?;
    let second = verdicts.keys().filter(|id| id.contains("family=ipv6"));
    if second.count() < 100 {
        return Err("it is not looked at in two families".to_owned());
    }
    // A fixture that is ready a moment later may take one more
    let over = |(place, count): &(&String, &u64)| {
        let alone = one.get(*place).copied().unwrap_or_default();
        place.contains("prober") && (**count > most_execs(place) || **count > alone + 1)
    };
    match two.iter().find(over) {
        None => Ok(()),
        Some(over) => Err(format!(
            "{over:?}: {one:?} with one family, {two:?} with two"
        )),
    }
}

/// The verdicts are the same whether or not one exec can print everything.
fn several() -> Outcome {
    let narrow = Limits {
        exec_output: 64 << 10,
        ..Limits::default()
    };
    let (few, usual, _) = DUAL_STACK.as_ref()?;
    let (many, narrow, _) = counted(IpFamilies::DualStack, narrow)?;
    if *usual != narrow {
        return Err("verdicts differ".to_owned());
    }
    let sum = |execs: &BTreeMap<String, u64>| execs.values().sum::<u64>();
    match sum(&many) > sum(few) {
        true => Ok(()),
        false => Err(format!("{few:?} and {many:?}")),
    }
}

/// Checks of Service IPs and others, whose requests all go in one exec session.
const SERVICE_IPS: [&str; 2] = ["net.service-ip-from-pod", "net.pod-to-pod-cross-node"];

/// Runs `SERVICE_IPS` while a captive server answers for every Service IP with a page of 8 kB.
fn of_foreign(exec_output: usize, exit: Exit) -> Result<Counted, String> {
    let limits = Limits {
        exec_output,
        ..Limits::default()
    };
    came_to(
        IpFamilies::IPv4,
        limits,
        selection(&SERVICE_IPS),
        Some("service-answers-wrong"),
        exit,
    )
}

fn foreign() -> Outcome {
    let (few, whole, _) = of_foreign(1 << 20, Exit::NotConformant)?;
    let (many, halves, _) = of_foreign(20 << 10, Exit::NotConformant)?;
    let sum = |execs: &BTreeMap<String, u64>| execs.values().sum::<u64>();
    if sum(&many) <= sum(&few) {
        return Err(format!("everything fitted: {few:?} and {many:?}"));
    }
    if !whole.values().any(|verdict| verdict.contains("Fail")) || whole != halves {
        return Err(format!("{whole:#?} and {halves:#?}"));
    }
    Ok(())
}

fn endless() -> Outcome {
    let (_, halves, _) = of_foreign(20 << 10, Exit::NotConformant)?;
    let (_, verdicts, _) = of_foreign(6 << 10, Exit::CouldNotTell)?;
    let expected = |verdict: &str| verdict.replace("Fail", "Inconclusive");
    let other = halves
        .iter()
        .find(|(id, verdict)| verdicts.get(*id) != Some(&expected(verdict)));
    match other {
        None => Ok(()),
        Some(other) => Err(format!("{other:?}: {verdicts:#?}")),
    }
}
