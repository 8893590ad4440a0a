//! How long resolvers wait for servers that are silent or slow: when each asks whom, and until when
//! an answer counts.

use std::time::Duration;

use super::Resolver;
use crate::topology::Os;

/// One question on its way.
struct Sent {
    at: Duration,
    to: usize,
    /// An answer that arrives later is lost.
    until: Duration,
}

/// What became of one name's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    /// The server whose answer came first; `None` where none came in time.
    pub(super) server: Option<usize>,
    pub(super) after: Duration,
}

/// Asks servers that each answer after a while, or never.
pub(super) fn exchange(by: Resolver, os: Os, servers: &[Option<Duration>]) -> Heard {
    let (sent, given_up) = questions(by, os, servers.len());
    let answers = sent.iter().filter_map(|sent| {
        let after = sent.at + (*servers.get(sent.to)?)?;
        (after < sent.until).then_some((after, sent.to))
    });
    match answers.min_by_key(|(after, _)| *after) {
        Some((after, server)) => Heard {
            server: Some(server),
            after,
        },
        None => Heard {
            server: None,
            after: given_up,
        },
    }
}

/// All questions for one name, and when the resolver gives up.
fn questions(by: Resolver, os: Os, servers: usize) -> (Vec<Sent>, Duration) {
    match (by, os) {
        (_, _) if servers == 0 => (Vec::new(), Duration::ZERO),
        (_, Os::Windows) => windows(servers),
        // resolv.conf(5): `timeout:5`, `attempts:2`. glibc, resolv/res_send.c: a further server gets
        // twice what the one before has, divided by how many there are, in whole seconds
        (Resolver::System, Os::Linux) => rounds(servers, 2, |_, server| {
            let doubled = 5 << server.min(8);
            let share = if server > 0 {
                doubled / servers
            } else {
                doubled
            };
            1_000 * share.max(1)
        }),
        // c-ares from 1.20, ares_process.c: 2 s, doubled in each of three rounds; it takes something
        // off by chance, and this does not
        (Resolver::Cares, Os::Linux) => rounds(servers, 3, |round, _| 2_000 << round),
    }
}

/// One server after another, each given some milliseconds, and again from the first.
fn rounds(
    servers: usize,
    many: usize,
    patience: impl Fn(usize, usize) -> usize,
) -> (Vec<Sent>, Duration) {
    let mut at = Duration::ZERO;
    let mut all = Vec::new();
    for round in 0..many {
        for to in 0..servers {
            let wait = u64::try_from(patience(round, to)).unwrap_or(u64::MAX);
            let until = at + Duration::from_millis(wait);
            all.push(Sent { at, to, until });
            at = until;
        }
    }
    (all, at)
}

/// Microsoft, "DNS client resolution timeouts" (2834226), with a trace of each: one server is asked
/// after 0, 1, 2, 4 and 8 s; of two the first, then the second twice; of more the first, the second
/// and the third; from 4 s on all of them; after 10 s it is over.
fn windows(servers: usize) -> (Vec<Sent>, Duration) {
    let until = Duration::from_secs(10);
    let last = servers - 1;
    let sent = [
        (0, 0..1),
        (1, 1..2),
        (2, 2..3),
        (4, 0..servers),
        (8, 0..servers),
    ];
    let sent = sent.into_iter().flat_map(|(at, to)| {
        let at = Duration::from_secs(at);
        to.map(move |to| Sent {
            at,
            to: to.min(last),
            until,
        })
    });
    (sent.collect(), until)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEAD: Option<Duration> = None;

    const PROMPT: Option<Duration> = Some(Duration::from_millis(2));

    fn heard(by: Resolver, os: Os, servers: &[Option<Duration>]) -> (Option<usize>, u128) {
        let heard = exchange(by, os, servers);
        (heard.server, heard.after.as_millis())
    }

    #[test]
    fn each_gives_up_in_its_own_time() {
        let (linux, windows) = (Os::Linux, Os::Windows);
        for (by, os, dead, given_up) in [
            (Resolver::System, linux, 1, 10_000),
            (Resolver::System, linux, 2, 20_000),
            (Resolver::System, linux, 3, 28_000),
            (Resolver::Cares, linux, 1, 14_000),
            (Resolver::System, windows, 1, 10_000),
            (Resolver::System, windows, 3, 10_000),
            (Resolver::System, linux, 0, 0),
        ] {
            let seen = heard(by, os, &vec![DEAD; dead]);
            assert_eq!(seen, (None, given_up), "{by:?} on {os:?}, {dead} servers");
        }
    }

    #[test]
    fn the_second_server_is_heard_when_its_turn_comes() {
        for (by, os, millis) in [
            (Resolver::System, Os::Linux, 5_002),
            (Resolver::Cares, Os::Linux, 2_002),
            (Resolver::System, Os::Windows, 1_002),
        ] {
            let seen = heard(by, os, &[DEAD, PROMPT]);
            assert_eq!(seen, (Some(1), millis), "{by:?} on {os:?}");
        }
        let third = [DEAD, DEAD, PROMPT];
        assert_eq!(
            heard(Resolver::System, Os::Windows, &third),
            (Some(2), 2_002)
        );
    }

    #[test]
    fn windows_asks_as_its_traces_show() {
        let asked = |servers| {
            let (sent, _) = questions(Resolver::System, Os::Windows, servers);
            let each = sent.iter().map(|sent| (sent.at.as_secs(), sent.to + 1));
            each.collect::<Vec<_>>()
        };
        assert_eq!(asked(1), [(0, 1), (1, 1), (2, 1), (4, 1), (8, 1)]);
        let both = [(0, 1), (1, 2), (2, 2), (4, 1), (4, 2), (8, 1), (8, 2)];
        assert_eq!(asked(2), both);
        let (first, then) = ([(0, 1), (1, 2), (2, 3)], [4, 8]);
        let all = then
            .into_iter()
            .flat_map(|at| (1..=5).map(move |to| (at, to)));
        assert_eq!(asked(5), first.into_iter().chain(all).collect::<Vec<_>>());
    }

    #[test]
    fn a_slow_answer_counts_as_long_as_it_is_waited_for() {
        for (by, os, millis, expected) in [
            (Resolver::System, Os::Linux, 4_000, (Some(0), 4_000)),
            (Resolver::System, Os::Linux, 5_000, (None, 10_000)),
            (Resolver::Cares, Os::Linux, 3_000, (Some(0), 5_000)),
            (Resolver::System, Os::Windows, 9_999, (Some(0), 9_999)),
            (Resolver::System, Os::Windows, 10_000, (None, 10_000)),
        ] {
            let seen = heard(by, os, &[Some(Duration::from_millis(millis))]);
            assert_eq!(seen, expected, "{by:?} on {os:?}, {millis} ms");
        }
    }
}
