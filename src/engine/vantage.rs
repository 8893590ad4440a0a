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

/// The vantages of a run, with the tool found at each. Clones share what was found.
#[derive(Clone)]
pub(super) struct Vantages {
    api: Api,
    run: String,
    outside: Arc<Outside>,
    tools: Arc<Mutex<BTreeMap<VantageKey, curl::Tool>>>,
}

/// What each target of a sweep answered.
pub(super) type Swept = (Vec<Result<HttpReply, Trouble>>, Vec<PingReply>);

/// Where the execs of one sweep go to, and what they are begun with.
struct Asker {
    pod: PodRef,
    /// Where anything is to be got.
    tool: Option<curl::Tool>,
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
            tools: Arc::default(),
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
        let tool = match gets.is_empty() {
            true => None,
            false => Some(self.tool(from, &pod).await?),
        };
        let asker = Asker {
            pod,
            tool,
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

    /// Gets and pings by one exec.
    async fn session(
        &self,
        asker: &Asker,
        gets: &[HttpGet],
        pings: &[IpAddr],
    ) -> Result<(Vec<HttpReply>, Vec<PingReply>), Trouble> {
        let Asker {
            pod,
            tool,
            os,
            token,
        } = asker;
        let durations = self.api.durations();
        let (connect, total) = (durations.http_connect, durations.http_total);
        let tool = tool.as_ref().filter(|_| !gets.is_empty());
        let curl = tool.map(|tool| curl::session(tool, gets, token, connect, total));
        match (curl, os.filter(|_| !pings.is_empty())) {
            (None, None) => Ok((Vec::new(), Vec::new())),
            (Some(curl), None) => {
                let split = |reply: &_| Ok((curl::split(gets, token, reply)?, Vec::new()));
                self.exec(pod, &curl, split).await
            }
            (None, Some(os)) => {
                let alone = session::session(os, pings, token);
                let split = |reply: &_| Ok((Vec::new(), session::split(pings, token, reply)?));
                self.exec(pod, &alone, split).await
            }
            (Some(curl), Some(os)) => {
                let both = session::behind(os, &curl, pings, token);
                let split = |reply: &_| {
                    let (of_curl, of_pings) = session::apart(token, reply)?;
                    let got = curl::split(gets, token, &of_curl)?;
                    Ok((got, session::split(pings, token, &of_pings)?))
                };
                self.exec(pod, &both, split).await
            }
        }
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

    /// The tool of a vantage, looked for once.
    async fn tool(&self, from: &VantageKey, pod: &PodRef) -> Result<curl::Tool, Trouble> {
        if let Some(tool) = self.lock().get(from) {
            return Ok(tool.clone());
        }
        for program in curl::candidates(from.kind) {
            let reply = self.api.exec(pod, &curl::ask_version(program)).await?;
            if let Some(tool) = curl::detect(program, &reply)? {
                self.lock().insert(from.clone(), tool.clone());
                return Ok(tool);
            }
        }
        let tried = curl::candidates(from.kind).join(", ");
        Err(Trouble::new(
            TroubleKind::ToolMissing,
            format!("no curl at {from}; tried {tried}"),
        ))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<VantageKey, curl::Tool>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
