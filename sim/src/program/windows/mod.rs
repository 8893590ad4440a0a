//! Programs of Windows.

pub(crate) mod folder;
pub(crate) mod host;
pub(crate) mod ipconfig;
#[cfg(test)]
pub(crate) mod network_table;
pub(crate) mod pipe;
pub(crate) mod powershell;
pub(crate) mod share;
pub(crate) mod system;
