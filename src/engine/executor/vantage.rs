//! Exec sessions: one exec serves many assertions from one vantage point; outside, winconform asks itself.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use winconform_core::command::{Command, Curl, HttpSession, Token};
use winconform_core::config::{Outside, Target as OutsideTarget};
use winconform_core::facts::Os;
use winconform_core::method::ping::session;
use winconform_core::method::{
    ErrorKind, ExecReply, Host, HttpGet, HttpReply, ObservationError, PingReply, Result,
    VantageKey, curl,
};
use winconform_core::record::{Event, FoundCurl};

use crate::engine::fixtures::manifest::prober;
use crate::engine::record::journal::Journal;
use crate::transport::{Api, PodRef, fetch, locked};

/// A name that does not exist.
const NOWHERE: &str = "winconform.invalid";

/// The vantage points of a run, with the curl found at each. Clones share these.
#[derive(Clone)]
pub(crate) struct Vantages {
    api: Api,
    run: String,
    outside: Arc<Outside>,
    journal: Journal,
    curls: Arc<Mutex<BTreeMap<VantageKey, Curl>>>,
    /// The last request from outside that the cluster answered, by whether it was to a node's address.
    answered: Arc<Mutex<BTreeMap<bool, HttpGet>>>,
}

/// What each target of an exec session answered.
pub(crate) type SessionReplies = (Vec<Result<HttpReply>>, Vec<PingReply>);

/// The pod of one exec session, and what its execs have in common.
struct Asker<'a> {
    from: &'a VantageKey,
    pod: PodRef,
    /// The OS whose shell pings.
    os: Option<Os>,
    token: Token,
}

impl Vantages {
    pub(crate) fn new(api: Api, run: String, outside: Arc<Outside>, journal: Journal) -> Self {
        Self {
            api,
            run,
            outside,
            journal,
            curls: Arc::default(),
            answered: Arc::default(),
        }
    }

    /// Gets and pings every target once from a vantage point. Gets with too much output for one exec are
    /// spread over several; a single get with too much output has an error of its own.
    pub(crate) async fn exec_session(
        &self,
        from: &VantageKey,
        gets: &[HttpGet],
        pings: &[IpAddr],
    ) -> Result<SessionReplies> {
        let durations = self.api.durations();
        let Some(pod) = prober(&self.run, from) else {
            let got = fetch(self.api.env(), gets, self.outside.proxy.as_ref(), durations).await;
            return Ok((got, Vec::new()));
        };
        let asker = Asker {
            from,
            pod,
            os: from.kind.shell(),
            // It divides the answers, so no target may be able to foresee it
            token: Token::random(self.api.env().random()),
        };
        let mut ahead = VecDeque::new();
        let mut rest = gets;
        while !rest.is_empty() {
            let (some, others) = rest.split_at(curl::fitting(rest, self.api.limits().exec_output));
            ahead.push_back(some);
            rest = others;
        }
        let mut unpinged = asker.os.map_or(&[][..], |_| pings);
        let (mut got, mut pinged) = (Vec::new(), Vec::new());
        while !(ahead.is_empty() && unpinged.is_empty()) {
            let some = ahead.pop_front().unwrap_or_default();
            let (few, others) = unpinged.split_at(unpinged.len().min(session::MOST));
            match self.session(&asker, some, few).await {
                Ok((answers, echoes)) => {
                    got.extend(answers.into_iter().map(Ok));
                    pinged.extend(echoes);
                    unpinged = others;
                }
                // A target answers with more than any is expected to
                Err(error) if error.kind == ErrorKind::OutputTruncated => match some {
                    [] => return Err(error),
                    [_] => got.push(Err(error)),
                    some => {
                        let (first, second) = some.split_at(some.len() / 2);
                        ahead.push_front(second);
                        ahead.push_front(first);
                    }
                },
                Err(error) => return Err(error),
            }
        }
        Ok((got, pinged))
    }

