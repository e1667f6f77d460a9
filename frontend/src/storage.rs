//! What the browser keeps between visits: progress, the lab and place of each lesson, the
//! theme. Nothing here is needed: with storage switched off, the page forgets, that is all.
//!
//! Invariant: what is kept is small and never the log; the log is the lab's.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const PREFIX: &str = "fencepost.";

/// Where the learner is in a lesson.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The lab in which it runs.
    pub(crate) lab: String,
    /// Which variant of the script.
    pub(crate) variant: String,
    /// Which step is open; 0 is the introduction.
    pub(crate) step: usize,
    /// The option chosen, by question.
    #[serde(default)]
    pub(crate) answers: BTreeMap<String, usize>,
    /// A step was being run when this was kept.
    #[serde(default)]
    pub(crate) running: bool,
}

/// How far a learner ever got in a lesson.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// The furthest step.
    pub(crate) step: usize,
    /// How many there are.
    pub(crate) of: usize,
}

impl Progress {
    /// Whether the lesson was taken to its end.
    pub(crate) fn is_done(self) -> bool {
        self.of > 0 && self.step >= self.of
    }
}

/// The lesson's place, if there is one.
pub(crate) fn place(slug: &str) -> Option<Place> {
    get(&format!("place.{slug}"))
}

/// Keeps a lesson's place.
pub(crate) fn set_place(slug: &str, place: &Place) {
    set(&format!("place.{slug}"), place);
}

/// Progress of every lesson, by slug.
pub(crate) fn all_progress() -> BTreeMap<String, Progress> {
    get("progress").unwrap_or_default()
}

/// Keeps the furthest step of a lesson; going back does not lose it.
pub(crate) fn note_progress(slug: &str, reached: Progress) {
    let mut all = all_progress();
    let known = all.entry(slug.to_owned()).or_default();
    if reached.step > known.step || reached.of != known.of {
        *known = Progress { step: reached.step.max(known.step), of: reached.of };
        set("progress", &all);
    }
}

/// The theme chosen: `light` or `dark`; nothing when the system decides.
pub(crate) fn theme() -> Option<String> {
    get("theme")
}

/// Keeps the theme.
pub(crate) fn set_theme(theme: Option<&str>) {
    set("theme", &theme);
}

fn storage() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok().flatten()
}

fn get<T: DeserializeOwned>(key: &str) -> Option<T> {
    let text = storage()?.get_item(&format!("{PREFIX}{key}")).ok().flatten()?;
    serde_json::from_str(&text).ok()
}

fn set<T: Serialize>(key: &str, value: &T) {
    if let (Some(storage), Ok(text)) = (storage(), serde_json::to_string(value)) {
        let _ = storage.set_item(&format!("{PREFIX}{key}"), &text);
    }
}
