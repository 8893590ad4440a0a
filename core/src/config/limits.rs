//! Bounds on what runs at once and on what is kept.

/// Bounds on what runs at once and on what is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// API requests under way at once.
    pub api_in_flight: usize,
    /// Exec sessions under way at once.
    pub exec_sessions_in_flight: usize,
    /// Attempts of a check whose verdict would be news; up to four while no second one confirms it.
    pub attempts: u32,
    /// Consecutive good rounds of a check over the network before it counts.
    pub hold_rounds: u32,
    /// Nodes of a pool from each of which a run observes.
    pub nodes_observed_from: usize,
    /// Bytes kept of one answer of the API server; more is an error, not truncation.
    pub api_body: usize,
    /// Bytes kept of one exec's output stream.
    pub exec_output: usize,
    /// Bytes of one answer kept in the record.
    pub recorded_reply: usize,
    /// Assertions in one exec session. A session that breaks loses all of them, and the first assertion waits
    /// for the last. Nothing else limits their number: curl reads its targets from standard input, not from a
    /// command line, and output that is too much for one exec is divided among several (`curl::fitting`,
    /// `ping::session::MOST`; in halves where there is more than expected). Linux pods make 117 assertions in
    /// two families about three Windows pools, by 451 requests that send 145 kB and receive 102 kB.
    pub assertions_per_exec_session: usize,
    /// How often an exec is started, in all, while its transport fails or its output is lost.
    pub exec_tries: u32,
    /// How often the kubelet retries a pull or a start before its failure is final.
    pub kubelet_retries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            api_in_flight: 16,
            exec_sessions_in_flight: 32,
            attempts: 2,
            hold_rounds: 2,
            nodes_observed_from: 16,
            api_body: 64 << 20,
            exec_output: 1 << 20,
            recorded_reply: 4 << 10,
            assertions_per_exec_session: 256,
            exec_tries: 4,
            kubelet_retries: 3,
        }
    }
}
