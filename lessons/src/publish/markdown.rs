//! Markdown to HTML, with the lessons' own links resolved.
//!
//! - `[the guard](source:worker/protocol/src/fence.rs#admit)`: a line of source, found by
//!   name, so that it moves with the code;
//! - `[lesson 4](lesson:04-the-fence)`: another lesson.
//!
//! Invariant: no other link leaves the site and no raw HTML gets in, so the page may insert
//! the result as it is.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The sources that lessons may point at.
const FILES: &[(&str, &str)] = &[
    ("worker/protocol/src/fence.rs", include_str!("../../../worker/protocol/src/fence.rs")),
    ("worker/protocol/src/host.rs", include_str!("../../../worker/protocol/src/host.rs")),
    ("worker/protocol/src/ids.rs", include_str!("../../../worker/protocol/src/ids.rs")),
    ("worker/protocol/src/invariant.rs", include_str!("../../../worker/protocol/src/invariant.rs")),
    ("worker/protocol/src/lease.rs", include_str!("../../../worker/protocol/src/lease.rs")),
    ("worker/protocol/src/shard.rs", include_str!("../../../worker/protocol/src/shard.rs")),
];

/// Resolves links, and keeps what cannot be.
pub(super) struct Links {
    slugs: Vec<&'static str>,
    pub(super) problems: Vec<String>,
}

impl Links {
    pub(super) fn new(slugs: Vec<&'static str>) -> Self {
        Self { slugs, problems: Vec::new() }
    }

    /// The HTML of a piece of Markdown.
    pub(super) fn html(&mut self, markdown: &str) -> String {
        let mut in_source = false;
        let mut events = Vec::new();
        for event in Parser::new_ext(markdown, Options::empty()) {
            events.push(match event {
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    if let Some(target) = dest_url.strip_prefix("source:") {
                        in_source = true;
                        Event::InlineHtml(self.source_tag(target).into())
                    } else {
                        let dest_url = self.lesson_path(&dest_url).into();
                        Event::Start(Tag::Link { link_type, dest_url, title, id })
                    }
                }
                Event::End(TagEnd::Link) if std::mem::take(&mut in_source) => {
                    Event::InlineHtml(CowStr::Borrowed("</a>"))
                }
                Event::Html(text) | Event::InlineHtml(text) => {
                    self.problems.push(format!("take out the HTML: {}", text.trim()));
                    continue;
                }
                // One sentence a line is how the source is written, not how it is set.
                Event::SoftBreak => Event::Text(CowStr::Borrowed(" ")),
                other => other,
            });
        }
        let mut out = String::new();
        html::push_html(&mut out, events.into_iter());
        out
    }

    /// One line without a paragraph around it.
    pub(super) fn inline_html(&mut self, markdown: &str) -> String {
        let html = self.html(markdown);
        let inner = html.trim().strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
        inner.map_or(html.clone(), str::to_owned)
    }

    /// File, anchor and line of `file.rs#anchor`.
    pub(super) fn source(&mut self, target: &str) -> Option<(String, String, u32)> {
        let found = target.split_once('#').and_then(|(file, anchor)| {
            let (_, text) = FILES.iter().find(|(name, _)| *name == file)?;
            Some((file.to_owned(), anchor.to_owned(), line_of(text, anchor)?))
        });
        if found.is_none() {
            self.problems.push(format!("source:{target} leads nowhere"));
        }
        found
    }

    fn source_tag(&mut self, target: &str) -> String {
        let Some((file, _, line)) = self.source(target) else { return "<a>".to_owned() };
        let name = file.rsplit('/').next().unwrap_or_default();
        // `external` keeps the page's router from taking the file for one of its pages.
        format!(
            "<a class=\"source\" rel=\"external\" href=\"/source/{name}#L{line}\" \
             data-file=\"{file}\" data-line=\"{line}\">"
        )
    }

    fn lesson_path(&mut self, url: &str) -> String {
        match url.strip_prefix("lesson:").filter(|slug| self.slugs.contains(slug)) {
            Some(slug) => format!("/lessons/{slug}"),
            None => {
                self.problems.push(format!("{url} leads nowhere"));
                String::new()
            }
        }
    }
}

/// The line on which a function, a type, a constant, a variant or a field is written.
fn line_of(text: &str, anchor: &str) -> Option<u32> {
    let starts = ["fn ", "struct ", "enum ", "const ", ""];
    let begins = |line: &str, start: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let Some(rest) = line.strip_prefix(start) else { return false };
        let Some(after) = rest.strip_prefix(anchor) else { return false };
        match start {
            "" => after.starts_with(": ") || after == "," || after.starts_with(" {"),
            _ => !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'),
        }
    };
    let found =
        starts.into_iter().find_map(|start| text.lines().position(|line| begins(line, start)));
    found.and_then(|index| u32::try_from(index + 1).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_or_reported() {
        let mut links = Links::new(vec!["04-the-fence"]);
        let html =
            links.html("[a](lesson:04-the-fence) [b](source:worker/protocol/src/fence.rs#admit)");
        assert!(html.contains("href=\"/lessons/04-the-fence\""), "{html}");
        assert!(html.contains("/source/fence.rs#L"), "{html}");
        assert_eq!(links.problems, Vec::<String>::new());
        links.html(
            "[a](lesson:no) [b](source:worker/protocol/src/fence.rs#no) [c](http://x) <b>x</b>",
        );
        assert_eq!(links.problems.len(), 5, "{:?}", links.problems);
    }

    #[test]
    fn anchors_are_found_by_name() {
        let text = "struct Rules {\n    /// x\n    pub guard: Guard,\n}\n\nfn admit_all() {}\nfn admit() {}\n";
        assert_eq!(line_of(text, "admit"), Some(7));
        assert_eq!(line_of(text, "guard"), Some(3));
        assert_eq!(line_of(text, "Rules"), Some(1));
        assert_eq!(line_of(text, "nothing"), None);
    }

    #[test]
    fn lines_are_joined_with_a_blank() {
        let mut links = Links::new(Vec::new());
        assert_eq!(links.html("One.\nTwo."), "<p>One. Two.</p>\n");
        assert_eq!(links.inline_html("One `x`."), "One <code>x</code>.");
    }
}
