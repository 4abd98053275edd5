//! Approval: operations of an agent that need a person's permission, and every known attempt to
//! bypass it. Each refusal is in the audit log.

mod agent_at_stops;
mod agent_breakpoints;
mod agent_scenes;
mod asking;
mod bypasses;
mod editing;
mod files;
mod frozen;
mod inspecting;
mod loading;
mod people;
mod reading;
mod reloading;
mod shown;
mod stops;
mod support;
mod tasks;
