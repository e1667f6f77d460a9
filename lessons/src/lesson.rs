//! One lesson, as the page loads it from `/lessons/NN-slug.json`.
//!
//! Prose is HTML that was made from Markdown at build time and can be trusted as such.
//! The script is text; the page parses it ([`crate::script::parse`]) and runs it.

use serde::{Deserialize, Serialize};

use crate::catalogue::Entry;

/// A whole lesson.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lesson {
    /// What the catalogue says of it.
    pub entry: Entry,
    /// The sections of the papers it is about: `L §5`.
    pub paper: Vec<String>,
    /// The cases of the review it replays: `C1`, `FC-05`.
    pub cases: Vec<String>,
    /// The claims of the papers that it tests, by id.
    pub claims: Vec<String>,
    /// What you will see.
    pub intro_html: String,
    /// The settings under which the script runs, first the default; the same ids as in the
    /// script.
    pub variants: Vec<VariantProse>,
    /// One entry for every step of the script, in its order.
    pub steps: Vec<StepProse>,
    /// What to take away.
    pub debrief_html: String,
    /// The lines of source that decide.
    pub sources: Vec<SourceLink>,
    /// The script.
    pub script: String,
}

impl Lesson {
    /// The prose of a step.
    pub fn step(&self, id: &str) -> Option<&StepProse> {
        self.steps.iter().find(|step| step.id == id)
    }
}

/// What is said about a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantProse {
    /// As in the script.
    pub id: String,
    /// On the switch.
    pub title: String,
    /// Which rule is different, and what to watch for.
    pub html: String,
    /// The seconds that a live run waits, rounded up.
    pub live_seconds: u32,
}

/// The prose of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepProse {
    /// As in the script.
    pub id: String,
    /// As in the script.
    pub title: String,
    /// In every variant.
    pub html: String,
    /// In addition, in one variant.
    pub variant_html: Vec<VariantHtml>,
    /// The questions that can come before the step; the script says which one does.
    pub predictions: Vec<Prediction>,
}

impl StepProse {
    /// What is said in this variant only.
    pub fn in_variant(&self, variant: &str) -> Option<&str> {
        let found = self.variant_html.iter().find(|one| one.variant == variant);
        found.map(|one| one.html.as_str())
    }

    /// The question with this id.
    pub fn prediction(&self, id: &str) -> Option<&Prediction> {
        self.predictions.iter().find(|prediction| prediction.id == id)
    }
}

/// Prose that belongs to one variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantHtml {
    /// Which.
    pub variant: String,
    /// What.
    pub html: String,
}

/// A question to answer before the decisive step runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// As in the script.
    pub id: String,
    /// The question.
    pub question_html: String,
    /// Three or four answers; exactly one is right.
    pub options: Vec<PredictionOption>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredictionOption {
    /// What will happen, as the script calls it: `applied`, `fenced`. The run decides
    /// whether it did; a golden test checks that the right answer is the one.
    pub outcome: String,
    /// What will happen and why, in the reader's words.
    pub text_html: String,
    /// Why that is right, or not.
    pub explanation_html: String,
    /// Whether it is.
    pub right: bool,
}

/// A line of source that a lesson points at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLink {
    /// What it is.
    pub label: String,
    /// The file, from the root of the repository.
    pub file: String,
    /// The function, type or field.
    pub anchor: String,
    /// Where it begins, from 1.
    pub line: u32,
}
