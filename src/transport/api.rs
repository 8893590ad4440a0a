//! Requests to the API server, in raw JSON, sent again while that may help.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, timeout_at};
use winconform_core::config::{Durations, Limits};
use winconform_core::method::{
    ApiPath, ApiReply, ApiRequest, ErrorKind, ObservationError, Result, Verb,
};

use super::attempt::{Failure, Form, send_once};
use super::counts::Counts;
use super::env::Env;
use super::outage::Outage;
use super::pace::{Pace, pause};
use super::staleness::Fresh;

/// The API server of one cluster. Clones share their counts.
///
/// Every request can be sent twice: reads, server-side applies, dry runs and deletions are idempotent, and
/// the server answers 409 to a second creation, which the caller reads. This type never evicts a pod.
/// Dropping a future ends its request; no task outlives it.
///
/// While the run's Lease may have expired, it creates and changes nothing. It still deletes: a deletion names
/// its object by uid, which cannot be another run's.
#[derive(Clone)]
pub struct Api {
    env: Env,
    pub(crate) client: Client,
    pub(crate) durations: Arc<Durations>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) execs: Arc<Counts>,
    fresh: Arc<Fresh>,
    pub(crate) outage: Arc<Outage>,
    /// Whether this clone renews the Lease that the writes of all other clones depend on.
    keeps_lease: bool,
}

impl Api {
    /// The API server that `client` speaks to. The client's own retry must be off.
    pub fn new(env: Env, client: Client, durations: Durations, limits: Limits) -> Self {
        Self {
            env,
            client,
            durations: Arc::new(durations),
            limits: Arc::new(limits),
            counts: Arc::default(),
            execs: Arc::default(),
            fresh: Arc::default(),
            outage: Arc::default(),
            keeps_lease: false,
        }
    }

    /// A clone for the task that renews the run's Lease: it writes without waiting for the Lease.
    pub(crate) fn of_lease(&self) -> Self {
        Self {
            keeps_lease: true,
            ..self.clone()
        }
    }

    /// Sends a request. Sends it again while the transport fails or a list is older than an earlier one: for
    /// `api_in_all` or twice the answer's limit, whichever is longer; while the whole server is away, for
    /// `outage`. A status below 500, except 401 and 429, is a reply, whatever it says.
    pub async fn send(&self, request: &ApiRequest) -> Result<ApiReply> {
        let patience = self.durations.api_in_all.max(self.answer(request) * 2);
        self.send_as(request, Form::Json, patience, true).await
    }

    /// Like [`Api::send`], but `patience` limits all tries, also while the whole server is away.
    pub async fn send_within(&self, request: &ApiRequest, patience: Duration) -> Result<ApiReply> {
        self.send_as(request, Form::Json, patience, false).await
    }

    /// Reads a path that answers with text, such as `/metrics`. The reply's body is a JSON string for a 200,
    /// and the server's JSON for any other status.
    pub async fn text(&self, path: &str) -> Result<ApiReply> {
        let request = ApiRequest::get(path);
        let patience = self.durations.api_in_all;
        self.send_as(&request, Form::Text, patience, true).await
    }

    async fn send_as(
        &self,
        request: &ApiRequest,
        form: Form,
        patience: Duration,
        mut outlasts: bool,
    ) -> Result<ApiReply> {
        let name = name(request);
        let begun = Instant::now();
        let mut deadline = begun + patience;
        let mut pace = Pace::new(self.durations.transport_pause);
        self.counts.sent(&name);
        loop {
            if is_write(request) && !self.keeps_lease {
                let since = Instant::now();
                self.may_write(&name).await?;
                deadline += since.elapsed();
            }
            let sent = timeout_at(deadline, self.send_once_as(request, form)).await;
            let (error, wait, passes, away) = match sent {
                Ok(Ok(reply)) if reply.status == 401 => {
                    let passes = !is_denied(&reply) && self.may_be_accepted(begun);
                    (unauthenticated(&name, &reply), pace.step(), passes, false)
                }
                Ok(Ok(reply)) => {
                    self.outage.accepted();
                    return Ok(reply);
                }
                Ok(Err(failure)) => {
                    let wait = self.pause_after(failure.retry_after(), &mut pace);
                    let (passes, away) = (failure.may_pass(), failure.is_away());
                    (failure.error(&name), wait, passes, away)
                }
                Err(_) => {
                    let error = Failure::NoAnswer(patience).error(&name);
                    (error, Duration::ZERO, true, true)
                }
            };
            if away {
                self.outage.met();
            }
            let next = Instant::now() + wait;
            if passes && next < deadline {
                pause(wait).await;
            } else if outlasts && away {
                // `outlasted` distinguishes an outage from a single path that goes without an answer
                let Some(was_away) = self.outlasted(begun).await else {
                    return Err(error);
                };
                outlasts = false;
                deadline = Instant::now()
                    + match was_away {
                        true => patience,
                        false => self.answer(request),
                    };
            } else {
                return Err(error);
            }
            self.counts.resent(&name);
        }
    }

