//! The reusable parts of the page. Each takes plain values and signals and reports by
//! callback; none fetches (except `source`, which reads a static file) or knows a route.

pub mod invariant_strip;
pub mod lanes;
pub mod rejection_card;
pub mod source;
pub mod stage;
pub mod tables;
pub mod transcript;

pub(crate) mod badge;
pub(crate) mod fault_tray;
pub(crate) mod header;
pub(crate) mod icon;
pub(crate) mod keys;
pub(crate) mod notice;
pub(crate) mod prediction;
pub(crate) mod tabs;
pub(crate) mod theme;
pub(crate) mod transport;
