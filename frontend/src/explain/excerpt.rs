//! The part of a source file around one line, and its words by kind.
//!
//! The part is the function that the line is in. Highlighting knows comments, strings,
//! numbers, keywords and types, and nothing more: it is to be read, not compiled.

/// What a stretch of source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Anything else.
    Plain,
    /// `// …`
    Comment,
    /// `"…"`
    Text,
    /// `match`, `if`, …
    Keyword,
    /// A name that begins with a capital.
    Type,
    /// `34`
    Number,
}

/// One line of the part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: u32,
    /// Stretches in order.
    pub tokens: Vec<(Token, String)>,
}

const KEYWORDS: [&str; 24] = [
    "as", "const", "else", "enum", "false", "fn", "for", "if", "impl", "in", "let", "loop",
    "match", "mut", "pub", "ref", "return", "self", "struct", "true", "use", "where", "while",
    "Self",
];

/// The function around this line, or the lines near it when there is none.
pub fn excerpt(text: &str, line: u32) -> Vec<Line> {
    let lines: Vec<&str> = text.lines().collect();
    let at = (line.saturating_sub(1) as usize).min(lines.len().saturating_sub(1));
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_head = |line: &str| {
        let words = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        words.starts_with("fn ")
    };
    let head = (0..=at).rev().find(|index| is_head(lines.get(*index).copied().unwrap_or("")));
    let (from, to) = match head {
        Some(head) => {
            let depth = indent(lines[head]);
            let ends =
                |index: &usize| lines[*index].trim() == "}" && indent(lines[*index]) == depth;
            let end = (at..lines.len()).find(ends).unwrap_or((at + 12).min(lines.len() - 1));
            let comments = (0..head).rev().take_while(|index| {
                let line = lines[*index].trim_start();
                line.starts_with("///") || line.starts_with("#[")
            });
            (head - comments.count(), end)
        }
        None => (at.saturating_sub(10), (at + 10).min(lines.len().saturating_sub(1))),
    };
    let shift =
        (from..=to).filter_map(|index| lines.get(index)).filter(|line| !line.trim().is_empty());
    let shift = shift.map(|line| indent(line)).min().unwrap_or(0);
    (from..=to)
        .filter_map(|index| {
            let line = lines.get(index)?;
            Some(Line { number: index as u32 + 1, tokens: tokens(line.get(shift..).unwrap_or("")) })
        })
        .collect()
}

/// A line's stretches.
pub fn tokens(line: &str) -> Vec<(Token, String)> {
    let mut tokens: Vec<(Token, String)> = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (token, length) = next(rest, first);
        let (piece, after) = rest.split_at(length);
        rest = after;
        match tokens.last_mut() {
            Some((last, text)) if *last == token => text.push_str(piece),
            _ => tokens.push((token, piece.to_owned())),
        }
    }
    tokens
}

fn next(rest: &str, first: char) -> (Token, usize) {
    let length_while = |is_part: fn(char) -> bool| {
        rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len())
    };
    if rest.starts_with("//") {
        return (Token::Comment, rest.len());
    }
    if first == '"' {
        let end = rest[1..].find('"').map_or(rest.len(), |end| end + 2);
        return (Token::Text, end);
    }
    if first.is_ascii_digit() {
        return (
            Token::Number,
            length_while(|letter| letter.is_ascii_alphanumeric() || letter == '_'),
        );
    }
    if first.is_alphabetic() || first == '_' {
        let length = length_while(|letter| letter.is_alphanumeric() || letter == '_');
        let word = &rest[..length];
        let token = match word {
            _ if KEYWORDS.contains(&word) => Token::Keyword,
            _ if first.is_uppercase() => Token::Type,
            _ => Token::Plain,
        };
        return (token, length);
    }
    (Token::Plain, first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "struct A;\n\nimpl A {\n    /// Says no.\n    fn admit(&self) -> u8 {\n        // why\n        if self.mark <= 34 {\n            return 1;\n        }\n        0\n    }\n\n    fn other() {}\n}\n";

    #[test]
    fn the_excerpt_is_the_function_with_its_comment() {
        let lines = excerpt(FILE, 8);
        let numbers: Vec<u32> = lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, (4..=11).collect::<Vec<_>>());
        assert_eq!(lines[1].tokens[0], (Token::Keyword, "fn".to_owned()));
    }

    #[test]
    fn a_line_far_beyond_the_end_gives_something_and_no_panic() {
        assert!(!excerpt(FILE, 900).is_empty());
        assert!(excerpt("", 3).is_empty());
    }

    #[test]
    fn stretches_put_together_are_the_line() {
        let line = r#"    Guard::Strict if presented <= mark => Err("no"), // 34"#;
        let joined: String = tokens(line).into_iter().map(|(_, text)| text).collect();
        assert_eq!(joined, line);
    }
}