    /// Gets and pings by one exec, with the first curl that exists.
    async fn session(
        &self,
        asker: &Asker<'_>,
        gets: &[HttpGet],
        pings: &[IpAddr],
    ) -> Result<(Vec<HttpReply>, Vec<PingReply>)> {
        if gets.is_empty() {
            return self.by_exec(asker, None, gets, pings).await;
        }
        let known = locked(&self.curls).get(asker.from).copied();
        let curls = match &known {
            Some(curl) => std::slice::from_ref(curl),
            None => curl::candidates(asker.from.kind),
        };
        let got = |curl| self.by_exec(asker, Some(curl), gets, pings);
        let (curl, replies) = with_first(asker.from, curls, got).await?;
        let earlier = locked(&self.curls).insert(asker.from.clone(), curl);
        if earlier.is_none() {
            self.note_version(asker, curl).await?;
        }
        Ok(replies)
    }

    /// Records which curl a vantage point has. No verdict depends on it, so that an exec that fails is no error.
    async fn note_version(&self, asker: &Asker<'_>, curl: Curl) -> Result<()> {
        let request = Command::CurlVersion(curl).on(curl.os())?;
        let read = |reply: &ExecReply| Ok(curl::version(&reply.stdout).map(str::to_owned));
        let version = self.api.exec_read(&asker.pod, &request, read).await;
        let found = FoundCurl {
            from: asker.from.clone(),
            program: curl.to_string(),
            version: version.ok().flatten(),
        };
        if let Err(error) = self.journal.write(Event::Curl(found)) {
            tracing::debug!(%error, "record");
        }
        Ok(())
    }

    /// Gets and pings by one exec, with this curl if there is anything to get.
    async fn by_exec(
        &self,
        asker: &Asker<'_>,
        curl: Option<Curl>,
        gets: &[HttpGet],
        pings: &[IpAddr],
    ) -> Result<(Vec<HttpReply>, Vec<PingReply>)> {
        let (pod, token) = (&asker.pod, &asker.token);
        let durations = self.api.durations();
        let http = curl.map(|curl| HttpSession {
            curl,
            gets: gets.to_vec(),
            token: token.clone(),
            connect: durations.http_connect,
            total: durations.http_total,
        });
        let os = asker.os.filter(|_| !pings.is_empty());
        let request = match (http, os) {
            (None, None) => return Ok((Vec::new(), Vec::new())),
            (Some(http), None) => {
                let os = http.curl.os();
                Command::HttpSession(http).on(os)?
            }
            (after, Some(os)) => {
                let (targets, token) = (pings.to_vec(), token.clone());
                let pings = Command::Pings {
                    targets,
                    token,
                    after,
                };
                pings.on(os)?
            }
        };
        let split = |reply: &_| match (curl, os) {
            (None, _) => Ok((Vec::new(), session::split(pings, token, reply)?)),
            (Some(_), None) => Ok((curl::split(gets, token, reply)?, Vec::new())),
            (Some(_), Some(_)) => {
                let (of_curl, of_pings) = session::apart(token, reply)?;
                let got = curl::split(gets, token, &of_curl)?;
                Ok((got, session::split(pings, token, &of_pings)?))
            }
        };
        self.api.exec_read(pod, &request, split).await
    }

    /// Takes note of a request that the cluster itself answered, and whether it was to a node's address.
    pub(crate) fn answers(&self, at_node: bool, get: HttpGet) {
        locked(&self.answered).insert(at_node, get);
    }

    /// Why the replies by which an assertion from outside failed, at a node's address or elsewhere, do not
    /// come from the cluster. The proxy answers so for itself (RFC 9110, 403 and 407; RFC 6585, 429 and 511),
    /// or also for a name that does not exist (RFC 6761, `.invalid`); or nothing that the cluster answered
    /// before is answered now, so that the way to it may be cut on this side. An answer from elsewhere proves
    /// no way to the nodes, which may go through a VPN.
    pub(crate) async fn captive(
        &self,
        from: &VantageKey,
        at_node: bool,
        failed: &[HttpReply],
    ) -> Option<ObservationError> {
        if prober(&self.run, from).is_some() {
            return None;
        }
        let proxy = self.outside.proxy.as_ref();
        let error = |detail| Some(ErrorKind::NoView.error(detail));
        if let Some(proxy) = proxy
            && let Some(said) = self.says_itself(proxy, failed).await
        {
            return error(format!(
                "the proxy {proxy} answers by itself: it says {said}"
            ));
        }
        let answered = locked(&self.answered).clone().into_iter();
        let again = answered.filter(|(other, _)| *other || !at_node);
        let again: Vec<_> = again.map(|(_, get)| get).collect();
        let got = fetch(self.api.env(), &again, proxy, self.api.durations()).await;
        // Something on the way may answer everything alike
        let is_other = |got: &_| failed.iter().any(|failed| got != failed);
        match got.iter().flatten().any(|got| is_page(got) && is_other(got)) {
            true => None,
            false => error(
                "this machine's way to the cluster may be cut (its line, a VPN, a firewall): nothing \
                 that the cluster answered before is answered here now"
                    .to_owned(),
            ),
        }
    }

