//! `/containerLogs`: the output of a container's current run, or of its previous one.
//!
//! The words of refusals are the kubelet's (kubernetes 1.37.0, `pkg/kubelet/kubelet_pods.go`,
//! `validateContainerLogStatus`; `pkg/kubelet/server/server.go`, `getContainerLogs`); the order in which
//! options apply is that of its client (k8s.io/cri-client 0.37.0, `pkg/logs/logs.go`).

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::server::{Body, text};
use crate::base::log::{Line, Log, Reader};
use crate::base::query::Query;
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::pods::course::run::PodRun;
use crate::pods::reporting::book::{ContainerBook, State};

/// The options of a request (`PodLogOptions`).
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail: Option<usize>,
    limit: Option<usize>,
}

/// The part of a log that never reaches its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Nothing,
    LastLine,
    All,
}

impl Lost {
    fn from_faults(run: &PodRun, cluster: &Cluster) -> Self {
        if run.suffers(FaultKind::LogsEmpty, cluster) {
            Self::All
        } else if run.suffers(FaultKind::LogsCut, cluster) {
            Self::LastLine
        } else {
            Self::Nothing
        }
    }
}

/// Answers with the log, whole or streamed, or with the kubelet's words of refusal.
pub(super) fn answer(
    cluster: &Cluster,
    run: &PodRun,
    container: &str,
    query: &Query,
) -> Response<Body> {
    let Some(options) = Options::read(query) else {
        let words = "{\"message\": \"Invalid request.\"}";
        return text(StatusCode::UNPROCESSABLE_ENTITY, words);
    };
    let pod = &run.key.name;
    let log = {
        let book = run.book();
        let Some(known) = book.container(container) else {
            let words = format!("container \"{container}\" not found in pod \"{pod}\"");
            return text(StatusCode::NOT_FOUND, &words);
        };
        log(known, pod, options.previous)
    };
    match log {
        Ok(log) => {
            let frames = frames(&log, options, Lost::from_faults(run, cluster));
            Response::new(StreamBody::new(frames).boxed_unsync())
        }
        Err(words) => text(StatusCode::BAD_REQUEST, &words),
    }
}

impl Options {
    /// Reads the options; `None` for a query that the kubelet rejects.
    fn read(query: &Query) -> Option<Self> {
        let count = |name: &str| match query.first(name) {
            None | Some("") => Some(None),
            Some(text) => text.parse::<usize>().ok().map(Some),
        };
        Some(Self {
            follow: query.is_set("follow"),
            previous: query.is_set("previous"),
            timestamps: query.is_set("timestamps"),
            tail: count("tailLines")?,
            limit: count("limitBytes")?,
        })
    }

    /// A line as the answer contains it.
    fn written(&self, line: &Line, begins: bool) -> Bytes {
        if !(self.timestamps && begins) {
            return line.bytes.clone();
        }
        // RFC3339NanoFixed
        let mut written = format!("{:.9} ", line.at).into_bytes();
        written.extend_from_slice(&line.bytes);
        written.into()
    }
}

/// The log of the requested run, or the kubelet's words of refusal.
fn log(container: &ContainerBook, pod: &str, previous: bool) -> Result<Arc<Log>, String> {
    let name = &container.name;
    if previous {
        // Between two runs, the run that has ended is the previous one
        let between = match &container.state {
            State::Waiting(_) => container.last.is_some(),
            State::Finished(finished) => container.last.as_ref() == Some(finished),
            State::Running(_) => false,
        };
        let before = match between {
            true => Some(&container.log),
            false => container.last_log.as_ref(),
        };
        return before.map(Arc::clone).ok_or_else(|| {
            format!("previous terminated container \"{name}\" in pod \"{pod}\" not found")
        });
    }
    let waits = |why: &str| {
        Err(format!(
            "container \"{name}\" in pod \"{pod}\" is waiting to start: {why}"
        ))
    };
    match &container.state {
        State::Waiting(_) if container.last.is_some() => Ok(Arc::clone(&container.log)),
        State::Waiting(waiting) => match waiting.reason.as_deref().unwrap_or_default() {
            "ErrImagePull" => waits("image can't be pulled"),
            "ImagePullBackOff" => waits("trying and failing to pull image"),
            other => waits(other),
        },
        State::Running(_) | State::Finished(_) => Ok(Arc::clone(&container.log)),
    }
}