    /// Waits while the whole server is away, at most until `outage` after `since`. Returns whether it was
    /// away at all, or `None` if it is still away.
    pub(crate) async fn outlasted(&self, since: Instant) -> Option<bool> {
        let request = ApiRequest::get("/version");
        let mut pace = Pace::new(self.durations.transport_pause);
        let mut was_away = false;
        self.counts.sent(&name(&request));
        loop {
            match self.send_once(&request).await {
                Err(failure) if failure.is_away() => was_away = true,
                Ok(_) | Err(_) => return Some(was_away),
            }
            let wait = pace.step();
            if Instant::now() + wait >= since + self.durations.outage {
                return None;
            }
            pause(wait).await;
        }
    }

    /// Whether requests met an outage after `since` that ends in time; waits for its end.
    pub(crate) async fn is_back(&self, since: Instant) -> bool {
        let met = self.outage.last_met().is_some_and(|met| met >= since);
        met && self.outlasted(since).await.is_some()
    }

    /// Whether the server may accept a refused credential again: until it has refused it for `refused`,
    /// counted from `since` and from the first refusal of any request.
    pub(crate) fn may_be_accepted(&self, since: Instant) -> bool {
        self.outage.refused().max(since.elapsed()) < self.durations.refused
    }

    /// Waits while the run's Lease may have expired, at most for `outage`.
    pub(crate) async fn may_write(&self, name: &str) -> Result<()> {
        if self.outage.may_write(self.durations.outage).await {
            return Ok(());
        }
        let detail = format!("{name}: not sent, since this run no longer holds its Lease");
        Err(ErrorKind::ApiUnavailable.error(detail))
    }

    /// The number of requests by verb and kind; an entry `resent …` counts their repetitions apart.
    pub fn counts(&self) -> Vec<(String, u64)> {
        self.counts.snapshot()
    }

    /// The number of execs by pod name; with entries `resent …` as in [`Api::counts`].
    pub fn execs(&self) -> Vec<(String, u64)> {
        self.execs.snapshot()
    }

    /// The time limits of all requests.
    pub fn durations(&self) -> &Durations {
        &self.durations
    }

    /// The bounds on sizes and tries.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The client underneath, for watches.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request once, uncounted.
    pub(crate) async fn send_once(&self, request: &ApiRequest) -> Result<ApiReply, Failure> {
        self.send_once_as(request, Form::Json).await
    }

    async fn send_once_as(&self, request: &ApiRequest, form: Form) -> Result<ApiReply, Failure> {
        let floor = self.fresh.floor(&request.path);
        let reply = send_once(self, request, form, self.answer(request)).await?;
        self.fresh.check(&request.path, floor, &reply.body)?;
        Ok(reply)
    }

    /// How long the head of the answer to a request may take.
    fn answer(&self, request: &ApiRequest) -> Duration {
        match (is_dry_run(request), is_write(request)) {
            (true, _) => self.durations.dry_run_answer,
            (_, true) => self.durations.write_answer,
            (false, false) => self.durations.api_answer,
        }
    }