    /// What a proxy answers by itself, if it does.
    async fn says_itself(&self, proxy: &OutsideTarget, failed: &[HttpReply]) -> Option<String> {
        let nowhere = HttpGet {
            host: Host::Name(NOWHERE.to_owned()),
            port: 80,
            path: "/".to_owned(),
        };
        let got = fetch(
            self.api.env(),
            &[nowhere],
            Some(proxy),
            self.api.durations(),
        )
        .await;
        let mut said = failed.iter().filter_map(status);
        let own = |status: &u16| matches!(status, 403 | 407 | 429 | 511);
        match got.first().and_then(|got| status(got.as_ref().ok()?)) {
            Some(nowhere) if nowhere < 400 || own(&nowhere) || said.any(|said| said == nowhere) => {
                Some(format!(
                    "{nowhere} for http://{NOWHERE}/, which does not exist"
                ))
            }
            _ => Some(format!(
                "{} for itself",
                failed.iter().filter_map(status).find(own)?
            )),
        }
    }
}

fn status(reply: &HttpReply) -> Option<u16> {
    match reply {
        HttpReply::Answered { status, .. } => Some(*status),
        HttpReply::Failed { .. } | HttpReply::Unreached { .. } => None,
    }
}

/// Whether a reply is an answer without an error status.
fn is_page(got: &HttpReply) -> bool {
    status(got).is_some_and(|status| status < 400)
}

