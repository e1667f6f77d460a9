//! From Markdown and script to the JSON that the page loads; at build time, natively.
//!
//! Invariant: what is published is whole. Every step of a script has prose, every question
//! exists and has exactly one right answer, that answer is what the simulator does, every
//! link leads somewhere. What is not is reported, all of it at once, and nothing is
//! published.

mod check;
mod markdown;
mod page;

use core::fmt;

use crate::catalogue::{Entry, planned};
use crate::lesson::{Lesson, SourceLink, StepProse, VariantHtml, VariantProse};
use crate::script::{Script, Step, parse};

use markdown::Links;
use page::Page;

/// The files of one lesson.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// `04-the-fence`
    pub slug: &'static str,
    /// The prose.
    pub markdown: &'static str,
    /// The script.
    pub script: &'static str,
}

macro_rules! lessons {
    ($($slug:literal,)+) => {
        /// Every lesson that can be taken, in order.
        pub const SOURCES: &[Source] = &[$(Source {
            slug: $slug,
            markdown: include_str!(concat!("../content/", $slug, ".md")),
            script: include_str!(concat!("../scripts/", $slug, ".txt")),
        },)+];
    };
}

lessons! {
    "01-one-name-one-writer",
    "02-the-lease",
    "03-the-paused-holder",
    "04-the-fence",
    "05-the-fencepost",
    "06-before-the-first-write",
    "07-renewal-is-not-acquisition",
    "08-lost-replies",
}

/// Everything that is wrong with the lessons, one line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Problems {}

/// Every file below the site's root, with its text: `lessons/index.json` and one for each
/// lesson.
pub fn all() -> Result<Vec<(String, String)>, Problems> {
    let lessons = lessons()?;
    let mut files = vec![("lessons/index.json".to_owned(), json(&catalogue(&lessons))?)];
    for lesson in &lessons {
        files.push((format!("lessons/{}.json", lesson.entry.slug), json(lesson)?));
    }
    Ok(files)
}

/// The whole course, with what is planned.
pub fn catalogue(lessons: &[Lesson]) -> Vec<Entry> {
    lessons.iter().map(|lesson| lesson.entry.clone()).chain(planned()).collect()
}

/// Every lesson, checked.
pub fn lessons() -> Result<Vec<Lesson>, Problems> {
    let (mut lessons, mut problems) = (Vec::new(), Vec::new());
    for (index, source) in SOURCES.iter().enumerate() {
        match lesson(source) {
            Ok(lesson) => {
                if lesson.entry.number as usize != index + 1 {
                    problems.push(format!("{}: its number is {}", source.slug, index + 1));
                }
                lessons.push(lesson);
            }
            Err(found) => {
                problems.extend(found.into_iter().map(|one| format!("{}: {one}", source.slug)));
            }
        }
    }
    if problems.is_empty() { Ok(lessons) } else { Err(Problems(problems)) }
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Problems> {
    serde_json::to_string(value).map_err(|error| Problems(vec![error.to_string()]))
}

/// One lesson, checked; the error is everything that is wrong with it.
pub fn lesson(source: &Source) -> Result<Lesson, Vec<String>> {
    let script = parse(source.script).map_err(|error| vec![error.to_string()])?;
    let page = Page::parse(source.markdown).map_err(|error| vec![error])?;
    let mut links = Links::new(SOURCES.iter().map(|one| one.slug).collect());
    let mut lesson = assemble(source, &script, &page, &mut links);
    lesson.sources = source_links(&page, &mut links);
    let mut problems = links.problems;
    problems.extend(check::structure(&script, &page));
    problems.extend(check::behavior(&script, &mut lesson));
    if problems.is_empty() { Ok(lesson) } else { Err(problems) }
}

fn assemble(source: &Source, script: &Script, page: &Page, links: &mut Links) -> Lesson {
    let front = &page.front;
    let mut variants = Vec::new();
    for variant in &script.variants {
        let text = page.variants.get(&variant.id).map_or("", String::as_str);
        let (id, title) = (variant.id.clone(), variant.title.clone());
        variants.push(VariantProse { id, title, html: links.html(text), live_seconds: 0 });
    }
    Lesson {
        steps: script.steps.iter().map(|step| step_prose(step, page, links)).collect(),
        variants,
        intro_html: links.html(&page.intro),
        debrief_html: links.html(&page.debrief),
        entry: Entry {
            number: front.number,
            slug: source.slug.to_owned(),
            title: front.title.clone(),
            part: front.part,
            summary: front.summary.clone(),
            minutes: front.minutes,
            available: true,
        },
        paper: front.paper.clone(),
        cases: front.cases.clone(),
        claims: front.claims.clone(),
        sources: Vec::new(),
        script: source.script.to_owned(),
    }
}

fn step_prose(step: &Step, page: &Page, links: &mut Links) -> StepProse {
    let prose = page.steps.get(&step.id).cloned().unwrap_or_default();
    let in_variant = prose
        .in_variant
        .iter()
        .map(|(variant, text)| VariantHtml { variant: variant.clone(), html: links.html(text) });
    StepProse {
        id: step.id.clone(),
        title: step.title.clone(),
        variant_html: in_variant.collect(),
        html: links.html(&prose.text),
        predictions: prose.questions.iter().map(|question| question.publish(links)).collect(),
    }
}

fn source_links(page: &Page, links: &mut Links) -> Vec<SourceLink> {
    let found = page.sources.iter().filter_map(|(label, target)| {
        let (file, anchor, line) = links.source(target)?;
        Some(SourceLink { label: label.clone(), file, anchor, line })
    });
    found.collect()
}
