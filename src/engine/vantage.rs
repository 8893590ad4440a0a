//! Sweeps: one exec from one vantage that serves many looks; from outside, requests of our own.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use winconform_core::config::{Outside, Target as OutsideTarget};
use winconform_core::facts::Os;
use winconform_core::way::ping::session;
use winconform_core::way::{
    ExecReply, ExecRequest, Host, HttpGet, HttpReply, PingReply, Trouble, TroubleKind, VantageKey,
    curl,
};

use super::manifest::prober;
use crate::transport::{Api, PodRef, fetch, random};

/// A name that nobody has.
const NOWHERE: &str = "winconform.invalid";

/// The vantages of a run, with the curl found at each. Clones share what was found.
#[derive(Clone)]
pub(super) struct Vantages {
    api: Api,
    run: String,
    outside: Arc<Outside>,
    curls: Arc<Mutex<BTreeMap<VantageKey, &'static str>>>,
    /// What the cluster last answered to who looks from outside.
    answered: Arc<Mutex<Option<HttpGet>>>,
}

/// What each target of a sweep answered.
pub(super) type Swept = (Vec<Result<HttpReply, Trouble>>, Vec<PingReply>);

/// Where the execs of one sweep go to, and what they are begun with.
struct Asker<'a> {
    from: &'a VantageKey,
    pod: PodRef,
    /// Whose shell pings.
    os: Option<Os>,
    token: String,
}

impl Vantages {
    /// The vantages of a run.
    pub(super) fn new(api: Api, run: String, outside: Arc<Outside>) -> Self {
        Self {
            api,
            run,
            outside,
            curls: Arc::default(),
            answered: Arc::default(),
        }
    }