/// The position of an answer in a log.
struct Progress {
    reader: Reader,
    options: Options,
    left: usize,
    begins: bool,
    lost: Lost,
    /// The last line so far, which is lost unless another follows.
    held: Option<Line>,
}

impl Progress {
    async fn line(&mut self) -> Option<Line> {
        loop {
            let line = if self.options.follow {
                self.reader.wait().await?
            } else {
                self.reader.next()?
            };
            match self.lost {
                Lost::Nothing => return Some(line),
                Lost::LastLine => {
                    if let Some(before) = self.held.replace(line) {
                        return Some(before);
                    }
                }
                Lost::All => {}
            }
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let line = self.line().await?;
        let mut written = self.options.written(&line, self.begins);
        self.begins = line.bytes.ends_with(b"\n");
        written.truncate(self.left);
        self.left -= written.len();
        Some(written)
    }
}

fn frames(
    log: &Arc<Log>,
    options: Options,
    lost: Lost,
) -> impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + use<> {
    let reader = match options.tail {
        // One more, since the last one is dropped
        Some(lines) if lost == Lost::LastLine => log.from_last(lines.saturating_add(1)),
        Some(lines) => log.from_last(lines),
        None => log.from_start(),
    };
    let progress = Progress {
        reader,
        left: options.limit.unwrap_or(usize::MAX),
        begins: true,
        options,
        lost,
        held: None,
    };
    stream::unfold(progress, |mut progress| async move {
        let bytes = progress.next().await?;
        Some((Ok(Frame::data(bytes)), progress))
    })
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::base::clock::Wall;
    use crate::base::log::Stream;

    fn options(query: &str) -> Option<Options> {
        Options::read(&Query::parse(Some(query)))
    }

    async fn read_log(log: &Arc<Log>, query: &str) -> String {
        told_but(Lost::Nothing, log, query).await
    }

    async fn told_but(lost: Lost, log: &Arc<Log>, query: &str) -> String {
        let frames = frames(log, options(query).expect("it is valid"), lost);
        let bytes: Vec<_> = frames
            .map(|frame| frame.expect("it cannot fail").into_data().expect("data"))
            .collect()
            .await;
        String::from_utf8(bytes.concat()).expect("UTF-8")
    }

    #[tokio::test]
    async fn lines_are_chosen_as_asked() {
        let log = Log::new(Wall::default());
        log.print(Stream::Out, b"one\ntwo\n");
        log.print(Stream::Error, b"oh\n");
        log.end();
        for (query, said) in [
            ("", "one\ntwo\noh\n"),
            ("follow=true", "one\ntwo\noh\n"),
            ("tailLines=2", "two\noh\n"),
            ("tailLines=0", ""),
            ("limitBytes=6", "one\ntw"),
        ] {
            assert_eq!(read_log(&log, query).await, said, "{query}");
        }
        let stamped = read_log(&log, "timestamps=1&tailLines=1").await;
        let (at, line) = stamped.split_once(' ').expect("a time and a line");
        assert_eq!(
            (at.len(), line),
            ("2026-01-02T03:04:05.000000000Z".len(), "oh\n")
        );
    }

    #[tokio::test]
    async fn what_is_lost_is_the_last_line_or_all() {
        let log = Log::new(Wall::default());
        log.print(Stream::Out, b"one\ntwo\nsix\n");
        log.end();
        for (query, cut) in [
            ("", "one\ntwo\n"),
            ("follow=true", "one\ntwo\n"),
            ("tailLines=1", "two\n"),
            ("tailLines=0", ""),
            ("limitBytes=2", "on"),
        ] {
            assert_eq!(told_but(Lost::LastLine, &log, query).await, cut, "{query}");
            assert_eq!(told_but(Lost::All, &log, query).await, "", "{query}");
        }
    }

    #[test]
    fn what_a_kubelet_takes_for_invalid() {
        for query in ["tailLines=-1", "tailLines=many", "limitBytes=some"] {
            assert_eq!(options(query), None, "{query}");
        }
    }
}
