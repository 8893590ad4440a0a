//! Answers requests; the faults create, change or withhold the answers.

use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::Client;
use kube::client::Body;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::asked::Asked;
use super::chance::{Chance, Form, Hit};
use super::fault::Fault;
use super::session::ExecTrouble;
use super::standing::{Standing, Uptime};
use super::{cut, sent, session};
use crate::base::clock;
use crate::base::lock::locked;
use crate::interference::kinds::stale::Lists;
use crate::interference::kinds::trouble::Trouble;
use crate::interference::kinds::{aggregated, answer, deleted, hostile, refusal, slow};

/// An answer as the client gets it.
type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    chance: Chance,
    standing: Mutex<Arc<Standing>>,
    /// A token of the server's life: all requests end when it is cancelled, and later ones get a new token.
    life: Mutex<CancellationToken>,
    lists: Lists,
    hits: AtomicU64,
}

impl Shared {
    pub(crate) fn new(faults: Vec<Fault>, seed: u64) -> Self {
        Self {
            chance: Chance::new(seed),
            standing: Mutex::new(Arc::new(Standing::new(faults))),
            life: Mutex::default(),
            lists: Lists::default(),
            hits: AtomicU64::default(),
        }
    }

    pub(crate) fn set(&self, faults: Vec<Fault>) {
        *locked(&self.standing) = Arc::new(Standing::new(faults));
    }

    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request, and the faults that it meets.
struct Way<'a> {
    shared: &'a Shared,
    client: &'a Client,
    asked: Asked,
    faults: &'a [Fault],
    /// The number of the request since the faults were set, from 1.
    number: u64,
    hit: Option<Hit>,
}

/// Answers a request, unless the server goes down meanwhile.
pub(crate) async fn answer(
    shared: &Shared,
    client: &Client,
    request: Request<Body>,
) -> Result<Answer, BoxError> {
    let (head, body) = request.into_parts();
    let asked = Asked::read(&head);
    let standing = Arc::clone(&locked(&shared.standing));
    let (number, uptime) = standing.request();
    let hit = shared.chance.draw(&standing.faults, &asked);
    if hit.is_some() || uptime != Uptime::Up {
        shared.hit();
    }
    let life = match uptime {
        Uptime::Up => locked(&shared.life).child_token(),
        Uptime::Starting => return Ok(answer::starting().map(BodyExt::boxed_unsync)),
        Uptime::Goes => {
            std::mem::take(&mut *locked(&shared.life)).cancel();
            return Err(reset());
        }
        Uptime::Away => return Err(reset()),
    };
    let way = Way {
        shared,
        client,
        asked,
        faults: &standing.faults,
        number,
        hit,
    };
    let answered = life.run_until_cancelled(way.troubled(head, body, &life));
    let answer = answered.await.unwrap_or_else(|| Err(reset()))?;
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS => Ok(answer),
        _ => Ok(answer.map(|body| cut::living(body, life))),
    }
}