/// The first of these curls that exists, and its result.
async fn with_first<T, F: Future<Output = Result<T>>>(
    from: &VantageKey,
    curls: &[Curl],
    run: impl Fn(Curl) -> F,
) -> Result<(Curl, T)> {
    let mut missing = Vec::new();
    for curl in curls {
        match run(*curl).await {
            Err(error) if error.kind == ErrorKind::ToolMissing => {
                missing.push(format!("{curl} ({})", error.detail));
            }
            result => return Ok((*curl, result?)),
        }
    }
    Err(ErrorKind::ToolMissing.error(format!("no curl at {from}; tried {}", missing.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use crate::transport::{Dial, Env, Stream};
    use jiff::Timestamp;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use winconform_core::method::{FailureClass, SourceKind};

    /// The result of these curls, the first of which does not exist while the second gives `second`.
    async fn tried(second: Result<u8, ErrorKind>) -> (usize, Result<(Curl, u8)>) {
        let from = VantageKey {
            kind: SourceKind::WindowsPod,
            pool: None,
            node: None,
        };
        let asked = Mutex::new(0);
        let run = |curl| {
            *asked.lock().expect("one at a time") += 1;
            std::future::ready(match curl {
                Curl::System => Err(ErrorKind::ToolMissing.error("not found")),
                _ => second.map_err(|kind| kind.error("as well")),
            })
        };
        let brought = with_first(&from, curl::candidates(from.kind), run).await;
        (asked.into_inner().expect("not poisoned"), brought)
    }

    #[tokio::test]
    async fn the_first_curl_that_is_there_is_taken() {
        let (asked, brought) = tried(Ok(7)).await;
        assert_eq!((asked, brought), (2, Ok((Curl::Agnhost, 7))));
    }

    #[tokio::test]
    async fn trouble_with_a_curl_is_no_reason_to_try_another() {
        let (asked, brought) = tried(Err(ErrorKind::ExecTransport)).await;
        let error = brought.expect_err("an error");
        assert_eq!((asked, error.kind), (2, ErrorKind::ExecTransport));
    }

    #[tokio::test]
    async fn where_there_is_no_curl_all_that_were_tried_are_named() {
        let (asked, brought) = tried(Err(ErrorKind::ToolMissing)).await;
        let error = brought.expect_err("none is there");
        assert_eq!((asked, error.kind), (3, ErrorKind::ToolMissing));
        let all = r"tried C:\Windows\System32\curl.exe (not found), C:\curl\AMD64\curl.exe (as well), curl.exe (as well)";
        assert!(error.detail.ends_with(all), "{error}");
    }

    /// A vantage point outside, whose server answers each request with a status, or never.
    fn outside(
        proxy: Option<&str>,
        says: impl Fn(&str, &str) -> Option<u16> + Copy + Send + Sync + 'static,
    ) -> (VantageKey, Vantages) {
        let dial: Arc<Dial> = Arc::new(move |host: &str, _| {
            let (near, mut far) = tokio::io::duplex(4096);
            let host = host.to_owned();
            tokio::spawn(async move {
                let mut head = vec![0; 1024];
                let read = far.read(&mut head).await.expect("a request");
                let Some(status) = says(&host, &String::from_utf8_lossy(&head[..read])) else {
                    return std::future::pending().await;
                };
                let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
                far.write_all(answer.as_bytes()).await.expect("it reads");
            });
            Box::pin(async move { Ok(Box::new(near) as Box<dyn Stream>) })
        });
        let from = VantageKey {
            kind: SourceKind::Outside,
            pool: None,
            node: None,
        };
        let outside = Outside {
            proxy: proxy.and_then(OutsideTarget::parse),
            ..Outside::default()
        };
        let env = Env::simulated(Timestamp::UNIX_EPOCH, 1, dial);
        let api = Fake::default().api_in(env);
        let journal = Journal::create(Env::system(), None, Vec::new(), Box::new(|_| {}));
        let journal = journal.expect("it has no file");
        let vantages = Vantages::new(api, "r1".to_owned(), Arc::new(outside), journal);
        (from, vantages)
    }

    fn get(last: u8, port: u16) -> HttpGet {
        HttpGet {
            host: Host::Address([192, 0, 2, last].into()),
            port,
            path: "/".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_proxy_says_of_itself_and_a_line_that_is_cut_are_no_failure() {
        let all = [403, 407, 429, 500, 502, 503, 504].map(|status| ([status; 3], false));
        let others = [
            ([403, 200, 503], false),
            ([429, 200, 503], false),
            // No node is reachable
            ([504, 504, 503], false),
            ([504, 200, 503], true),
        ];
        // The statuses of one node, of another, and of a name that does not exist
        for ([one, other, nowhere], is_told) in all.into_iter().chain(others) {
            let says = move |_: &str, asked: &str| match asked.contains(NOWHERE) {
                true => Some(nowhere),
                false if asked.contains(":30001/") => Some(one),
                false => Some(other),
            };
            let proxy = Some("http://192.0.2.9:3128");
            let (from, vantages) = outside(proxy, says);
            let gets = [30001, 30002].map(|port| get(1, port));
            let (got, _) = vantages
                .exec_session(&from, &gets, &[])
                .await
                .expect("swept");
            let [failed, witness] = [0, 1].map(|at| got[at].clone().expect("an answer"));
            if is_page(&witness) {
                vantages.answers(true, gets[1].clone());
            }
            let error = vantages.captive(&from, true, &[failed]).await;
            assert_eq!(error.is_none(), is_told, "{one} {other}: {error:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_balancer_and_a_portal_vouch_for_no_way_to_the_nodes() {
        let silent = HttpReply::Unreached {
            class: FailureClass::Timeout,
            text: String::new(),
        };
        let (from, vantages) = outside(None, |host, _| (host == "192.0.2.50").then_some(200));
        vantages.answers(false, get(50, 80));
        vantages.answers(true, get(2, 30001));
        let captive = vantages.captive(&from, true, std::slice::from_ref(&silent));
        assert!(captive.await.is_some(), "a VPN may be down");
        let elsewhere = vantages.captive(&from, false, &[silent]).await;
        assert_eq!(elsewhere, None);
        let (from, vantages) = outside(None, |_, _| Some(200));
        vantages.answers(true, get(2, 30001));
        let swept = vantages.exec_session(&from, &[get(1, 30001)], &[]).await;
        let (got, _) = swept.expect("swept");
        let said: Vec<_> = got.into_iter().flatten().collect();
        assert!(vantages.captive(&from, true, &said).await.is_some());
    }
}