    /// The pause after a failure: as the server asks, but at least the next step and at most `api_answer`.
    pub(crate) fn pause_after(&self, after: Option<Duration>, pace: &mut Pace) -> Duration {
        let step = pace.step();
        match after {
            Some(after) => after.clamp(step, self.durations.api_answer.max(step)),
            None => step,
        }
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

fn is_dry_run(request: &ApiRequest) -> bool {
    request.path.contains("dryRun=All")
}

/// Whether a request creates or changes an object. A review does neither, and a deletion answers soon.
fn is_write(request: &ApiRequest) -> bool {
    let changes = match request.verb {
        Verb::Create | Verb::Apply | Verb::Patch | Verb::Replace => true,
        Verb::Get | Verb::Delete => false,
    };
    let is_review = request.path.starts_with("/apis/authorization.k8s.io/");
    changes && !is_review && !is_dry_run(request)
}

/// Whether a 401 comes from an admission policy or webhook: `… denied request`, `… denied the request`.
fn is_denied(reply: &ApiReply) -> bool {
    reply.message().contains("denied")
}

/// The error for a credential that the server accepted when the run began and now refuses.
fn unauthenticated(name: &str, reply: &ApiReply) -> ObservationError {
    let message = reply.message();
    ErrorKind::Unauthenticated.error(format!(
            "{name}: the server refused the credential (status 401: {message}); a token may have expired"
        ),
    )
}

fn name(request: &ApiRequest) -> String {
    let verb: &str = request.verb.into();
    format!("{verb} {}", ApiPath::parse(&request.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::sync::Mutex;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    /// What the fake server does with one request.
    #[derive(Clone)]
    enum Answer {
        Status(u16, &'static str),
        After(u16, &'static str),
        Broken,
        Silence,
        SilentBody,
        /// The inner answer before this time, and a pod afterwards.
        Until(Instant, Box<Self>),
        /// A pod, after this delay.
        Late(Duration),
    }
    use Answer::{After, Broken, Late, Silence, SilentBody, Status, Until};

    /// An API whose fake server gives these answers in turn, and repeats the last one.
    fn api(answers: &[Answer]) -> (Api, Arc<Mutex<Vec<String>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let answers = Arc::new(Mutex::new(VecDeque::from(answers.to_vec())));
        let service = tower::service_fn(move |request: Request<Body>| {
            let line = format!("{} {}", request.method(), request.uri());
            log.lock().expect("not poisoned").push(line);
            let mut answers = answers.lock().expect("not poisoned");
            let answer = match answers.len() {
                1 => answers[0].clone(),
                _ => answers.pop_front().expect("there is a last answer"),
            };
            async move { act(answer).await }
        });
        let client = Client::new(service, "default");
        let (durations, limits) = (Durations::default(), Limits::default());
        (Api::new(Env::system(), client, durations, limits), seen)
    }

    type Streamed = http_body_util::Either<
        http_body_util::Full<bytes::Bytes>,
        http_body_util::StreamBody<
            futures::stream::Pending<Result<hyper::body::Frame<bytes::Bytes>, Infallible>>,
        >,
    >;

    async fn act(mut answer: Answer) -> Result<Response<Streamed>, std::io::Error> {
        if let Until(at, meanwhile) = answer {
            let is_over = Instant::now() >= at;
            answer = if is_over { OK } else { *meanwhile };
        }
        let full = |text: &'static str| Streamed::Left(text.into());
        let response = Response::builder();
        let response = match answer {
            Status(status, body) => response.status(status).body(full(body)),
            After(status, seconds) => response
                .status(status)
                .header("Retry-After", seconds)
                .body(full("{}")),
            Broken => return Err(std::io::ErrorKind::ConnectionReset.into()),
            Silence | Until(..) => std::future::pending().await,
            Late(late) => {
                pause(late).await;
                response.body(full("{}"))
            }
            SilentBody => {
                let body = http_body_util::StreamBody::new(futures::stream::pending());
                response.body(Streamed::Right(body))
            }
        };
        Ok(response.expect("a response"))
    }

    fn request(verb: Verb) -> ApiRequest {
        ApiRequest {
            verb,
            path: "/api/v1/namespaces/a/pods".to_owned(),
            body: Some(json!({})),
        }
    }

    async fn get(answers: &[Answer]) -> (Result<ApiReply>, Vec<(String, u64)>, Duration) {
        let (api, _) = api(answers);
        let begun = Instant::now();
        let sent = api.send(&request(Verb::Get)).await;
        (sent, api.counts(), begun.elapsed())
    }

    fn counts(of: &[(&str, u64)]) -> Vec<(String, u64)> {
        of.iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    }

    const OK: Answer = Status(200, r#"{"kind":"Pod"}"#);

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_sent_again_and_counted_apart() {
        let html = Status(502, "<html>bad gateway</html>");
        let cut = Status(200, r#"{"kind":"#);
        let status = Status(500, r#"{"message":"etcd"}"#);
        let (sent, counted, _) = get(&[status, html, cut, Broken, OK]).await;
        assert_eq!(sent.expect("a reply").body, json!({"kind": "Pod"}));
        assert_eq!(counted, counts(&[("get pods", 1), ("resent get pods", 4)]));
        let (_, counted, _) = get(&[OK]).await;
        assert_eq!(counted, counts(&[("get pods", 1)]));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_kept_to_within_reason() {
        let (_, _, took) = get(&[After(429, "3"), OK]).await;
        assert_eq!(took, Duration::from_secs(3));
        let (_, _, took) = get(&[After(503, "86400"), OK]).await;
        assert_eq!(took, Durations::default().api_answer);
        let (sent, _, took) = get(&[After(429, "nonsense"), OK]).await;
        assert!(sent.is_ok() && took == Durations::default().transport_pause);
    }

    #[tokio::test(start_paused = true)]
    async fn patience_ends_with_the_right_trouble() {
        let all = Durations::default().api_in_all;
        let (throttled, away) = (ErrorKind::Throttled, ErrorKind::ApiUnavailable);
        let etcd = Status(500, r#"{"message":"etcd"}"#);
        for (answer, kind, words) in [
            (After(429, "1"), throttled, "get pods: status 429"),
            (etcd, away, "status 500: etcd"),
            (Status(502, "<html>"), away, "status 502: <html>"),
            (Broken, away, "connection reset"),
            (Silence, away, "no answer within"),
            (SilentBody, away, "within"),
        ] {
            let (sent, _, took) = get(&[answer]).await;
            let error = sent.expect_err("an error");
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.detail.contains(words), "{error}");
            // Where nothing answers, the transport asks whether the whole server is away, and waits for it
            let most = match words.contains("429") || words.contains("500") {
                true => all,
                false => Durations::default().outage + Durations::default().api_body,
            };
            assert!(took <= most && took > all / 2, "{error} after {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_below_500_are_replies() {
        for status in [400, 403, 404, 409, 410, 422] {
            let (sent, counted, _) = get(&[Status(status, "{}")]).await;
            assert_eq!(sent.expect("a reply").status, status);
            assert_eq!(counted, counts(&[("get pods", 1)]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_path_that_is_not_served_is_a_reply_and_another_404_in_text_is_not() {
        let (sent, counted, _) = get(&[Status(404, "404 page not found\n")]).await;
        assert_eq!(sent.expect("a reply").status, 404);
        assert_eq!(counted, counts(&[("get pods", 1)]));
        let (sent, _, _) = get(&[Status(404, "<html>no such host</html>")]).await;
        assert!(sent.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_for_two_minutes_is_waited_for() {
        for lasts in [20, 60, 90, 120].map(Duration::from_secs) {
            for meanwhile in [Silence, Broken, Status(502, "<html>"), SilentBody] {
                let away = Until(Instant::now() + lasts, Box::new(meanwhile));
                let (sent, _, took) = get(&[away]).await;
                assert!(sent.is_ok(), "{lasts:?}: {sent:?}");
                let most = lasts + Duration::from_secs(24);
                assert!(took < most, "{lasts:?}: {took:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_write_is_sent_once() {
        for verb in [Verb::Apply, Verb::Create, Verb::Patch, Verb::Replace] {
            let (api, seen) = api(&[Late(Duration::from_secs(59))]);
            api.send(&request(verb)).await.expect("a reply");
            assert_eq!(seen.lock().expect("not poisoned").len(), 1, "{verb:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_credential_that_is_refused_for_a_while_is_sent_again() {
        let refused = Status(401, r#"{"message":"Unauthorized"}"#);
        let until = Instant::now() + Duration::from_secs(4);
        let (sent, _, took) = get(&[Until(until, Box::new(refused.clone()))]).await;
        assert!(sent.is_ok(), "{sent:?}");
        assert!(took < Duration::from_secs(8), "{took:?}");
        // All requests together wait only once for a credential that stays refused
        let (api, _) = api(&[refused]);
        let begun = Instant::now();
        for _ in 0..3 {
            let error = api.send(&request(Verb::Get)).await.expect_err("an error");
            assert_eq!(error.kind, ErrorKind::Unauthenticated);
            assert!(error.detail.contains("401: Unauthorized"), "{error}");
        }
        let waited = begun.elapsed();
        assert!(waited > Duration::from_secs(20) && waited < Duration::from_secs(40));
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_that_refuses_with_401_is_trouble_at_once() {
        let denied = r#"{"message":"ValidatingAdmissionPolicy 'p' denied request: no"}"#;
        let (sent, counted, _) = get(&[Status(401, denied)]).await;
        let error = sent.expect_err("an error");
        assert_eq!(error.kind, ErrorKind::Unauthenticated);
        assert_eq!(counted, counts(&[("get pods", 1)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_creation_sent_twice_shows_its_conflict() {
        let (api, _) = api(&[Broken, Status(409, r#"{"reason":"AlreadyExists"}"#)]);
        let sent = api.send(&request(Verb::Create)).await;
        assert_eq!(sent.expect("a reply").status, 409);
    }

    #[tokio::test(start_paused = true)]
    async fn too_large_a_body_is_trouble_at_once() {
        let (api, _) = api(&[OK]);
        let limits = Limits {
            api_body: 4,
            ..Limits::default()
        };
        let api = Api::new(Env::system(), api.client, Durations::default(), limits);
        let error = api.send(&request(Verb::Get)).await.expect_err("too large");
        assert_eq!(error.kind, ErrorKind::OutputTruncated);
        assert_eq!(api.counts(), counts(&[("get pods", 1)]));
    }

    #[tokio::test(start_paused = true)]
    async fn text_is_an_answer_only_where_it_was_asked_for() {
        let metrics = Status(200, "# HELP x\nx 1\n");
        let (api, _) = api(&[Broken, metrics]);
        let reply = api.text("/metrics").await.expect("a reply");
        assert_eq!((reply.status, reply.body), (200, json!("# HELP x\nx 1\n")));
        let sent = counts(&[("get metrics", 1), ("resent get metrics", 1)]);
        assert_eq!(api.counts(), sent);
        assert!(api.send(&ApiRequest::get("/metrics")).await.is_err());
        let (api, _) = self::api(&[Status(403, r#"{"message":"no"}"#)]);
        let reply = api.text("/metrics").await.expect("a reply");
        assert_eq!((reply.status, &reply.body["message"]), (403, &json!("no")));
    }

    #[tokio::test(start_paused = true)]
    async fn verbs_are_methods() {
        let (api, seen) = api(&[OK]);
        for verb in [
            Verb::Get,
            Verb::Create,
            Verb::Apply,
            Verb::Replace,
            Verb::Delete,
        ] {
            api.send(&request(verb)).await.expect("a reply");
        }
        let path = "/api/v1/namespaces/a/pods";
        let lines = seen.lock().expect("not poisoned").clone();
        let apply = format!("PATCH {path}?fieldManager=winconform&force=true");
        let put = format!("PUT {path}");
        assert_eq!(lines[1..4], [format!("POST {path}"), apply, put]);
    }

    #[test]
    fn futures_may_move_between_threads() {
        fn is_send<T: Send>(_: &T) {}
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let _inside = runtime.enter();
        let (api, _) = api(&[OK]);
        is_send(&api.send(&request(Verb::Get)));
        let pod = crate::transport::PodRef {
            namespace: String::new(),
            name: String::new(),
            container: String::new(),
        };
        let exec = winconform_core::command::Command::WhoAmI
            .on(winconform_core::facts::Os::Linux)
            .expect("of Linux");
        is_send(&api.exec(&pod, &exec));
    }
}
