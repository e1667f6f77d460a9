//! One Markdown file, taken apart: front matter, introduction, variants, steps, debrief.
//!
//! ```text
//! ---
//! number: 3
//! title: The paused holder
//! ---
//! What you will see.
//!
//! ## variant strict
//! ## step wakes
//! ### in strict
//! ### predict wakes
//! What will happen, and why?
//! - [x] applied: It is stored.
//!   Right: …
//! - [ ] fenced: It is refused.
//!   No: …
//! ## debrief
//! ## sources
//! - the guard: worker/protocol/src/fence.rs#admit
//! ```

use std::collections::BTreeMap;

use super::markdown::Links;
use crate::catalogue::Part;
use crate::lesson::{Prediction, PredictionOption};

/// What stands at the head of the file.
#[derive(Clone, Debug)]
pub(super) struct Front {
    pub(super) number: u32,
    pub(super) title: String,
    pub(super) part: Part,
    pub(super) summary: String,
    pub(super) minutes: u32,
    pub(super) paper: Vec<String>,
    pub(super) cases: Vec<String>,
    pub(super) claims: Vec<String>,
}

/// The whole file.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) front: Front,
    pub(super) intro: String,
    pub(super) variants: BTreeMap<String, String>,
    pub(super) steps: BTreeMap<String, StepText>,
    pub(super) debrief: String,
    pub(super) sources: Vec<(String, String)>,
}

/// What is said about one step.
#[derive(Clone, Debug, Default)]
pub(super) struct StepText {
    pub(super) text: String,
    pub(super) in_variant: BTreeMap<String, String>,
    pub(super) questions: Vec<Question>,
}

/// One question.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) options: Vec<Answer>,
}

/// One answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) right: bool,
    pub(super) outcome: String,
    pub(super) text: String,
    pub(super) explanation: String,
}

impl Question {
    pub(super) fn publish(&self, links: &mut Links) -> Prediction {
        let options = self.options.iter().map(|answer| PredictionOption {
            outcome: answer.outcome.clone(),
            text_html: links.inline_html(&answer.text),
            explanation_html: links.inline_html(&answer.explanation),
            right: answer.right,
        });
        Prediction {
            id: self.id.clone(),
            options: options.collect(),
            question_html: links.inline_html(&self.text),
        }
    }
}

/// Where the lines that follow belong.
enum Place {
    Intro,
    Variant(String),
    Step(String),
    StepIn(String, String),
    Question(String),
    Debrief,
    Sources,
}

impl Page {
    pub(super) fn parse(markdown: &str) -> Result<Self, String> {
        let rest = markdown.strip_prefix("---\n").ok_or("begin with front matter: ---")?;
        let (front, body) = rest.split_once("\n---\n").ok_or("close the front matter with ---")?;
        let mut page = Self {
            front: Front::parse(front)?,
            intro: String::new(),
            variants: BTreeMap::new(),
            steps: BTreeMap::new(),
            debrief: String::new(),
            sources: Vec::new(),
        };
        let mut place = Place::Intro;
        for line in body.lines() {
            match line.strip_prefix("##") {
                Some(heading) => place = page.open(&place, heading)?,
                None => page.add(&place, line)?,
            }
        }
        Ok(page)
    }

    fn open(&mut self, place: &Place, heading: &str) -> Result<Place, String> {
        let bad = || {
            format!(
                "##{heading}: use `## variant x`, `## step x`, `## debrief`, `## sources`, and below a step `### in x` or `### predict x`"
            )
        };
        let words: Vec<_> = heading.split_whitespace().collect();
        match (words.as_slice(), place) {
            (["variant", id], _) => Ok(Place::Variant((*id).to_owned())),
            (["step", id], _) => {
                self.steps.insert((*id).to_owned(), StepText::default());
                Ok(Place::Step((*id).to_owned()))
            }
            (["debrief"], _) => Ok(Place::Debrief),
            (["sources"], _) => Ok(Place::Sources),
            (
                ["#", what, id],
                Place::Step(step) | Place::StepIn(step, _) | Place::Question(step),
            ) => match *what {
                "in" => Ok(Place::StepIn(step.clone(), (*id).to_owned())),
                "predict" => {
                    let question = Question { id: (*id).to_owned(), ..Question::default() };
                    self.steps.entry(step.clone()).or_default().questions.push(question);
                    Ok(Place::Question(step.clone()))
                }
                _ => Err(bad()),
            },
            _ => Err(bad()),
        }
    }

