//! A simulated hybrid Kubernetes cluster: nodes, their network, their programs, and what can be wrong with them.
//!
//! The nodes join a real API server as clients of it. Scheduling, controllers and admission are the real ones; what
//! a kubelet, a container runtime, a network and the containers' programs do is simulated here. Nothing in this
//! crate knows the tool that looks at the cluster.
//!
//! | to change | open |
//! |---|---|
//! | which nodes there are | `topology.rs` |
//! | what can be wrong | `fault/kind.rs`, and the place that asks for the fault |
//! | how nodes join and leave | `join.rs`, `node.rs` |
//! | how a pod lives | `pods/life.rs`, `pods/container.rs`, `pods/probe.rs`; what is told of it: `pods/book.rs` |
//! | which images run where | `image.rs` |
//! | the files of a container | `files.rs` |
//! | what a connection comes to | `network.rs`, names in `names.rs` |
//! | how clients outside come in | `proxy.rs`, `listen.rs` |
//! | which command lines containers know | `program/forms.rs`; when what they print comes: `play.rs` |
//! | exec, logs and statistics | `kubelet/`; what is kept of a log: `log.rs` |
//! | all of it in memory, in a time of its own | `loopback.rs` |
//! | what interferes on the way to the API server | `interference/` |
//! | an API server of the simulation's own | `server/` |
//!
//! Everything listens on loopback only. Time passes through `clock.rs` alone.

mod chance;
mod clock;
mod cluster;
mod dns;
mod families;
mod fault;
mod fields;
mod files;
mod given;
mod image;
pub mod interference;
mod join;
mod kubelet;
mod listen;
mod lock;
mod log;
mod loopback;
mod names;
mod nearest;
mod network;
mod node;
mod placing;
mod play;
mod pods;
mod program;
mod proxy;
mod query;
pub mod server;
mod topology;
mod traces;
mod world;

pub use fault::{
    FaultInfo, FaultKind, FaultPlan, FaultSet, FaultSwitch, Misfit, Parameter, Place, ProductFault,
    TimedFault, UnknownFault,
};
pub use join::{JoinError, JoinOptions, Joined, LeaveError, Unreached, join};
pub use kubelet::ServingError;
pub use loopback::{Loopback, Stream};
pub use program::{ImageOn, simulates};
pub use topology::{
    Build, IpFamilies, NamedTopology, NetworkMode, NetworkSpec, NodeSpec, Os, Pool, TaintSpec,
    Topology, UnknownPool,
};
pub use traces::Traces;