    /// Gets and pings every target once from a vantage. What is too much for one exec's output goes by
    /// several; a get of which that is true alone is trouble of its own.
    pub(super) async fn sweep(
        &self,
        from: &VantageKey,
        gets: &[HttpGet],
        pings: &[IpAddr],
    ) -> Result<Swept, Trouble> {
        let durations = self.api.durations();
        let Some(pod) = prober(&self.run, from) else {
            let got = fetch(gets, self.outside.proxy.as_ref(), durations).await;
            if let Some((get, _)) = gets.iter().zip(&got).find(|(_, got)| is_page(got)) {
                *self.last_answered() = Some(get.clone());
            }
            return Ok((got, Vec::new()));
        };
        let asker = Asker {
            from,
            pod,
            os: from.kind.shell(),
            // Divides the answers, so nobody who answers may foresee it
            token: format!("{:032x}", random()),
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
                // Somebody answers with more than anybody is expected to
                Err(trouble) if trouble.kind == TroubleKind::OutputTruncated => match some {
                    [] => return Err(trouble),
                    [_] => got.push(Err(trouble)),
                    some => {
                        let (first, second) = some.split_at(some.len() / 2);
                        ahead.push_front(second);
                        ahead.push_front(first);
                    }
                },
                Err(trouble) => return Err(trouble),
            }
        }
        Ok((got, pinged))
    }

    /// Gets and pings by one exec, with the first curl that is there.
    async fn session(
        &self,
        asker: &Asker<'_>,
        gets: &[HttpGet],
        pings: &[IpAddr],
    ) -> Result<(Vec<HttpReply>, Vec<PingReply>), Trouble> {
        if gets.is_empty() {
            return Ok((Vec::new(), self.pinged(asker, pings).await?));
        }
        let known = self.lock().get(asker.from).copied();
        let programs = match &known {
            Some(program) => std::slice::from_ref(program),
            None => curl::candidates(asker.from.kind),
        };
        let got = |program| self.got(asker, program, gets, pings);
        let (program, swept) = with_first(asker.from, programs, got).await?;
        self.lock().insert(asker.from.clone(), program);
        Ok(swept)
    }

    /// The same with one curl.
    async fn got(
        &self,
        asker: &Asker<'_>,
        program: &str,
        gets: &[HttpGet],
        pings: &[IpAddr],
    ) -> Result<(Vec<HttpReply>, Vec<PingReply>), Trouble> {
        let (pod, token) = (&asker.pod, &asker.token);
        let durations = self.api.durations();
        let (connect, total) = (durations.http_connect, durations.http_total);
        let curl = curl::session(program, gets, token, connect, total);
        let Some(os) = asker.os.filter(|_| !pings.is_empty()) else {
            let split = |reply: &_| Ok((curl::split(gets, token, reply)?, Vec::new()));
            return self.exec(pod, &curl, split).await;
        };
        let both = session::behind(os, &curl, pings, token);
        let split = |reply: &_| {
            let (of_curl, of_pings) = session::apart(token, reply)?;
            let got = curl::split(gets, token, &of_curl)?;
            Ok((got, session::split(pings, token, &of_pings)?))
        };
        self.exec(pod, &both, split).await
    }

    /// Pings by one exec.
    async fn pinged(&self, asker: &Asker<'_>, pings: &[IpAddr]) -> Result<Vec<PingReply>, Trouble> {
        let Some(os) = asker.os.filter(|_| !pings.is_empty()) else {
            return Ok(Vec::new());
        };
        let token = &asker.token;
        let alone = session::session(os, pings, token);
        let split = |reply: &_| session::split(pings, token, reply);
        self.exec(&asker.pod, &alone, split).await
    }

    /// Why what a look from outside failed by is not the cluster's word. The proxy says it of itself (RFC
    /// 9110, 403 and 407; RFC 6585, 429 and 511), or of what does not exist as well (RFC 6761,
    /// `.invalid`); or nothing else that the cluster answered is answered now, so that the way there may be
    /// cut on this side.
    pub(super) async fn captive(&self, from: &VantageKey, failed: &[HttpReply]) -> Option<Trouble> {
        if prober(&self.run, from).is_some() {
            return None;
        }
        let proxy = self.outside.proxy.as_ref();
        let trouble = |detail| Some(Trouble::new(TroubleKind::NoView, detail));
        if let Some(proxy) = proxy
            && let Some(said) = self.says_itself(proxy, failed).await
        {
            return trouble(format!(
                "the proxy {proxy} answers by itself: it says {said}"
            ));
        }
        let again = Vec::from_iter(self.last_answered().clone());
        match fetch(&again, proxy, self.api.durations()).await.first() {
            Some(got) if is_page(got) => None,
            Some(_) | None => trouble(
                "this machine's way to the cluster may be cut (its line, a VPN, a firewall): nothing \
                 that the cluster answered before is answered here now"
                    .to_owned(),
            ),
        }
    }

    /// What a proxy says of its own accord, where it does.
    async fn says_itself(&self, proxy: &OutsideTarget, failed: &[HttpReply]) -> Option<String> {
        let nowhere = HttpGet {
            host: Host::Name(NOWHERE.to_owned()),
            port: 80,
            path: "/".to_owned(),
        };
        let got = fetch(&[nowhere], Some(proxy), self.api.durations()).await;
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

    fn last_answered(&self) -> MutexGuard<'_, Option<HttpGet>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a session; again where its output was lost on the way (kubernetes#124571), which is
    /// transport's trouble.
    async fn exec<T>(
        &self,
        pod: &PodRef,
        request: &ExecRequest,
        split: impl Fn(&ExecReply) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut tries = 1;
        loop {
            let reply = self.api.exec(pod, request).await?;
            match split(&reply) {
                Err(trouble)
                    if trouble.kind == TroubleKind::UnrecognisedOutput
                        && tries < self.api.limits().exec_tries =>
                {
                    tries += 1;
                }
                split => return split,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<VantageKey, &'static str>> {
        self.curls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn status(reply: &HttpReply) -> Option<u16> {
    match reply {
        HttpReply::Answered { status, .. } => Some(*status),
        HttpReply::Failed { .. } | HttpReply::Unreached { .. } => None,
    }
}

/// Whether it is an answer, and no error.
fn is_page(got: &Result<HttpReply, Trouble>) -> bool {
    let got = got.as_ref().ok().and_then(status);
    got.is_some_and(|status| status < 400)
}

/// What the first of these programs brought that is there, and which it is.
async fn with_first<T, F: Future<Output = Result<T, Trouble>>>(
    from: &VantageKey,
    programs: &[&'static str],
    run: impl Fn(&'static str) -> F,
) -> Result<(&'static str, T), Trouble> {
    let mut missing = Vec::new();
    for program in programs {
        match run(program).await {
            Err(trouble) if trouble.kind == TroubleKind::ToolMissing => {
                missing.push(format!("{program} ({})", trouble.detail));
            }
            brought => return Ok((program, brought?)),
        }
    }
    Err(Trouble::new(
        TroubleKind::ToolMissing,
        format!("no curl at {from}; tried {}", missing.join(", ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fake::Fake;
    use crate::transport::{Dial, MadeUp, Stream};
    use jiff::Timestamp;
    use std::rc::Rc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use winconform_core::way::SourceKind;

    /// What comes of these programs, the first of which is not there and the second as given.
    async fn tried(
        second: Result<u8, TroubleKind>,
    ) -> (usize, Result<(&'static str, u8), Trouble>) {
        let from = VantageKey {
            kind: SourceKind::WindowsPod,
            pool: None,
            node: None,
        };
        let asked = Mutex::new(0);
        let run = |program| {
            *asked.lock().expect("one at a time") += 1;
            std::future::ready(match program {
                "a.exe" => Err(Trouble::new(TroubleKind::ToolMissing, "not found")),
                _ => second.map_err(|kind| Trouble::new(kind, "as well")),
            })
        };
        let brought = with_first(&from, &["a.exe", "b.exe", "c.exe"], run).await;
        (asked.into_inner().expect("not poisoned"), brought)
    }

    #[tokio::test]
    async fn the_first_curl_that_is_there_is_taken() {
        let (asked, brought) = tried(Ok(7)).await;
        assert_eq!((asked, brought.expect("it is there")), (2, ("b.exe", 7)));
    }

    #[tokio::test]
    async fn trouble_with_a_curl_is_no_reason_to_try_another() {
        let (asked, brought) = tried(Err(TroubleKind::ExecTransport)).await;
        let trouble = brought.expect_err("trouble");
        assert_eq!((asked, trouble.kind), (2, TroubleKind::ExecTransport));
    }

    #[tokio::test]
    async fn where_there_is_no_curl_all_that_were_tried_are_named() {
        let (asked, brought) = tried(Err(TroubleKind::ToolMissing)).await;
        let trouble = brought.expect_err("none is there");
        assert_eq!((asked, trouble.kind), (3, TroubleKind::ToolMissing));
        let all = "tried a.exe (not found), b.exe (as well), c.exe (as well)";
        assert!(trouble.detail.ends_with(all), "{trouble}");
    }

    /// A proxy that says this of one node, of another, and of what does not exist.
    fn proxy(said: [u16; 3]) -> Rc<Dial> {
        Rc::new(move |_: &str, _| {
            let (near, mut far) = tokio::io::duplex(4096);
            tokio::spawn(async move {
                let mut head = vec![0; 1024];
                let read = far.read(&mut head).await.expect("a request");
                let asked = String::from_utf8_lossy(&head[..read]);
                let [one, other, nowhere] = said;
                let status = match asked.contains(NOWHERE) {
                    true => nowhere,
                    false if asked.contains(":30001/") => one,
                    false => other,
                };
                let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
                far.write_all(answer.as_bytes()).await.expect("it reads");
            });
            Box::pin(async move { Ok(Box::new(near) as Box<dyn Stream>) })
        })
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_proxy_says_of_itself_and_a_line_that_is_cut_are_no_failure() {
        let from = VantageKey {
            kind: SourceKind::Outside,
            pool: None,
            node: None,
        };
        let all = [403, 407, 429, 500, 502, 503, 504].map(|status| ([status; 3], false));
        let others = [
            ([403, 200, 503], false),
            ([429, 200, 503], false),
            // There is no way to any node
            ([504, 504, 503], false),
            ([504, 200, 503], true),
        ];
        for (said, is_told) in all.into_iter().chain(others) {
            let _made_up = MadeUp::begin(Timestamp::UNIX_EPOCH, 1, proxy(said));
            let outside = Outside {
                proxy: OutsideTarget::parse("http://192.0.2.9:3128"),
                ..Outside::default()
            };
            let api = Fake::default().api();
            let vantages = Vantages::new(api, "r1".to_owned(), Arc::new(outside));
            let gets = [30001, 30002].map(|port| HttpGet {
                host: Host::Address([192, 0, 2, 1].into()),
                port,
                path: "/".to_owned(),
            });
            let (got, _) = vantages.sweep(&from, &gets, &[]).await.expect("swept");
            let failed = got[0].clone().expect("an answer");
            let trouble = vantages.captive(&from, &[failed]).await;
            assert_eq!(trouble.is_none(), is_told, "{said:?}: {trouble:?}");
        }
    }
}
