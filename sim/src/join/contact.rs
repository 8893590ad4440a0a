//! Whether the API server still answers.

use std::error::Error;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::clock;

/// How often it is asked.
const EVERY: Duration = Duration::from_secs(5);

/// How often while it does not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// How long it may take.
const ANSWERING: Duration = Duration::from_secs(3);

/// The API server does not answer, or somebody before it answers that it does not (5xx).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When it was first asked in vain, in whole seconds.
    pub since: Timestamp,
    /// What came of that.
    pub why: String,
}

/// Asks for ever, and tells each silence once, when it was asked in vain twice, and its end.
pub(super) async fn follow(client: Client, told: watch::Sender<Option<Silence>>) {
    let mut first = None;
    loop {
        clock::elapse(if first.is_none() { EVERY } else { AGAIN }).await;
        let at = clock::now();
        match ask(&client).await {
            Ok(()) => {
                first = None;
                told.send_if_modified(|silence| silence.take().is_some());
            }
            Err(why) => match &first {
                None => first = Some(Silence { since: at, why }),
                Some(silence) => {
                    told.send_if_modified(|known| {
                        let news = known.is_none();
                        known.get_or_insert_with(|| silence.clone());
                        news
                    });
                }
            },
        }
    }
}

/// Any answer of its own will do, also a refusal.
async fn ask(client: &Client) -> Result<(), String> {
    match timeout(ANSWERING, client.apiserver_version()).await {
        Ok(Err(kube::Error::Api(status))) if (400..500).contains(&status.code) => Ok(()),
        Ok(Err(kube::Error::Api(status))) => {
            Err(format!("status {}: {}", status.code, status.message))
        }
        Ok(Err(error)) => Err(causes(&error)),
        Err(_) => Err(format!("no answer within {} s", ANSWERING.as_secs())),
        Ok(Ok(_)) => Ok(()),
    }
}

/// The last cause says most: `Connection refused`.
fn causes(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::json;
    use tokio::time::Instant;
    use tower::service_fn;

    use super::*;
    use crate::lock::locked;

    /// Follows a server that gives each answer once and the last for ever; gives what was told, and
    /// after how many seconds.
    async fn told(answers: &[Option<u16>], changes: usize) -> Vec<(u64, Option<String>)> {
        let mut answers = answers.to_vec();
        answers.reverse();
        let answers = Arc::new(Mutex::new(answers));
        let server = service_fn(move |_: Request<Body>| {
            let mut answers = locked(&answers);
            let last = answers.len() == 1;
            let answer = if last {
                answers[0]
            } else {
                answers.pop().flatten()
            };
            async move {
                let code = answer.ok_or(io::ErrorKind::ConnectionRefused)?;
                // Beside the version what a refusal is read for
                let said = json!({
                    "code": code, "major": "1", "minor": "37", "gitVersion": "v1.37.0", "gitCommit": "",
                    "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
                });
                let mut response = Response::new(Body::from(said.to_string().into_bytes()));
                *response.status_mut() = StatusCode::from_u16(code).expect("a status");
                Ok::<_, io::Error>(response)
            }
        });
        let (tells, mut hears) = watch::channel(None);
        let began = Instant::now();
        let following = tokio::spawn(follow(Client::new(server, "default"), tells));
        let mut news_told = Vec::new();
        for _ in 0..changes {
            let news = timeout(Duration::from_mins(5), hears.changed()).await;
            news.expect("there is news").expect("it goes on");
            let why = hears.borrow_and_update().clone().map(|silence| silence.why);
            news_told.push((began.elapsed().as_secs(), why));
        }
        following.abort();
        news_told
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_and_its_end_are_told_once_each() {
        let refused = Some("connection refused".to_owned());
        assert_eq!(
            told(&[Some(200), None, None, None, Some(200), None, None], 3).await,
            [(11, refused.clone()), (13, None), (19, refused)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_that_is_lost_is_no_silence_and_a_refusal_is_an_answer() {
        let told = told(&[None, Some(200), None, Some(403), Some(503)], 1).await;
        let [(after, Some(why))] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert!(*after == 18 && why.starts_with("status 503"), "{told:?}");
    }
}
