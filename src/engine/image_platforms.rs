//! Whether registries have the images of a run for the builds of its nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use winconform_core::config::{Image, Profile};
use winconform_core::facts::{Os, Pool, PoolName};
use winconform_core::plan::{Offer, Pulls, Unoffered};
use winconform_core::record::Event;

use crate::engine::record::journal::Journal;
use crate::transport::{Env, platforms};

/// How long a registry may take to answer about one image during a run, which does not wait for it.
const BESIDE: Duration = Duration::from_secs(5);

/// Puts on record the images that registries certainly do not have for the Windows nodes that are to run
/// them. Without an answer nothing is recorded, and no verdict depends on any of it. With a profile that
/// observes nothing outside the cluster, no registry is asked.
pub(crate) async fn note_unoffered(
    env: Env,
    journal: Journal,
    profile: Profile,
    mut pulls: BTreeMap<PoolName, Pulls>,
    pools: BTreeMap<PoolName, Pool>,
) {
    if profile.is_air_gapped() {
        return;
    }
    pulls.retain(|name, _| pools.get(name).is_some_and(|pool| pool.os == Os::Windows));
    let offers = image_platforms(&env, BESIDE, &pulls, &pools).await;
    for (name, pulled) in &pulls {
        for (image, fixtures) in &pulled.images {
            let offer = offers.get(&(name.clone(), image.clone()));
            let unoffered = offer.zip(pools.get(name)).and_then(|(offer, pool)| {
                Unoffered::from_offer(image, (name, pool), fixtures, offer)
            });
            if let Some(unoffered) = unoffered {
                // The journal reports a failed write itself
                let _ = journal.write(Event::Unoffered(unoffered));
            }
        }
    }
}

/// What registries offer of each image to each pool that pulls it, as seen from this machine: nodes may have
/// an image already, or get it another way. One image may take as long as `limit`.
pub async fn image_platforms(
    env: &Env,
    limit: Duration,
    pulls: &BTreeMap<PoolName, Pulls>,
    pools: &BTreeMap<PoolName, Pool>,
) -> BTreeMap<(PoolName, String), Offer> {
    let images: BTreeSet<_> = pulls.values().flat_map(|pull| pull.images.keys()).collect();
    let images: Vec<_> = images.into_iter().cloned().collect();
    let answers = platforms(env, &images, limit).await;
    let answers: BTreeMap<_, _> = images.into_iter().zip(answers).collect();
    let mut offers = BTreeMap::new();
    for (name, pulled) in pulls {
        let Some(pool) = pools.get(name) else {
            continue;
        };
        for (image, fixtures) in &pulled.images {
            // HostProcess containers use the host's files, so that any build will do
            let mut fixtures = fixtures.iter();
            let any_build = fixtures.all(|name| name.image() == Some(Image::HostProcess));
            let offer = match &answers[image] {
                Ok(platforms) => Offer::for_pool(platforms, pool, any_build),
                Err(why) => Offer::Unknown(why.clone()),
            };
            offers.insert((name.clone(), image.clone()), offer);
        }
    }
    offers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::record::journal::tests::of_run;
    use crate::transport::registry;
    use winconform_core::facts::WindowsBuild;
    use winconform_core::fixture::FixtureName;
    use winconform_core::record::RunView;

    /// The record after the registries were asked for these images, each in a pool.
    async fn noted(wanted: &[(Option<WindowsBuild>, &str, FixtureName)]) -> RunView {
        noted_with(Profile::Default, wanted).await
    }

    async fn noted_with(
        profile: Profile,
        wanted: &[(Option<WindowsBuild>, &str, FixtureName)],
    ) -> RunView {
        let (mut pulls, mut pools) = (BTreeMap::<_, Pulls>::new(), BTreeMap::new());
        for (build, image, fixture) in wanted {
            let (name, os) = match build {
                Some(build) => (PoolName::windows(*build), Os::Windows),
                None => (PoolName::linux(), Os::Linux),
            };
            let pool = Pool {
                os,
                build: *build,
                nodes: vec!["a".to_owned()],
                spared: Vec::new(),
                excluded: Vec::new(),
                unusable: Vec::new(),
                taints: Vec::new(),
                handlers: None,
                runtimes: BTreeSet::new(),
            };
            pools.insert(name.clone(), pool);
            let images = &mut pulls.entry(name).or_default().images;
            let fixtures = images.entry((*image).to_owned()).or_default();
            fixtures.insert(*fixture);
        }
        let journal = of_run();
        note_unoffered(Env::system(), journal.clone(), profile, pulls, pools).await;
        journal.view().expect("a record")
    }

    #[tokio::test]
    async fn what_a_registry_surely_lacks_for_windows_is_on_record() {
        const OLD: Option<WindowsBuild> = Some(WindowsBuild::SERVER_2019);
        const NEW: Option<WindowsBuild> = Some(WindowsBuild::SERVER_2022);
        let (host, seen) = registry().await;
        // For Windows Server 2022 alone
        let core = format!("{host}/windows/servercore:ltsc2022");
        let images = ["private:1", "e2e/agnhost:2.66.1"];
        let [private, agnhost] = images.map(|image| format!("{host}/{image}"));
        let view = noted(&[
            (OLD, &core, FixtureName::WIN_WEBSERVER),
            (OLD, &core, FixtureName::CHURN),
            (NEW, &core, FixtureName::WIN_WEBSERVER),
            (NEW, &private, FixtureName::IIS),
            (None, &agnhost, FixtureName::LINUX_SERVER),
        ])
        .await;
        let unoffered = Unoffered {
            image: core.clone(),
            pool: PoolName::windows(WindowsBuild::SERVER_2019),
            build: OLD,
            fixtures: [FixtureName::WIN_WEBSERVER, FixtureName::CHURN].into(),
            has: vec!["windows 10.0.20348".to_owned()],
        };
        assert_eq!(view.unoffered, [unoffered]);
        let seen = seen.lock().expect("not poisoned").clone();
        // Once for all pools, and for Windows alone
        let of = |part: &str| seen.iter().filter(|line| line.contains(part)).count();
        assert_eq!((of("servercore"), of("agnhost")), (1, 0), "{seen:?}");
    }

    #[tokio::test]
    async fn with_no_way_out_no_registry_is_asked() {
        let (host, seen) = registry().await;
        let old = Some(WindowsBuild::SERVER_2019);
        let core = format!("{host}/windows/servercore:ltsc2022");
        for (profile, asks) in [(Profile::AirGapped, false), (Profile::Strict, true)] {
            let view = noted_with(profile, &[(old, &core, FixtureName::WIN_WEBSERVER)]).await;
            assert_eq!(view.unoffered.len(), usize::from(asks), "{profile}");
            let seen = seen.lock().expect("not poisoned");
            assert_eq!(!seen.is_empty(), asks, "{profile}");
        }
    }

    #[tokio::test]
    async fn without_an_answer_nothing_is_said() {
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let host = closed.expect("a port").local_addr().expect("an address");
        let build = Some(WindowsBuild::SERVER_2022);
        let image = format!("{host}/windows/servercore:ltsc2022");
        let view = noted(&[(build, &image, FixtureName::WIN_WEBSERVER)]).await;
        assert_eq!(view.unoffered, []);
        assert_eq!(noted(&[]).await.unoffered, []);
    }
}
