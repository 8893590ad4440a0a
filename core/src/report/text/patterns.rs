//! Patterns of checks, as `--select` takes them.

/// The checks of one case and one pool.
pub(crate) fn pattern(id: &str) -> String {
    let (case, point) = id.split_once('[').unwrap_or((id, ""));
    let pool = point
        .split([',', ']'])
        .find(|value| value.starts_with("pool="));
    match pool {
        Some(pool) => format!("{case}[{pool}*"),
        None => format!("{case}[*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_one_case_and_one_pool() {
        let id = "net.dns-search/each-node[pool=windows-2022,source=windows-pod,node=1]";
        assert_eq!(pattern(id), "net.dns-search/each-node[pool=windows-2022*");
        assert_eq!(pattern("reject.hostPID[workload=pod]"), "reject.hostPID[*");
    }
}
