//! Programs of Windows.

pub(super) mod ipconfig;
#[cfg(test)]
pub(super) mod network_table;
pub(super) mod powershell;
pub(super) mod system;
