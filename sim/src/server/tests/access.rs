//! Who is let in.

use http::{Method, Request};
use kube::client::Body;
use serde_json::json;

use super::Scene;

impl Scene {
    /// What is answered to who shows a token.
    async fn code_by(&self, token: &str) -> u16 {
        let request = Request::builder()
            .method(Method::GET)
            .uri("/version")
            .header("authorization", format!("Bearer {token}"));
        let request = request.body(Body::empty()).expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        response.status().as_u16()
    }
}

#[tokio::test]
async fn the_administrator_alone_is_let_in_by_a_token_of_no_seed() {
    let (one, other) = (Scene::new(), Scene::new());
    let token = one.server.shared.state().token.as_str().to_owned();
    assert!(token.len() >= 32, "{token}");
    assert_eq!(one.code_by(&token).await, 200);
    for guess in [other.code_by(&token).await, one.code_by("").await] {
        assert_eq!(guess, 401);
    }
    // Nor does any object hold it
    assert!(!format!("{:?}", one.server.objects()).contains(&token));
}

#[tokio::test]
async fn a_review_says_that_the_administrator_may() {
    let scene = Scene::new();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked = json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}});
    let told = scene.create(path, asked).await;
    assert_eq!(told["status"]["allowed"], true);
}
