//! A simulated hybrid Kubernetes cluster: nodes, their network, their programs, and what can be wrong with them.
//!
//! The nodes join a real API server as clients of it. Scheduling, controllers and admission are the real ones; what
//! a kubelet, a container runtime, a network and the containers' programs do is simulated here. Nothing in this
//! crate knows the tool that looks at the cluster.
//!
//! | to change | open |
//! |---|---|
//! | which nodes there are | `topology/` |
//! | what can be wrong | `fault/kind.rs`, and the place that asks for the fault |
//! | how nodes join and leave | `nodes/join/`, `nodes/node/` |
//! | how a pod lives | `pods/course/`, `pods/container.rs`; what is told of it: `pods/reporting/` |
//! | which images run where | `nodes/image.rs` |
//! | the files of a container | `nodes/files.rs` |
//! | what a connection comes to | `network/`, names in `names/` |
//! | how clients outside come in | `wire/` |
//! | which command lines containers know | `program/forms.rs`; when what they print comes: `nodes/play.rs` |
//! | exec, logs and statistics | `nodes/kubelet/`; what is kept of a log: `base/log.rs` |
//! | all of it in memory, in a time of its own | `wire/loopback.rs` |
//! | what interferes on the way to the API server | `interference/` |
//! | an API server of the simulation's own | `server/` |
//!
//! Everything listens on loopback only. Time passes through `base/clock.rs` alone.

pub(crate) mod base;
mod fault;
pub mod interference;
mod names;
mod network;
pub(crate) mod nodes;
mod pods;
mod program;
pub mod server;
mod topology;
pub(crate) mod wire;
mod world;

pub use fault::{
    FaultInfo, FaultKind, FaultPlan, FaultSet, FaultSwitch, Misfit, Parameter, Place, ProductFault,
    TimedFault, UnknownFault,
};
pub use nodes::join::{JoinError, JoinOptions, Joined, LeaveError, Unreached, join};
pub use nodes::kubelet::ServingError;
pub use nodes::traces::Traces;
pub use program::{ImageOn, simulates};
pub use topology::{
    Build, IpFamilies, NamedTopology, NetworkMode, NetworkSpec, NodeSpec, Os, Pool, TaintSpec,
    Topology, UnknownPool,
};
pub use wire::loopback::{Loopback, Stream};
