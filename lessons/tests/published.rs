//! What is published is whole: prose, questions, answers and links against the scripts.
#![cfg(feature = "publish")]

use lessons::publish;

#[test]
fn every_lesson_can_be_published() {
    match publish::lessons() {
        Ok(lessons) => assert_eq!(lessons.len(), publish::SOURCES.len()),
        Err(problems) => panic!("\n{problems}"),
    }
}

#[test]
fn the_page_reads_what_is_written() {
    for (path, text) in publish::all().unwrap() {
        if path == "lessons/index.json" {
            let entries: Vec<lessons::catalogue::Entry> = serde_json::from_str(&text).unwrap();
            let numbers: Vec<_> = entries.iter().map(|entry| entry.number).collect();
            assert_eq!(numbers, (1..=22).collect::<Vec<_>>());
            assert_eq!(entries.iter().filter(|entry| entry.available).count(), 8);
        } else {
            let lesson: lessons::lesson::Lesson = serde_json::from_str(&text).unwrap();
            let script = lessons::script::parse(&lesson.script).unwrap();
            assert_eq!(script.steps.len(), lesson.steps.len(), "{path}");
        }
    }
}

#[test]
fn every_script_has_its_lesson() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), publish::SOURCES.len());
}

#[test]
fn prose_is_one_sentence_a_line_and_not_too_long() {
    for source in publish::SOURCES {
        for (index, line) in source.markdown.lines().enumerate() {
            let at = format!("{} line {}", source.slug, index + 1);
            assert!(line.chars().count() <= 260, "{at}: split it");
            assert!(!line.contains('!') || line.contains('`'), "{at}: no exclamations");
        }
    }
}

#[test]
fn a_broken_lesson_is_refused_with_everything_that_is_wrong() {
    let good = publish::SOURCES[2];
    let markdown = good
        .markdown
        .replace("## step others", "## step other")
        .replace(
            "- [x] applied: It stores 95, because nothing",
            "- [ ] applied: It stores 95, because nothing",
        )
        .replace("lesson:04-the-fence", "lesson:99")
        .replace("fence.rs#admit", "fence.rs#admits");
    let markdown: &'static str = Box::leak(markdown.into_boxed_str());
    let problems = publish::lesson(&publish::Source { markdown, ..good }).unwrap_err().join("\n");
    for expected in [
        "the script has no step other",
        "add ## step others",
        "wakes: 0 answers are right",
        "lesson:99 leads nowhere",
        "source:worker/protocol/src/fence.rs#admits leads nowhere",
    ] {
        assert!(problems.contains(expected), "{expected} is not in\n{problems}");
    }
    let script = good.script.replace("-> fenced presented=2", "-> fenced presented=7");
    let script: &'static str = Box::leak(script.into_boxed_str());
    let problems = publish::lesson(&publish::Source { script, ..good }).unwrap_err().join("\n");
    assert!(problems.contains("presented=7"), "{problems}");
    let markdown = good.markdown.replace("- [x] fenced:", "- [x] applied:");
    let markdown: &'static str = Box::leak(markdown.into_boxed_str());
    let problems = publish::lesson(&publish::Source { markdown, ..good }).unwrap_err().join("\n");
    assert!(problems.contains("the right answer is applied, but: fenced"), "{problems}");
}