impl Way<'_> {
    fn is_hit_by(&self, trouble: Trouble) -> bool {
        self.hit.is_some_and(|(hit, _)| hit == trouble)
    }

    /// Answers the request, then applies the faults that change answers.
    async fn troubled(
        &self,
        head: Parts,
        body: Body,
        life: &CancellationToken,
    ) -> Result<Answer, BoxError> {
        let is_discovery = aggregated::is_discovery(head.uri.path());
        let mut response = self.remembered(head, body, life).await?;
        let (asked, faults) = (&self.asked, self.faults);
        if is_discovery && faults.contains(&Fault::AggregatedDown) {
            response = edited(response, aggregated::discovery).await?;
        }
        let succeeds = response.status().is_success();
        if faults.contains(&Fault::HostileTexts) {
            if asked.resource == "pods/log" && succeeds {
                let log = edited(response, |log| Some(hostile::log(log))).await?;
                return Ok(log.map(BodyExt::boxed_unsync));
            }
            if is_json(&response) && asked.verb == "watch" && succeeds {
                return Ok(response.map(hostile::events));
            }
            if is_json(&response) {
                response = edited(response, |body| hostile::whole(asked, body)).await?;
            }
        }
        Ok(match self.hit {
            Some((Trouble::Slow, Form::Early)) => response.map(slow::trickle),
            Some((Trouble::TruncateBody, _)) => response.map(cut::truncated),
            Some((Trouble::SilentWatch, form)) if succeeds => {
                response.map(|body| cut::silent(body, usize::from(form == Form::Late)))
            }
            hit => {
                if hit == Some((Trouble::Slow, Form::Late)) {
                    clock::elapse(slow::LATE).await;
                }
                response.map(BodyExt::boxed_unsync)
            }
        })
    }

    /// Answers the request; may return an old list, or delete a created object at once.
    async fn remembered(
        &self,
        head: Parts,
        body: Body,
        life: &CancellationToken,
    ) -> Result<Response<Body>, BoxError> {
        let path = head.uri.path().to_owned();
        let stale = |fault: &Fault| matches!(fault, Fault::Harness(Trouble::StaleList, _));
        let remembers = self.faults.iter().any(stale);
        let list = (self.asked.verb == "list" && remembers)
            .then(|| format!("{} {:?}", head.uri, head.headers.get(ACCEPT)));
        if self.is_hit_by(Trouble::StaleList)
            && let Some(before) = list
                .as_ref()
                .and_then(|list| self.shared.lists.before(list))
        {
            return Ok(before);
        }
        let response = self.served(head, body, life).await?;
        Ok(match list {
            Some(list) => self.shared.lists.remember(list, response).await?,
            None if self.is_hit_by(Trouble::DeleteCreated)
                && response.status() == StatusCode::CREATED =>
            {
                self.bereft(&path, response).await?
            }
            None => response,
        })
    }

    /// Deletes a created object; returns the answer to its creation.
    async fn bereft(&self, path: &str, response: Response<Body>) -> kube::Result<Response<Body>> {
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        if let Some(request) = deleted::request(path, &self.asked, &body) {
            // The outcome does not matter: the client learns that its object was created
            let _ = self.client.send(request).await;
        }
        Ok(Response::from_parts(head, Body::from(body)))
    }

    /// Answers the request, by the server or instead of it.
    async fn served(
        &self,
        head: Parts,
        body: Body,
        life: &CancellationToken,
    ) -> Result<Response<Body>, BoxError> {
        let mut exec = None;
        let mut reset_late = false;
        if let Some((trouble, form)) = self.hit {
            match (trouble, form) {
                (Trouble::TooManyRequests, form) => return Ok(answer::too_many_requests(form)),
                (Trouble::InternalError, _) => {
                    return Ok(answer::internal_error(answer::NO_LEADER));
                }
                (Trouble::Gone, _) => return Ok(answer::gone(self.asked.expiry)),
                (Trouble::Html502, _) => return Ok(answer::html_502()),
                (Trouble::Hang, _) => return pending().await,
                (Trouble::Reset, Form::Early) => return Err(reset()),
                (Trouble::Reset, Form::Late) => reset_late = true,
                (Trouble::CutExec, Form::Early) => exec = Some(ExecTrouble::CutBeforeOutput),
                (Trouble::CutExec, Form::Late) => exec = Some(ExecTrouble::CutAfterOutput),
                (Trouble::LoseExitFrame, _) => exec = Some(ExecTrouble::LoseExit),
                // These change the answer later
                (
                    Trouble::Slow
                    | Trouble::TruncateBody
                    | Trouble::StaleList
                    | Trouble::SilentWatch
                    | Trouble::DeleteCreated,
                    _,
                ) => {}
            }
        }
        let refused = refusal::before(self.faults, &self.asked, &head, self.number);
        if let Some(response) = refused {
            self.shared.hit();
            return Ok(response);
        }
        let mut body = body.collect().await?.to_bytes();
        if self.faults.contains(&Fault::HostileTexts) {
            body = hostile::cleansed(body);
        }
        let response = sent::sent(self.client, &self.asked, self.faults, &head, body).await?;
        if reset_late {
            return Err(reset());
        }
        let is_exec = self.asked.is_exec && response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let goes = |fault: &Fault| matches!(fault, Fault::ServerRestarts(_));
        let ends = exec.is_some() || self.faults.iter().any(goes);
        match is_exec && ends {
            true => Ok(session::replaced(life.clone(), exec, head, response).await?),
            false => Ok(response),
        }
    }
}

/// An answer with an edited body, if `edit` returns one.
async fn edited(
    response: Response<Body>,
    edit: impl FnOnce(&[u8]) -> Option<Bytes>,
) -> kube::Result<Response<Body>> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(response);
    }
    let (mut head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    let Some(edited) = edit(&body) else {
        return Ok(Response::from_parts(head, Body::from(body)));
    };
    head.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(head, Body::from(edited)))
}

fn is_json(response: &Response<Body>) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

/// The error of a client whose connection is reset.
pub(crate) fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}
