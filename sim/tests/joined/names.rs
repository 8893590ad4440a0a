//! Whose names nodes may take, and whether they are reached.

use hybrid_sim::{FaultPlan, JoinError, JoinOptions, Topology, join};

use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_a_simulator_that_lives_are_not_taken_over() {
    let name = "nodes_of_a_simulator_that_lives_are_not_taken_over";
    let Some(scene) = Scene::begin(name, "names", &[]).await else {
        return;
    };
    scene.joined.reached().await.expect("kubelets are reached");
    let options = || JoinOptions {
        topology: Topology::hybrid(),
        faults: FaultPlan::default(),
        seed: 7,
        speed: 20.0,
        prefix: scene.node(""),
    };
    let refused = join(scene.client.clone(), options()).await.err();
    let Some(JoinError::Alive { node, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(node, scene.node("linux-a"));
    scene.joined.reached().await.expect("they are left alone");
    scene.end().await;
}
