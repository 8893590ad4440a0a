//! How much of everything at once, and how much is kept.

/// Bounds on what runs at once and on what is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// API requests under way at once.
    pub api_in_flight: usize,
    /// Places that are observed from at once.
    pub exec_sessions_in_flight: usize,
    /// Attempts of a check whose verdict would be news; up to four while no second one confirms it.
    pub attempts: u32,
    /// Consecutive good rounds of a check over the network before it counts.
    pub hold_rounds: u32,
    /// Nodes of a pool that are each observed from.
    pub nodes_observed_from: usize,
    /// Bytes kept of one answer of the API server; more is an error, not truncation.
    pub api_body: usize,
    /// Bytes kept of one exec's output stream.
    pub exec_output: usize,
    /// Bytes of one answer kept in the record.
    pub recorded_reply: usize,
    /// Assertions made in one exec session. All that a session was to tell is lost with it, and the first assertion
    /// waits for the last. Nothing else binds it: curl reads its targets from standard input, not from
    /// a command line, and what is too much for one exec's output goes by several (`curl::fitting`,
    /// `ping::session::MOST`; by halves where more comes than was expected). From Linux pods 117 assertions are made in two families at three Windows
    /// pools, by 451 requests that send 145 kB and bring 102 kB.
    pub assertions_per_exec_session: usize,
    /// How often an exec is begun, in all, while its transport fails or its output is lost.
    pub exec_tries: u32,
    /// Times the kubelet tries a pull or a start again before its failing is final.
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
