//! One line, taken apart into words, with errors that know their line.
//!
//! Invariant: nothing is ignored. A word that no command asked for is an error, so a
//! misspelt option cannot silently change what a script does.

use std::collections::VecDeque;

use super::ScriptError;

/// The words of one line that have not been used yet.
pub(super) struct Words<'a> {
    pub(super) number: usize,
    text: &'a str,
    words: VecDeque<String>,
}

impl<'a> Words<'a> {
    /// Splits at blanks; text in double quotes is one word.
    pub(super) fn new(number: usize, text: &'a str) -> Result<Self, ScriptError> {
        let mut words = VecDeque::new();
        let mut word: Option<String> = None;
        let mut quoted = false;
        for c in text.chars() {
            match c {
                '"' => {
                    quoted = !quoted;
                    word.get_or_insert_default();
                }
                '#' if !quoted && word.is_none() => break,
                c if c.is_whitespace() && !quoted => words.extend(word.take()),
                c => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        let words = Self { number, text, words };
        if quoted { Err(words.error("close the quotation mark")) } else { Ok(words) }
    }

    /// Whether all words are used.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The next word, left in place.
    pub(super) fn peek(&self) -> Option<&str> {
        self.words.front().map(String::as_str)
    }

    /// The next word. `what` completes the sentence "add …".
    pub(super) fn next(&mut self, what: &str) -> Result<String, ScriptError> {
        self.words.pop_front().ok_or_else(|| self.error(format!("add {what}")))
    }

    /// Takes the next word if it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        if found {
            self.words.pop_front();
        }
        found
    }

    /// Takes the next words if they are these.
    pub(super) fn take_all(&mut self, words: &[&str]) -> bool {
        let found =
            self.words.iter().map(String::as_str).take(words.len()).eq(words.iter().copied());
        if found {
            self.words.drain(..words.len());
        }
        found
    }

    /// Takes this word, wherever it stands.
    pub(super) fn flag(&mut self, word: &str) -> bool {
        let index = self.words.iter().position(|one| one == word);
        index.and_then(|index| self.words.remove(index)).is_some()
    }

    /// Takes `name=value`, wherever it stands; the value.
    pub(super) fn named(&mut self, name: &str) -> Option<String> {
        let value = |word: &String| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        let index = self.words.iter().position(|word| value(word).is_some())?;
        value(&self.words.remove(index)?)
    }

    /// All words that are left, as `name=value`.
    pub(super) fn pairs(&mut self, example: &str) -> Result<Vec<(String, String)>, ScriptError> {
        let words = std::mem::take(&mut self.words);
        let pair = |word: String| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(self.error(format!("{word:?} should look like {example}"))),
        };
        words.into_iter().map(pair).collect()
    }

    /// Refuses what nobody asked for.
    pub(super) fn finish(&self) -> Result<(), ScriptError> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(self.error(format!("{word:?} does not belong here: take it out"))),
        }
    }

    /// An error about this line.
    pub(super) fn error(&self, problem: impl Into<String>) -> ScriptError {
        ScriptError {
            line: self.number,
            text: self.text.trim().to_owned(),
            problem: problem.into(),
        }
    }
}
