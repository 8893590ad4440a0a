//! Which node names a simulator may take, and whether the API server reaches the nodes.

use hybrid_sim::{JoinError, Topology, join};

use super::scene::{Scene, options};

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_a_simulator_that_lives_are_not_taken_over() {
    let name = "nodes_of_a_simulator_that_lives_are_not_taken_over";
    let Some(scene) = Scene::begin(name, "names", &[]).await else {
        return;
    };
    scene.joined.reached().await.expect("kubelets are reached");
    let options = options(Topology::hybrid(), &[], scene.node(""));
    let refused = join(scene.client.clone(), options).await.err();
    let Some(JoinError::Alive(node, _)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(node, scene.node("linux-a"));
    scene.joined.reached().await.expect("they are left alone");
    scene.end().await;
}
