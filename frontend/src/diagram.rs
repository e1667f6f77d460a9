//! Geometry of the two pictures, in plain Rust: no reactive types, no DOM.
//!
//! [`tracks`] and [`lanes`] are the space-time diagram, [`stage`] and [`motion`] the
//! stage. All of them give pixels; the components turn pixels into SVG.

pub mod lanes;
pub mod labels;
pub mod measure;
pub mod motion;
pub mod stage;
pub mod tracks;
