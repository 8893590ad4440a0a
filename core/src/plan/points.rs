//! The points a case is repeated over, and the case at one of them.

use super::check::Point;
use crate::facts::{IpFamily, NodeOrdinal, PoolName};
use crate::method::{AdmissionExpectation, Assertion, ContainerKind, SourceKind, Test, Workload};
use crate::suite::{Across, Over};

/// Every point of a case; `pools` are its cluster's pools, `to` the pools that each of them observes,
/// `second` the cluster's second family of addresses; `ring` gives the nodes of a pool that a kind of source
/// observes from.
pub(super) fn points(
    over: &Over,
    pools: &[Option<PoolName>],
    to: &[Option<PoolName>],
    second: Option<IpFamily>,
    ring: impl Fn(SourceKind, &PoolName) -> Vec<NodeOrdinal>,
) -> Vec<Point> {
    let sources = axis(over.sources.iter().copied());
    let workloads = axis(over.workloads.iter().copied());
    let containers = axis(over.containers.iter().copied());
    let values = axis(over.values.keys().cloned());
    let second = second.filter(|_| over.families);
    let mut points = Vec::new();
    let pairs = pools
        .iter()
        .flat_map(|pool| to.iter().map(move |to| (pool, to)));
    for (pool, to) in pairs {
        let places = sources.iter().flat_map(|source| {
            let each = source.and_then(|kind: SourceKind| Some((kind, kind.pool(pool.as_ref())?)));
            let each = each.filter(|_| over.across == Across::Nodes && pool.is_some());
            let nodes = axis(each.iter().flat_map(|(kind, pool)| ring(*kind, pool)));
            nodes.into_iter().map(move |node| (source, node))
        });
        for (source, node) in places {
            for workload in &workloads {
                for container in &containers {
                    // Only existing pods take ephemeral containers; no template has any
                    if *container == Some(ContainerKind::Ephemeral)
                        && workload.is_some_and(|workload| workload != Workload::Pod)
                    {
                        continue;
                    }
                    for value in &values {
                        let of = |family| Point {
                            pool: pool.clone(),
                            source: *source,
                            to: to.clone(),
                            node,
                            workload: *workload,
                            container: *container,
                            value: value.clone(),
                            family,
                        };
                        points.push(of(None));
                        points.extend(second.map(|second| of(Some(second))));
                    }
                }
            }
        }
    }
    points
}

/// The values on one axis; `None` alone where the case has none.
fn axis<T>(values: impl Iterator<Item = T>) -> Vec<Option<T>> {
    let values: Vec<_> = values.map(Some).collect();
    match values.is_empty() {
        true => vec![None],
        false => values,
    }
}

/// An assertion of a case at a point; `instead` replaces its expectation.
pub(super) fn at_point(
    test: &Test,
    over: &Over,
    point: &Point,
    instead: Option<&AdmissionExpectation>,
) -> Test {
    let Test::Admission(assertion) = test else {
        return test.clone();
    };
    let mut query = assertion.query.clone();
    query.workload = point.workload.unwrap_or(query.workload);
    query.container = point.container.unwrap_or(query.container);
    let value = point.value.as_ref().and_then(|name| over.values.get(name));
    query.value = value.cloned().or(query.value);
    let expectation = instead.unwrap_or(&assertion.expectation).for_query(&query);
    Test::Admission(Assertion { query, expectation })
}
