//! Sweeps: one exec from one vantage that serves many looks; from outside, requests of our own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use winconform_core::config::Outside;
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

    /// Gets and pings every target once from a vantage.
    pub(super) async fn sweep(
        &self,
        from: &VantageKey,
        gets: &[HttpGet],
        pings: &[IpAddr],
    ) -> Result<(Vec<HttpReply>, Vec<PingReply>), Trouble> {
        let durations = self.api.durations();
        let Some(pod) = prober(&self.run, from) else {
            let got = fetch(gets, self.outside.proxy.as_ref(), durations).await?;
            return Ok((got, Vec::new()));
        };
        // Divides the answers, so nobody who answers may foresee it
        let token = &format!("{:032x}", random());
        let tool = match gets.is_empty() {
            true => None,
            false => Some(self.tool(from, &pod).await?),
        };
        let (connect, total) = (durations.http_connect, durations.http_total);
        let curl = |gets| {
            let tool = tool.as_ref()?;
            Some(curl::session(tool, gets, token, connect, total))
        };
        let fitting = |gets| curl::fitting(gets, self.api.limits().exec_output);
        let (some, mut other_gets) = gets.split_at(fitting(gets));
        let (few, other_pings) = pings.split_at(pings.len().min(session::MOST));
        let os = from.kind.shell().filter(|_| !few.is_empty());
        let (mut got, mut pinged) = match (curl(some), os) {
            (None, None) => (Vec::new(), Vec::new()),
            (Some(curl), None) => {
                let split = |reply: &_| curl::split(some, token, reply);
                (self.exec(&pod, &curl, split).await?, Vec::new())
            }
            (None, Some(os)) => {
                let alone = session::session(os, few, token);
                let split = |reply: &_| session::split(few, token, reply);
                (Vec::new(), self.exec(&pod, &alone, split).await?)
            }
            (Some(curl), Some(os)) => {
                let both = session::behind(os, &curl, few, token);
                let split = |reply: &_| {
                    let (of_curl, of_pings) = session::apart(token, reply)?;
                    let got = curl::split(some, token, &of_curl)?;
                    Ok((got, session::split(few, token, &of_pings)?))
                };
                self.exec(&pod, &both, split).await?
            }
        };
        while !other_gets.is_empty()
            && let (some, others) = other_gets.split_at(fitting(other_gets))
            && let Some(curl) = curl(some)
        {
            let split = |reply: &_| curl::split(some, token, reply);
            got.extend(self.exec(&pod, &curl, split).await?);
            other_gets = others;
        }
        if let Some(os) = os {
            for some in other_pings.chunks(session::MOST) {
                let request = session::session(os, some, token);
                let split = |reply: &_| session::split(some, token, reply);
                pinged.extend(self.exec(&pod, &request, split).await?);
            }
        }
        Ok((got, pinged))
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
