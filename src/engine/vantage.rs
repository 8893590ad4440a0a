//! Sweeps: one exec from one vantage that serves many looks; from outside, requests of our own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use winconform_core::config::Outside;
use winconform_core::way::ping::session;
use winconform_core::way::{
    HttpGet, HttpReply, PingReply, Trouble, TroubleKind, VantageKey, curl,
};

use super::manifest::prober;
use crate::transport::{Api, PodRef, fetch};

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

    /// Gets every target once from a vantage.
    pub(super) async fn sweep(
        &self,
        from: &VantageKey,
        gets: &[HttpGet],
    ) -> Result<Vec<HttpReply>, Trouble> {
        let durations = self.api.durations();
        let Some(pod) = prober(&self.run, from) else {
            return fetch(gets, self.outside.proxy.as_ref(), durations).await;
        };
        let tool = self.tool(from, &pod).await?;
        // Divides the answers, so nobody who answers may foresee it
        let token = format!("{:032x}", rand::random::<u128>());
        let request = curl::session(
            &tool,
            gets,
            &token,
            durations.http_connect,
            durations.http_total,
        );
        let mut tries = 1;
        loop {
            let reply = self.api.exec(&pod, &request).await?;
            match curl::split(gets, &token, &reply) {
                // Output lost on the way (kubernetes#124571) is transport's trouble: ask again
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

    /// Pings every target once from a vantage.
    pub(super) async fn ping(
        &self,
        from: &VantageKey,
        targets: &[IpAddr],
    ) -> Result<Vec<PingReply>, Trouble> {
        let (Some(pod), Some(os)) = (prober(&self.run, from), from.kind.shell()) else {
            let detail = format!("nothing is pinged from {from}");
            return Err(Trouble::new(TroubleKind::ToolMissing, detail));
        };
        let token = format!("{:032x}", rand::random::<u128>());
        let mut replies = Vec::with_capacity(targets.len());
        for some in targets.chunks(session::MOST) {
            let request = session::session(os, some, &token);
            let mut tries = 1;
            let split = loop {
                let reply = self.api.exec(&pod, &request).await?;
                match session::split(some, &token, &reply) {
                    Err(trouble)
                        if trouble.kind == TroubleKind::UnrecognisedOutput
                            && tries < self.api.limits().exec_tries =>
                    {
                        tries += 1;
                    }
                    split => break split,
                }
            };
            replies.extend(split?);
        }
        Ok(replies)
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
