//! `/containerLogs`: what a container has printed so far. It follows nothing and keeps no earlier
//! runs.

use super::query::Query;
use crate::pods::book::State;
use crate::pods::run::PodRun;

/// The log, or the words with which a kubelet refuses it.
pub(super) fn read(run: &PodRun, container: &str, query: &Query) -> Result<Vec<u8>, String> {
    let book = run.book();
    let mut containers = book.init.iter().chain(&book.containers);
    let Some(container) = containers.find(|known| known.name == container) else {
        return Err(format!(
            "container {container} not found in pod {}",
            run.key.name
        ));
    };
    if let State::Waiting { reason, .. } = &container.state
        && container.id.is_none()
    {
        let (name, pod) = (&container.name, &run.key.name);
        return Err(format!(
            "container \"{name}\" in pod \"{pod}\" is waiting to start: {reason}"
        ));
    }
    let number = |name: &str| {
        query
            .first(name)
            .and_then(|text| text.parse::<usize>().ok())
    };
    let mut log = container.log.clone();
    if let Some(lines) = number("tailLines") {
        log = tail(&log, lines).to_vec();
    }
    if let Some(bytes) = number("limitBytes") {
        log.truncate(bytes);
    }
    Ok(log)
}

fn tail(log: &[u8], lines: usize) -> &[u8] {
    let all: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let length: usize = all.iter().rev().take(lines).map(|line| line.len()).sum();
    &log[log.len() - length..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines() {
        assert_eq!(tail(b"a\nb\nc\n", 2), b"b\nc\n");
        assert_eq!(tail(b"a\nb", 1), b"b");
        assert_eq!(tail(b"a\n", 0), b"");
        assert_eq!(tail(b"", 3), b"");
    }
}