    fn add(&mut self, place: &Place, line: &str) -> Result<(), String> {
        let push = |text: &mut String| {
            text.push_str(line);
            text.push('\n');
        };
        match place {
            Place::Intro => push(&mut self.intro),
            Place::Variant(id) => push(self.variants.entry(id.clone()).or_default()),
            Place::Step(id) => push(&mut self.steps.entry(id.clone()).or_default().text),
            Place::StepIn(id, variant) => {
                let step = self.steps.entry(id.clone()).or_default();
                push(step.in_variant.entry(variant.clone()).or_default());
            }
            Place::Question(id) => {
                let step = self.steps.entry(id.clone()).or_default();
                if let Some(question) = step.questions.last_mut() {
                    question.add(line)?;
                }
            }
            Place::Debrief => push(&mut self.debrief),
            Place::Sources if line.is_empty() => {}
            Place::Sources => {
                let item = line.strip_prefix("- ").and_then(|item| item.split_once(": "));
                let (label, target) =
                    item.ok_or_else(|| format!("{line}: write `- the guard: file.rs#admit`"))?;
                self.sources.push((label.to_owned(), target.to_owned()));
            }
        }
        Ok(())
    }
}

impl Question {
    fn add(&mut self, line: &str) -> Result<(), String> {
        let bad = || {
            format!("{line}: write `- [x] applied: It is stored.`, its explanation below, indented")
        };
        let marked = line.strip_prefix("- [x] ").map(|rest| (true, rest));
        let marked = marked.or_else(|| line.strip_prefix("- [ ] ").map(|rest| (false, rest)));
        if let Some((right, rest)) = marked {
            let (outcome, text) = rest.split_once(": ").ok_or_else(bad)?;
            let (outcome, text) = (outcome.to_owned(), text.to_owned());
            self.options.push(Answer { right, outcome, text, explanation: String::new() });
            return Ok(());
        }
        let text = match self.options.last_mut() {
            None => &mut self.text,
            Some(_) if !line.is_empty() && !line.starts_with("  ") => return Err(bad()),
            Some(answer) => &mut answer.explanation,
        };
        text.push_str(line.trim_start());
        text.push('\n');
        Ok(())
    }
}

impl Front {
    fn parse(text: &str) -> Result<Self, String> {
        let mut fields = BTreeMap::new();
        for line in text.lines() {
            let (name, value) =
                line.split_once(": ").ok_or(format!("{line}: write name: value"))?;
            fields.insert(name, value.trim());
        }
        let mut take = |name: &str| fields.remove(name).ok_or(format!("front matter: add {name}:"));
        let number = |text: &str| text.parse().map_err(|_| format!("{text} is not a number"));
        let list = |text: &str| text.split(", ").map(str::to_owned).collect();
        let front = Self {
            number: number(take("number")?)?,
            title: take("title")?.to_owned(),
            part: Part::from_word(take("part")?).ok_or("part: use leases_and_fences")?,
            summary: take("summary")?.to_owned(),
            minutes: number(take("minutes")?)?,
            paper: list(take("paper")?),
            cases: list(take("cases")?),
            claims: list(take("claims")?),
        };
        match fields.first_key_value() {
            None => Ok(front),
            Some((name, _)) => Err(format!("front matter: {name} is not known")),
        }
    }
}
