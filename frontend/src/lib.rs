//! The page: draws the log of a lab and lets a learner act in it.
//!
//! It owns no protocol rule: what it shows comes from `protocol`'s events, and what it
//! computes ("without this rule") it lets `protocol`'s machines compute.

pub mod components;
pub mod diagram;
pub mod explain;
pub mod narration;
pub mod playback;
