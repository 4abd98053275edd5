//! The image alone, with a real SBCL: evaluation, checks, faults, and what is restored after a
//! death. Every test ends its image and looks that no process and no file of it is left.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod abandoned;
mod cache;
mod checks;
mod dap;
mod dap_clients;
mod dap_console;
mod dap_exceptions;
mod dap_frozen;
mod dap_meanwhile;
mod dap_nested;
mod dap_new_image;
mod dap_odd_places;
mod dap_recording;
mod dap_scenes;
mod dap_tests;
mod dap_threads;
mod debugging;
mod evaluation;
mod faults;
mod nvim_dap;
mod support;
mod worker;
