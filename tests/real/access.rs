//! What an account may do, and what a missing permission costs: `manifests/rbac` on a real server, with real
//! tokens.
//!
//! With a whole manifest, all the checks that it is for run. Without any single verb of it, `preflight` names
//! the missing permission and the checks that it costs, and a run gives no verdict that a healthy run does
//! not give.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use winconform::transport::Env;

use futures::StreamExt;
use serde_json::Value as Json;
use winconform::cluster::{Cluster, Condition, connect, remove_run};
use winconform::engine::{Journal, run, survey};
use winconform_core::config::{Config, Durations, Limits, Outside};
use winconform_core::plan::Selection;
use winconform_core::record::RunView;
use winconform_core::report::terminal::{Colour, Detail, render};
use winconform_core::suite::Suites;
use winconform_core::verdict::Verdict;

use super::account::{self, Account, Lacking};
use super::world::{Outcome, Trials, World, durations, options};
use super::{asking, runs, suites};

/// The number of concurrent runs.
const AT_ONCE: usize = 5;
/// The number of concurrent whole runs: more pods do not fit on the two nodes.
const WHOLE_AT_ONCE: usize = 3;
/// The areas that `rejections.yaml` is for, but for what a program tells.
const AREAS: [&str; 2] = ["env", "reject"];
/// Rejections that together need every permission of their area: every kind of workload, ephemeral
/// containers, resize.
const REJECTIONS: [&str; 4] = [
    "reject.all-container-kinds/privileged",
    "reject.control-accepted",
    "reject.feature-gate",
    "reject.hostPID",
];
/// Verbs that cost less here, when they are missing, than `preflight` says.
const CHEAPER: [Cheaper; 5] = [
    Cheaper {
        verb: "watch",
        resource: "pods",
        of: &[],
        reason: "what is Ready by the list between two refusals needs no watch",
    },
    Cheaper {
        verb: "get",
        resource: "leases.coordination.k8s.io",
        of: &[],
        reason: "asked for only when another run left a Lease",
    },
    Cheaper {
        verb: "update",
        resource: "leases.coordination.k8s.io",
        of: &[],
        reason: "a run that ends within a Lease needs no renewal",
    },
    Cheaper {
        verb: "list",
        resource: "nodes",
        of: &["env.cni", "env.overlay-vni"],
        reason: "where no DaemonSet is a plugin's, nodes are not needed to say so",
    },
    Cheaper {
        verb: "get",
        resource: "configmaps",
        of: &["env.cni", "env.overlay-vni", "env.known-bad-update"],
        reason: "where no DaemonSet is a plugin's, there is nothing to read its mode of; and which plugin there is may \
                 be told without its mode",
    },
];

/// A verb that, when it is missing, need not cost the checks that `preflight` names.
struct Cheaper {
    verb: &'static str,
    resource: &'static str,
    /// The claims whose checks it need not cost; all claims if empty.
    of: &'static [&'static str],
    reason: &'static str,
}

/// An account, and the runs that it is for.
struct Scope {
    manifests: [&'static str; 2],
    suites: Suites,
    durations: Durations,
    /// The start of the names of accounts and runs.
    begin: &'static str,
    at_once: usize,
}

impl Scope {
    /// The checks that need no running pod; of the rejections only `REJECTIONS`.
    fn rejections_only() -> Self {
        Self {
            manifests: account::REJECTIONS_ONLY,
            suites: few(),
            durations: short(),
            begin: "verb",
            at_once: AT_ONCE,
        }
    }

