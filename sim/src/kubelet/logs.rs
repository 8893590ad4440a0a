//! `/containerLogs`: what a container has printed, from its present run or the one before.
//!
//! The words of refusals are the kubelet's (kubernetes 1.37.0, `pkg/kubelet/kubelet_pods.go`,
//! `validateContainerLogStatus`; `pkg/kubelet/server/server.go`, `getContainerLogs`), the order of
//! the options its client's (k8s.io/cri-client 0.37.0, `pkg/logs/logs.go`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode};
use http_body_util::StreamBody;
use hyper::body::Frame;
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

use super::server::{Body, boxed, text};
use crate::cluster::Cluster;
use crate::fault::FaultKind;
use crate::log::{Line, Log, Reader};
use crate::loopback::wall;
use crate::pods::book::{ContainerBook, State};
use crate::pods::run::PodRun;
use crate::query::Query;

/// What is asked for (`PodLogOptions`).
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    follow: bool,
    previous: bool,
    timestamps: bool,
    since: Option<Timestamp>,
    tail: Option<usize>,
    limit: Option<usize>,
}

/// What of a log never reaches who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Nothing,
    LastLine,
    All,
}

impl Lost {
    fn of(run: &PodRun, cluster: &Cluster) -> Self {
        if run.suffers(FaultKind::LogsEmpty, cluster) {
            Self::All
        } else if run.suffers(FaultKind::LogsCut, cluster) {
            Self::LastLine
        } else {
            Self::Nothing
        }
    }
}

/// Answers with the log, as it is or as it grows, or with the words in which a kubelet refuses it.
pub(super) fn answer(
    cluster: &Cluster,
    run: &PodRun,
    container: &str,
    query: &Query,
) -> Response<Body> {
    let Some(options) = Options::read(query, wall()) else {
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
            let frames = frames(&log, options, Lost::of(run, cluster));
            Response::new(boxed(StreamBody::new(frames)))
        }
        Err(words) => text(StatusCode::BAD_REQUEST, &words),
    }
}

impl Options {
    /// None for a query that the kubelet takes for invalid.
    fn read(query: &Query, now: Timestamp) -> Option<Self> {
        let number = |name: &str| match query.first(name) {
            None | Some("") => Some(None),
            Some(text) => text.parse::<u64>().ok().map(Some),
        };
        let count = |name: &str| {
            let number = number(name)?;
            Some(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
        };
        let seconds = number("sinceSeconds")?;
        let time = match query.first("sinceTime") {
            None | Some("") => None,
            Some(text) => Some(text.parse::<Timestamp>().ok()?),
        };
        let limit = count("limitBytes")?;
        if seconds.is_some() && time.is_some() || seconds == Some(0) || limit == Some(0) {
            return None;
        }
        let ago = seconds.map(|seconds| {
            now.checked_sub(Duration::from_secs(seconds))
                .unwrap_or(Timestamp::MIN)
        });
        Some(Self {
            follow: query.is_set("follow"),
            previous: query.is_set("previous"),
            timestamps: query.is_set("timestamps"),
            since: ago.or(time),
            tail: count("tailLines")?,
            limit,
        })
    }

    /// The line as it is written out; none for one that is not asked for.
    fn written(&self, line: &Line, begins: bool) -> Option<Bytes> {
        if self.since.is_some_and(|since| line.at < since) {
            return None;
        }
        if !(self.timestamps && begins) {
            return Some(line.bytes.clone());
        }
        // RFC3339NanoFixed
        let mut written = String::new();
        let printer = DateTimePrinter::new().precision(Some(9));
        let _ = printer.print_timestamp(&line.at, &mut written);
        let mut written = written.into_bytes();
        written.push(b' ');
        written.extend_from_slice(&line.bytes);
        Some(written.into())
    }
}

/// The log of the run that is asked for.
fn log(container: &ContainerBook, pod: &str, previous: bool) -> Result<Arc<Log>, String> {
    let name = &container.name;
    if previous {
        let before = container.last_log.as_ref();
        // Between two runs the one that has ended is the previous one
        let between = match &container.state {
            State::Waiting { .. } => container.last.is_some(),
            State::Finished(finished) => container.last.as_ref() == Some(finished),
            State::Running { .. } => false,
        };
        let before = if between {
            Some(&container.log)
        } else {
            before
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
        State::Waiting { .. } if container.last.is_some() => Ok(Arc::clone(&container.log)),
        State::Waiting { reason, .. } => match *reason {
            "ErrImagePull" => waits("image can't be pulled"),
            "ImagePullBackOff" => waits("trying and failing to pull image"),
            other => waits(other),
        },
        State::Running { .. } | State::Finished(_) => Ok(Arc::clone(&container.log)),
    }
}

/// Where an answer is in a log.
struct Progress {
    reader: Reader,
    options: Options,
    left: usize,
    begins: bool,
    lost: Lost,
    /// The line that is lost unless another follows.
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
        while self.left > 0 {
            let line = self.line().await?;
            let written = self.options.written(&line, self.begins);
            self.begins = line.bytes.ends_with(b"\n");
            if let Some(mut written) = written {
                written.truncate(self.left);
                self.left -= written.len();
                return Some(written);
            }
        }
        None
    }
}

fn frames(
    log: &Arc<Log>,
    options: Options,
    lost: Lost,
) -> impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + use<> {
    let reader = match options.tail {
        // The last of what is left
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
    use crate::log::Stream;

    fn options(query: &str) -> Option<Options> {
        let now = "2026-01-02T03:04:05Z".parse().expect("a time");
        Options::read(&Query::parse(Some(query)), now)
    }

    async fn told(log: &Arc<Log>, query: &str) -> String {
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
        let log = Log::new();
        log.print(Stream::Out, b"one\ntwo\n");
        log.print(Stream::Error, b"oh\n");
        log.end();
        for (query, said) in [
            ("", "one\ntwo\noh\n"),
            ("follow=true", "one\ntwo\noh\n"),
            ("tailLines=2", "two\noh\n"),
            ("tailLines=0", ""),
            ("limitBytes=6", "one\ntw"),
            ("sinceSeconds=1&follow=true", "one\ntwo\noh\n"),
            ("sinceTime=2999-01-01T00:00:00Z", ""),
        ] {
            assert_eq!(told(&log, query).await, said, "{query}");
        }
        let stamped = told(&log, "timestamps=1&tailLines=1").await;
        let (at, line) = stamped.split_once(' ').expect("a time and a line");
        assert_eq!(
            (at.len(), line),
            ("2026-01-02T03:04:05.000000000Z".len(), "oh\n")
        );
    }

    #[tokio::test]
    async fn what_is_lost_is_the_last_line_or_all() {
        let log = Log::new();
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
        for query in [
            "tailLines=-1",
            "tailLines=many",
            "limitBytes=0",
            "sinceSeconds=0",
            "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z",
            "sinceTime=yesterday",
        ] {
            assert_eq!(options(query), None, "{query}");
        }
        let far = options("sinceSeconds=18446744073709551615").expect("it is valid");
        assert_eq!(far.since, Some(Timestamp::MIN));
    }
}
