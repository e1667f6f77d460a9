//! The page: draws the log of a lab and lets a learner act in it.
//!
//! It owns no protocol rule: what it shows comes from `protocol`'s events, and what it
//! computes ("without this rule") it lets `protocol`'s machines compute.
//!
//! Reading order: [`playback`] (the log, and what it looks like at a cursor) is plain Rust,
//! as are [`diagram`], [`narration`] and [`explain`]. `session` is the one place with ground
//! state; `live`, `socket` and `api` reach the lab; `pages` and [`components`] draw.
#![allow(
    unreachable_pub,
    reason = "the component macro makes a public struct of properties for every component"
)]

pub mod components;
pub mod diagram;
pub mod explain;
pub mod narration;
pub mod playback;
#[cfg(test)]
mod rehearsal;

mod api;
mod app;
mod arrival;
mod clock;
mod live;
mod pages;
mod session;
mod socket;
mod storage;

/// Puts the page on the document's body.
pub fn mount() {
    // Without this a mistake in the page would be the one word "unreachable".
    std::panic::set_hook(Box::new(|panic| {
        web_sys::console::error_1(&panic.to_string().into());
    }));
    leptos::mount::mount_to_body(app::App);
}
