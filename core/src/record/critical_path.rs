//! The critical path: the longest chain of spans of which each waits for the one before. A run that waits
//! for nothing else takes this long, whatever it does in parallel.

use std::collections::BTreeMap;

use super::fold::RunView;
use super::span::{Activity, Span};

/// The chain of spans that sets the shortest time the run could take.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CriticalPath<'v> {
    /// The time of its spans and of the pauses between them, in milliseconds.
    pub took_ms: u64,
    /// Its spans in order.
    pub spans: Vec<&'v Span>,
}

/// A run's critical path. `None` where it would mislead: for a run without spans, for a run that did not end
/// normally, and for a run with repetitions, since the record has spans of the first repetition only.
pub fn critical_path(view: &RunView) -> Option<CriticalPath<'_>> {
    let whole = view.ended.is_some()
        && view.interrupted.is_none()
        && view.deadline.is_none()
        && view.repetitions == 1;
    whole.then(|| longest(&view.spans)).flatten()
}

/// The longest chain of spans, each of which names the one before it in its `after`.
fn longest(spans: &[Span]) -> Option<CriticalPath<'_>> {
    // By span number: its earliest possible end, and the span that it waits for longest
    let mut over: BTreeMap<u32, (u64, Option<u32>)> = BTreeMap::new();
    let by_id: BTreeMap<u32, &Span> = spans.iter().map(|span| (span.id, span)).collect();
    for (id, span) in &by_id {
        let named = span.after.iter().filter_map(|after| {
            let (end, _) = over.get(&after.id)?;
            Some((end.saturating_add(after.pause_ms), after.id))
        });
        let latest = match span.what {
            Activity::TearDown => over.iter().map(|(id, (end, _))| (*end, *id)).max(),
            _ => named.max(),
        };
        let (begins, before) = latest.map_or((0, None), |(end, id)| (end, Some(id)));
        over.insert(*id, (begins.saturating_add(span.took_ms), before));
    }
    let (took_ms, last) = over.iter().map(|(id, (end, _))| (*end, *id)).max()?;
    let chain = std::iter::successors(Some(last), |id| over.get(id)?.1);
    let mut spans: Vec<_> = chain.filter_map(|id| by_id.get(&id).copied()).collect();
    spans.reverse();
    Some(CriticalPath { took_ms, spans })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::After;

    fn span(id: u32, what: Activity, took_ms: u64, after: &[(u32, u64)]) -> Span {
        let after = after
            .iter()
            .map(|(id, pause_ms)| After {
                id: *id,
                pause_ms: *pause_ms,
            })
            .collect();
        Span {
            id,
            what,
            began_ms: 0,
            took_ms,
            after,
        }
    }

    fn found(spans: &[Span]) -> (u64, Vec<u32>) {
        let path = longest(spans).expect("there are spans");
        let ids = path.spans.iter().map(|span| span.id).collect();
        (path.took_ms, ids)
    }

    #[test]
    fn nothing_has_no_path() {
        assert_eq!(longest(&[]), None);
    }

    #[test]
    fn the_longest_chain_counts_and_not_the_longest_span() {
        let spans = [
            span(0, Activity::Plan, 10, &[]),
            span(1, Activity::Request, 50, &[(0, 0)]),
            span(2, Activity::Request, 30, &[(0, 0)]),
            span(3, Activity::Request, 30, &[(2, 0)]),
        ];
        assert_eq!(found(&spans), (70, vec![0, 2, 3]));
    }

    #[test]
    fn what_runs_side_by_side_counts_once() {
        let spans = [
            span(0, Activity::Request, 40, &[]),
            span(1, Activity::Request, 41, &[]),
            span(2, Activity::Request, 5, &[(0, 0), (1, 0)]),
        ];
        assert_eq!(found(&spans), (46, vec![1, 2]));
    }

    #[test]
    fn pauses_count_where_they_were_due() {
        let spans = [
            span(0, Activity::Request, 10, &[]),
            span(1, Activity::Request, 30, &[]),
            span(2, Activity::Request, 1, &[(0, 25), (1, 0)]),
        ];
        assert_eq!(found(&spans), (36, vec![0, 2]));
    }

    #[test]
    fn spans_are_written_as_they_end_and_taken_as_they_began() {
        let spans = [
            span(1, Activity::Request, 5, &[(0, 0)]),
            span(0, Activity::Plan, 10, &[]),
        ];
        assert_eq!(found(&spans), (15, vec![0, 1]));
    }

    #[test]
    fn tear_down_waits_for_what_nothing_else_waited_for() {
        let spans = [
            span(0, Activity::Request, 10, &[]),
            span(1, Activity::Request, 20, &[]),
            span(2, Activity::TearDown, 7, &[]),
        ];
        assert_eq!(found(&spans), (27, vec![1, 2]));
    }

    #[test]
    fn what_waits_on_something_unheard_of_or_later_is_not_delayed_by_it() {
        let spans = [
            span(0, Activity::Request, 10, &[(1, 5), (9, 5), (0, 3)]),
            span(1, Activity::Request, 4, &[(0, 0)]),
        ];
        assert_eq!(found(&spans), (14, vec![0, 1]));
    }

    #[test]
    fn times_beyond_all_bounds_stay_at_the_bound() {
        let spans = [
            span(0, Activity::Request, u64::MAX, &[]),
            span(1, Activity::Request, u64::MAX, &[(0, u64::MAX)]),
        ];
        assert_eq!(found(&spans).0, u64::MAX);
    }
}
