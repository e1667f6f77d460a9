//! The Worker.
