//! Prose and script, held against each other and against what the simulator does.

use std::rc::Rc;

use protocol::rules::Preset;

use super::page::{Page, Question};
use crate::driver::Driver as _;
use crate::lesson::Lesson;
use crate::runner::{Runner, StepReport};
use crate::script::{Predict, Script, Step};
use crate::sim_driver::{SimDriver, block_on};

const START_MS: u64 = 1_700_000_000_000;

/// What is missing or too much, collected.
#[derive(Default)]
struct Found(Vec<String>);

impl Found {
    fn demand(&mut self, met: bool, problem: impl FnOnce() -> String) {
        if !met {
            self.0.push(problem());
        }
    }
}

fn said(text: &str) -> bool {
    !text.trim().is_empty()
}

/// Whether prose and script speak of the same things.
pub(super) fn structure(script: &Script, page: &Page) -> Vec<String> {
    let mut found = Found::default();
    found.demand(said(&page.intro), || "say what there is to see, above the first ##".to_owned());
    found.demand(said(&page.debrief), || "add ## debrief".to_owned());
    found.demand(!page.sources.is_empty(), || "add ## sources".to_owned());
    found.demand(!script.variants.is_empty(), || "the script has no variants".to_owned());
    for variant in &script.variants {
        let id = &variant.id;
        let text = page.variants.get(id);
        found.demand(text.is_some_and(|text| said(text)), || format!("add ## variant {id}"));
    }
    let is_variant = |id: &String| script.variants.iter().any(|variant| variant.id == *id);
    for id in page.variants.keys() {
        found.demand(is_variant(id), || format!("the script has no variant {id}"));
    }
    for id in page.steps.keys() {
        let is_step = script.steps.iter().any(|step| step.id == *id);
        found.demand(is_step, || format!("the script has no step {id}"));
    }
    for step in &script.steps {
        let id = &step.id;
        let Some(prose) = page.steps.get(id) else {
            found.demand(false, || format!("add ## step {id}"));
            continue;
        };
        found.demand(said(&prose.text), || format!("step {id}: say something in every variant"));
        for variant in prose.in_variant.keys() {
            found.demand(is_variant(variant), || format!("step {id}: no variant {variant}"));
        }
        questions(step, &prose.questions, &mut found);
    }
    found.0
}

fn questions(step: &Step, questions: &[Question], found: &mut Found) {
    let id = &step.id;
    for Predict { id: asked, .. } in &step.predicts {
        let is_there = questions.iter().any(|question| question.id == *asked);
        found.demand(is_there, || format!("step {id}: add ### predict {asked}"));
    }
    for question in questions {
        let name = &question.id;
        let is_asked = step.predicts.iter().any(|asked| asked.id == *name);
        found.demand(is_asked, || format!("step {id}: the script does not ask {name}"));
        found.demand(said(&question.text), || format!("{name}: ask something"));
        let n_options = question.options.len();
        found.demand((3..=4).contains(&n_options), || {
            format!("{name}: give 3 or 4 answers, not {n_options}")
        });
        let n_right = question.options.iter().filter(|option| option.right).count();
        found.demand(n_right == 1, || format!("{name}: {n_right} answers are right"));
        for option in &question.options {
            let whole = said(&option.text) && said(&option.explanation);
            found.demand(whole, || format!("{name}: say why, below: {}", option.text));
        }
    }
}

/// Whether the simulator does what the script expects and what the right answers say; how
/// long each variant waits is noted on the way.
pub(super) fn behavior(script: &Script, lesson: &mut Lesson) -> Vec<String> {
    let mut found = Found::default();
    for variant in &script.variants {
        let driver = Rc::new(SimDriver::new(START_MS, Preset::Repaired));
        let mut runner = Runner::with_variant(script.clone(), &variant.id, Rc::clone(&driver));
        match block_on(runner.run_to_end()) {
            Ok(reports) => {
                for report in &reports {
                    outcomes(script, lesson, &variant.id, report, &mut found);
                }
            }
            Err(error) => found.0.push(format!("[{}] {error}", variant.id)),
        }
        let waited_ms = driver.now_ms() - START_MS;
        let prose = lesson.variants.iter_mut().find(|prose| prose.id == variant.id);
        if let Some(prose) = prose {
            prose.live_seconds = u32::try_from(waited_ms.div_ceil(1_000)).unwrap_or(u32::MAX);
        }
    }
    found.0
}

fn outcomes(
    script: &Script,
    lesson: &Lesson,
    variant: &str,
    report: &StepReport,
    found: &mut Found,
) {
    for check in report.checks() {
        found.demand(check.met, || {
            let line = check.line;
            format!("[{variant}] line {line}: {} but {}", check.expected, check.found)
        });
    }
    let step = script.steps.iter().find(|step| step.id == report.step);
    let asked = step.and_then(|step| step.prediction(variant));
    let question = asked.and_then(|asked| lesson.step(&report.step)?.prediction(&asked.id));
    let right = question.and_then(|question| question.options.iter().find(|one| one.right));
    let Some(right) = right else { return };
    let word = report.answer.as_deref().unwrap_or("no reply");
    found.demand(right.outcome == word, || {
        let step = &report.step;
        format!("[{variant}] step {step}: the right answer is {}, but: {word}", right.outcome)
    });
}
