//! The command line, taken apart by hand: six commands do not need a parser.
//!
//! Invariant: nothing is ignored. What no command asked for is an error, so a
//! misspelt flag cannot silently change what was run.

use std::collections::VecDeque;

use anyhow::{Context as _, Result, bail};

pub(crate) struct Args(VecDeque<String>);

impl Args {
    pub(crate) fn from_env() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// The next argument, whatever it is.
    pub(crate) fn command(&mut self) -> Option<String> {
        self.0.pop_front()
    }

    /// Whether `name` was given; takes it out.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|arg| arg != name);
        self.0.len() < before
    }

    /// The value of `name VALUE` or `name=VALUE`.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>> {
        let prefix = format!("{name}=");
        let Some(at) = self.0.iter().position(|arg| arg == name || arg.starts_with(&prefix)) else {
            return Ok(None);
        };
        let arg = self.0.remove(at).unwrap_or_default();
        if let Some(value) = arg.strip_prefix(&prefix) {
            return Ok(Some(value.to_owned()));
        }
        match self.0.remove(at) {
            Some(value) => Ok(Some(value)),
            None => bail!("{name} needs a value"),
        }
    }

    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u16>> {
        self.value(name)?
            .map(|text| {
                text.parse()
                    .with_context(|| format!("{name} needs a number up to 65535, not `{text}`"))
            })
            .transpose()
    }

    /// Everything that is left, for a tool that we pass arguments to. A `--`
    /// that separates our arguments from the tool's is not the tool's.
    pub(crate) fn rest(mut self) -> Vec<String> {
        if self.0.front().is_some_and(|arg| arg == "--") {
            self.0.pop_front();
        }
        self.0.into()
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(self) -> Result<()> {
        match self.0.front() {
            None => Ok(()),
            Some(arg) => {
                bail!("`{arg}` is not an argument of this command; see `cargo xtask help`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn takes_flags_and_values_out_in_any_order() {
        let mut args = args("dev --port 9000 --watch");
        assert_eq!(args.command().as_deref(), Some("dev"));
        assert!(args.flag("--watch"));
        assert!(!args.flag("--release"));
        assert_eq!(args.number("--port").unwrap(), Some(9000));
        args.finish().unwrap();
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let mut with_equals = args("--only=lint,unit");
        assert_eq!(with_equals.value("--only").unwrap().as_deref(), Some("lint,unit"));
        assert!(args("--prot 1").finish().is_err());
        assert!(args("--port").number("--port").is_err());
        assert!(args("--port x").number("--port").is_err());
    }

    #[test]
    fn passes_the_rest_on_without_the_separator() {
        assert_eq!(args("-- --dry-run").rest(), ["--dry-run"]);
        assert_eq!(args("--dry-run").rest(), ["--dry-run"]);
    }
}
