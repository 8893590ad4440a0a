//! The simulator beside a real control plane: its nodes joined to one, its API server beside one, its Linux node
//! beside a real one. Each says that it was not run where it is given none.

mod differential;
mod joined;
mod real_node;
