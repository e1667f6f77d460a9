//! The page's clock: ms since 1970, and it never runs backwards.
//!
//! `Date.now()` jumps when the machine's clock is set; `performance.now()` does not. The
//! base is the server's own time when there is one, so that what clients report and what
//! objects report lie on one axis.

use std::cell::Cell;

/// A clock that never jumps.
#[derive(Debug)]
pub(crate) struct Clock {
    base_ms: Cell<f64>,
}

impl Clock {
    /// By this machine.
    pub(crate) fn local() -> Self {
        Self { base_ms: Cell::new(js_sys::Date::now() - uptime_ms()) }
    }

    /// By a server that has just said that it is `now_ms`.
    pub(crate) fn of_server(now_ms: u64) -> Self {
        Self { base_ms: Cell::new(now_ms as f64 - uptime_ms()) }
    }

    /// Now, in ms since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.base_ms.get() + uptime_ms()) as u64
    }
}

/// Ms since the page was opened.
pub(crate) fn uptime_ms() -> f64 {
    web_sys::window().and_then(|window| window.performance()).map_or(0.0, |clock| clock.now())
}
