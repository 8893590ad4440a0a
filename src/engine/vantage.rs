//! Sweeps: one exec from one vantage that serves many looks; from outside, requests of our own.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use winconform_core::config::Outside;
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
            let got = fetch(gets, self.outside.proxy.as_ref(), durations).await?;
            return Ok((got.into_iter().map(Ok).collect(), Vec::new()));
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

    /// Why what was brought from outside is not the cluster's word: the proxy answers for what
    /// does not exist (RFC 6761, `.invalid`), or wants something for itself first (RFC 9110, 407;
    /// RFC 6585, 511).
    pub(super) async fn captive(&self, from: &VantageKey) -> Option<Trouble> {
        let proxy = self.outside.proxy.as_ref()?;
        if prober(&self.run, from).is_some() {
            return None;
        }
        let nowhere = HttpGet {
            host: Host::Name(NOWHERE.to_owned()),
            port: 80,
            path: "/".to_owned(),
        };
        let got = fetch(&[nowhere], Some(proxy), self.api.durations()).await;
        match got.ok()?.first()? {
            HttpReply::Answered { status, .. } if *status < 400 || matches!(status, 407 | 511) => {
                let detail = format!(
                    "the proxy {proxy} answers by itself: it says {status} for \
                     http://{NOWHERE}/, which does not exist"
                );
                Some(Trouble::new(TroubleKind::NoView, detail))
            }
            _ => None,
        }
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

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<VantageKey, &'static str>> {
        self.curls.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
}
