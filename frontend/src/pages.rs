//! One file for each route.

pub(crate) mod home;
pub(crate) mod lesson;
pub(crate) mod not_found;
