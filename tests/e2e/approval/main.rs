//! Approval: what an agent may do only when a person lets it, and every way round it that we know
//! of. Each refusal is in the audit log.

mod asking;
mod bypasses;
mod editing;
mod files;
mod frozen;
mod loading;
mod own_stops;
mod people;
mod reading;
mod reloading;
mod shown;
mod stops;
mod support;
mod tasks;
