//! A simulated hybrid Kubernetes cluster: nodes, their network, their programs, and the faults of each.
//!
//! The simulated nodes join a real API server as its clients, so scheduling, controllers and admission are
//! real. This crate simulates what a kubelet, a container runtime, a network and the programs in containers
//! do. No code here knows the tool that checks the cluster.
//!
//! | to change | open |
//! |---|---|
//! | which nodes there are | `topology/` |
//! | which faults there are | `fault/kind.rs`, and the code that asks for the fault |
//! | how nodes join and leave | `nodes/join/`, `nodes/node/` |
//! | the life of a pod | `pods/course/`, `pods/container.rs`; its reported status: `pods/reporting/` |
//! | which images run where | `nodes/image.rs` |
//! | the files of a container | `nodes/files.rs` |
//! | the outcome of a connection | `network/`, of a name: `names/` |
//! | how outside clients connect | `wire/` |
//! | which command lines containers know | `program/forms.rs`; when their output appears: `nodes/play.rs` |
//! | exec, logs and statistics | `nodes/kubelet/`; how much of a log is kept: `base/log.rs` |
//! | running everything in memory, on simulated time | `wire/loopback.rs` |
//! | interference on the way to the API server | `interference/` |
//! | the embedded API server | `server/` |
//!
//! All listeners bind to loopback only. All waiting goes through `base/clock.rs`.

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
    ApiSpec, Build, Effect, IpFamilies, NamedTopology, NetworkMode, NetworkSpec, NodeSpec, Os,
    Pool, SecurityGroup, TaintSpec, Topology, UnknownPool, letters,
};
pub use wire::loopback::{Loopback, Stream};
