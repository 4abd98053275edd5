//! Profiles, as clients ask for them.

use serde::{Deserialize, Serialize};

/// The sampled quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileMode {
    /// Processor time.
    Cpu,
    /// Wall-clock time.
    Time,
    /// Allocation.
    Alloc,
}
