//! Which tokens the server accepts.

use super::Scene;

impl Scene {
    /// The code of the answer to a client with this token.
    async fn code_by(&self, token: &str) -> u16 {
        let token = format!("Bearer {token}");
        self.ask("GET", "/version", [("authorization", &token)], "")
            .await
            .0
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
    // No object contains it either
    assert!(!format!("{:?}", one.server.objects()).contains(&token));
}