    /// All checks of whole runs.
    fn whole_run() -> Self {
        Self {
            manifests: account::WHOLE_RUN,
            suites: suites::of_whole_runs(),
            durations: Durations {
                fixture: Duration::from_mins(1),
                tear_down: Duration::from_mins(3),
                lease: Duration::from_mins(2),
                ..durations()
            },
            begin: "all",
            at_once: WHOLE_AT_ONCE,
        }
    }
}

pub(crate) fn add(trials: &mut Trials) {
    trials.add("access::the_account_can_do_all_of_it".to_owned(), whole);
    trials.add(
        "access::every_verb_costs_what_preflight_says".to_owned(),
        async |world: &World| {
            let verbs = account::every_verb(account::REJECTIONS_ONLY);
            each_verb(world, &Scope::rejections_only(), &verbs).await
        },
    );
    trials.add(
        "access::every_verb_of_a_whole_run_costs_what_preflight_says".to_owned(),
        async |world: &World| {
            let known = account::every_verb(account::REJECTIONS_ONLY);
            let known: BTreeSet<_> = known.iter().map(ToString::to_string).collect();
            let mut more = account::every_verb(account::WHOLE_RUN);
            // This cluster has no plugin known to enforce policies, so runs create none
            more.retain(|verb| {
                let of_policies = verb.resource().starts_with("networkpolicies.");
                !of_policies && !known.contains(&verb.to_string())
            });
            each_verb(world, &Scope::whole_run(), &more).await
        },
    );
}

/// Verdicts by check; `None` for a check without one.
type Verdicts = BTreeMap<String, Option<Verdict>>;

/// Time limits of runs that only a missing permission may end, however busy the server is.
fn short() -> Durations {
    Durations {
        tear_down: Duration::from_mins(3),
        lease: Duration::from_mins(2),
        ..Durations::default()
    }
}

/// The suites of the areas, of the rejections only `REJECTIONS`.
fn few() -> Suites {
    let mut suites = suites::without_programs(&AREAS);
    suites.cases.retain(|case| {
        let (claim, name) = (case.claim.as_str(), case.name.as_deref());
        let named = format!("{claim}/{}", name.unwrap_or_default());
        let mut kept = REJECTIONS.iter();
        case.claim.area() != "reject" || kept.any(|kept| *kept == claim || *kept == named)
    });
    suites
}

async fn admin(world: &World) -> Result<Cluster, String> {
    connect(&options(&world.kubeconfig), short(), Limits::default())
        .await
        .map_err(|error| error.to_string())
}

/// Runs these suites, and returns the view of the record.
async fn run_as(cluster: &Cluster, suites: &Suites, id: &str) -> Result<RunView, String> {
    let options = runs::apart(id, Outside::default());
    let journal = Journal::create(Env::system(), None, Vec::new(), Box::new(|_| {}))
        .map_err(|e| e.to_string())?;
    let (_signals, signalled) = ordered_watch::channel(0);
    // A refused run has a record, too
    let _ = run(cluster, suites, &options, &journal, signalled).await;
    journal.view().map_err(|error| error.to_string())
}

fn verdicts(view: &RunView) -> Verdicts {
    let of_check = |check: &winconform_core::record::CheckView| {
        let verdict = check.conclusion.as_ref().map(|concluded| concluded.verdict);
        (check.planned.id.to_string(), verdict)
    };
    view.checks.values().map(of_check).collect()
}

fn report(view: &RunView) -> String {
    render(view, 200, Colour::Never, Detail::Full)
}

/// The report of `preflight`, as JSON.
async fn preflight(cluster: &Cluster, suites: &Suites) -> Result<Json, String> {
    let surveyed = survey(cluster, suites, &Config::default(), &Selection::default())
        .await
        .map_err(|error| error.to_string())?;
    serde_json::from_str(&surveyed.json()).map_err(|error| error.to_string())
}

async fn whole(world: &World) -> Outcome {
    let admin = admin(world).await?;
    let read_only = Scope {
        suites: suites::without_programs(&AREAS),
        ..Scope::rejections_only()
    };
    for scope in [read_only, Scope::whole_run()] {
        let id = format!("whole-{}", scope.begin);
        let account = Account::make(&admin.api, &id, scope.manifests, None).await?;
        let outcome = whole_as(world, &account, &scope).await;
        account.remove(&admin.api).await?;
        outcome?;
    }
    Ok(())
}

async fn whole_as(world: &World, account: &Account, scope: &Scope) -> Outcome {
    let suites = &scope.suites;
    let cluster = account.cluster(world, scope.durations.clone()).await?;
    let ready = until(&cluster, suites, |said| said["ready"] == true).await?;
    let denied = lacking(&ready);
    ensure(denied.is_empty(), || format!("denied: {denied:?}"))?;
    // A new connection, which counts only these requests
    let cluster = account.cluster(world, scope.durations.clone()).await?;
    preflight(&cluster, suites).await?;
    for (request, count) in cluster.api.counts() {
        let reviews = request == "create selfsubjectaccessreviews";
        ensure(reviews || request.starts_with("get "), || {
            format!("preflight sent {count} × {request}")
        })?;
    }
    let reviews = ready["permissions"].as_array().map_or(0, Vec::len) as u64;
    let sent = ("create selfsubjectaccessreviews".to_owned(), reviews);
    ensure(cluster.api.counts().contains(&sent), || {
        format!("not each access once: {:?}", cluster.api.counts())
    })?;
    let view = run_as(&cluster, suites, &account.id).await?;
    let concluded = verdicts(&view).values().all(|verdict| {
        verdict.is_some_and(|verdict| !matches!(verdict, Verdict::Inconclusive | Verdict::Fail))
    });
    let words = report(&view);
    ensure(concluded && !words.contains("orbidden"), || words.clone())?;
    let torn = view.torn_down.ok_or("nothing was torn down")?;
    ensure(torn.left.is_empty() && torn.errors.is_empty(), || words)
}

async fn each_verb(world: &World, scope: &Scope, lacks: &[Lacking]) -> Outcome {
    let admin = admin(world).await?;
    let id = format!("{}-healthy", scope.begin);
    let account = Account::make(&admin.api, &id, scope.manifests, None).await?;
    let cluster = account.cluster(world, scope.durations.clone()).await?;
    until(&cluster, &scope.suites, |said| said["ready"] == true).await?;
    let healthy = verdicts(&run_as(&cluster, &scope.suites, &id).await?);
    account.remove(&admin.api).await?;
    println!("{} verbs, {} checks", lacks.len(), healthy.len());
    let trying = lacks.iter().enumerate().map(|(index, lack)| {
        let (admin, healthy) = (&admin, &healthy);
        async move {
            let id = format!("{}-{index}", scope.begin);
            let tried = match Account::make(&admin.api, &id, scope.manifests, Some(lack)).await {
                Err(why) => Err(why),
                Ok(account) => {
                    let tried = without(world, admin, &account, scope, healthy, lack).await;
                    account.remove(&admin.api).await.and(tried)
                }
            };
            tried
                .map(|said| format!("without {lack}: {said}"))
                .map_err(|why| format!("without {lack}: {why}"))
        }
    });
    let tried: Vec<_> = futures::stream::iter(trying)
        .buffer_unordered(scope.at_once)
        .collect()
        .await;
    let mut wrong = Vec::new();
    for outcome in tried {
        match outcome {
            Ok(said) => println!("{said}"),
            Err(why) => wrong.push(why),
        }
    }
    ensure(wrong.is_empty(), || wrong.join("\n"))
}

/// Takes an account without one verb, and checks the report of `preflight`, a run, and what that leaves.
async fn without(
    world: &World,
    admin: &Cluster,
    account: &Account,
    scope: &Scope,
    healthy: &Verdicts,
    lack: &Lacking,
) -> Result<String, String> {
    let suites = &scope.suites;
    let cluster = account.cluster(world, scope.durations.clone()).await?;
    // Bindings take a moment to reach the authoriser
    let said = until(&cluster, suites, |said| {
        let lacking = lacking(said);
        !lacking.is_empty() && lacking.keys().all(|access| lack.is_of(access))
    })
    .await?;
    let lacking = lacking(&said);
    let costs: BTreeSet<_> = lacking
        .values()
        .flat_map(|(costs, _)| costs)
        .cloned()
        .collect();
    let leaves = lacking.values().any(|(_, leaves)| *leaves);
    ensure(said["ready"] == (costs.is_empty() && !leaves), || {
        format!("ready is {}, with costs {costs:?}", said["ready"])
    })?;

    let view = run_as(&cluster, suites, &account.id).await?;
    let words = report(&view);
    let unwrapped = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let costed_claims: BTreeSet<_> = costs.iter().map(|check| claim(check)).collect();
    let cheaper = CHEAPER
        .iter()
        .find(|other| lack.verb == other.verb && lack.resource() == other.resource);
    let may_be_told = |check: &str| {
        cheaper.is_some_and(|other| other.of.is_empty() || other.of.contains(&claim(check)))
    };
    let mut lost = 0;
    for (check, verdict) in healthy {
        let now = verdicts(&view).get(check).copied().flatten();
        let costed = costs.contains(check);
        if now == *verdict {
            // A skipped check does not need the permission
            let idle = *verdict == Some(Verdict::Skip);
            ensure(!costed || idle || may_be_told(check), || {
                format!("{check} is told nevertheless:\n{words}")
            })?;
            continue;
        }
        lost += 1;
        // Without nodes there are no pools, and checks have no such point
        let costed = costed || (now.is_none() && costed_claims.contains(claim(check)));
        // A check that would be skipped loses nothing if the run ends before it
        let costed = costed || (now.is_none() && *verdict == Some(Verdict::Skip));
        let untold = matches!(now, None | Some(Verdict::Inconclusive | Verdict::Skip));
        ensure(costed && untold, || {
            format!("{check} came to {now:?}:\n{words}")
        })?;
    }
    let is_named = unwrapped.contains(&format!("cannot {} ", lack.verb));
    ensure(lost == 0 || is_named, || {
        format!("the report does not name what is missing:\n{words}")
    })?;

    // The run did not remove the objects that exist now
    let left = remove_run(&admin.api, Some(&account.id), scope.durations.tear_down)
        .await
        .map_err(|error| error.to_string())?;
    ensure(left.is_clean(), || format!("not even now: {left:?}"))?;
    let torn = view
        .torn_down
        .unwrap_or_else(|| panic!("no tear-down:\n{words}"));
    let named: BTreeSet<_> = torn.left.iter().map(|left| left.name.clone()).collect();
    for object in &left.removed {
        let blind = torn
            .errors
            .iter()
            .any(|error| error.contains(object.kind.plural));
        ensure(leaves && (named.contains(&object.name) || blind), || {
            format!("{object} was left, untold:\n{words}")
        })?;
    }
    let why = cheaper.map(|other| format!(": {}", other.reason));
    Ok(format!(
        "costs {} checks, lost {lost}, left {}{}",
        costs.len(),
        left.removed.len(),
        why.unwrap_or_default()
    ))
}

/// Repeats `preflight` until `so` accepts its report.
async fn until(
    cluster: &Cluster,
    suites: &Suites,
    so: impl Fn(&Json) -> bool,
) -> Result<Json, String> {
    let limit = Duration::from_secs(20);
    let polled = asking::until("preflight", limit, async || {
        let said = preflight(cluster, suites).await?;
        Ok(match so(&said) {
            true => Condition::Done(said),
            false => Condition::NotYet(format!("{:?}", lacking(&said))),
        })
    });
    polled.await
}

/// Each denied access with the checks that it costs, and whether it leaves objects behind.
fn lacking(said: &Json) -> BTreeMap<String, (Vec<String>, bool)> {
    let permissions = said["permissions"].as_array().into_iter().flatten();
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    permissions
        .filter(|permission| permission["allowed"] != true)
        .map(|permission| {
            let costs = permission["costs"].as_array().into_iter().flatten();
            let costs = costs.map(text).collect();
            (
                text(&permission["access"]),
                (costs, permission["leaves"] == true),
            )
        })
        .collect()
}

/// The claim and case of a check's id.
fn claim(check: &str) -> &str {
    check.split('[').next().unwrap_or_default()
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Outcome {
    match holds {
        true => Ok(()),
        false => Err(why()),
    }
}
