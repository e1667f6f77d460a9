//! Counts tests in what the test runners print.
//!
//! Invariant: a stage that failed counts at least one failure, whatever its
//! output says; a stage that has no tests of its own counts as one.

use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
}

impl Tally {
    pub(crate) const FAILED: Self = Self { passed: 0, failed: 1 };

    /// A stage that is one check.
    pub(crate) fn of_check(success: bool) -> Self {
        Self { passed: u32::from(success), failed: u32::from(!success) }
    }

    /// A stage that ran tests and printed what it counted.
    pub(crate) fn of_tests(success: bool, output: &str) -> Self {
        let mut tally = count(output);
        if !success && tally.failed == 0 {
            tally.failed = 1;
        }
        tally
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Understands cargo-nextest, `cargo test`, node's test runner and our own.
fn count(output: &str) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines() {
        if let Some(node) = node_count(line) {
            tally += node;
        } else if is_summary(line) {
            let words: Vec<&str> = line
                .split(|c: char| c.is_whitespace() || c == ',' || c == ';')
                .filter(|word| !word.is_empty())
                .collect();
            for pair in words.windows(2) {
                let Ok(n) = pair[0].parse::<u32>() else {
                    continue;
                };
                match pair[1] {
                    "passed" => tally.passed += n,
                    // nextest counts tests that ran out of time apart.
                    "failed" | "timed" => tally.failed += n,
                    _ => {}
                }
            }
        }
    }
    tally
}

/// Only at the start of a line, except for nextest's, which is indented: it also
/// shows, indented, the summaries that failed tests printed of themselves.
fn is_summary(line: &str) -> bool {
    let is_nextest = line.trim_start().starts_with("Summary [");
    let is_cargo_test = line.starts_with("test result:");
    let is_ours = line.ends_with(" failed")
        && line.contains(" passed, ")
        && line.starts_with(|c: char| c.is_ascii_digit());
    is_nextest || is_cargo_test || is_ours
}

/// `ℹ pass 3` on a terminal's reporter, `# pass 3` in TAP.
fn node_count(line: &str) -> Option<Tally> {
    let rest = line.strip_prefix("ℹ ").or(line.strip_prefix("# "))?;
    let (what, n) = rest.split_once(' ')?;
    let n = n.parse().ok()?;
    let (passed, failed) = match what {
        "pass" => (n, 0),
        "fail" | "cancelled" => (0, n),
        _ => return None,
    };
    Some(Tally { passed, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, passed: u32, failed: u32) {
        assert_eq!(count(output), Tally { passed, failed }, "{output}");
    }

    #[test]
    fn counts_every_runner() {
        check(
            "   Summary [   0.004s] 12 tests run: 11 passed (1 slow), 1 failed, 4 skipped",
            11,
            1,
        );
        check("   Summary [  60.1s] 3 tests run: 1 passed, 1 failed, 1 timed out, 0 skipped", 1, 2);
        check(
            "test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
             test result: FAILED. 2 passed; 1 failed; 0 ignored",
            6,
            1,
        );
        check("ℹ tests 5\nℹ pass 3\nℹ fail 1\nℹ cancelled 1", 3, 2);
        check("# tests 2\n# pass 2\n# fail 0", 2, 0);
        check("8 passed, 0 failed", 8, 0);
        check(
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored\n\
             \u{20}    Summary [  0.2s] 5 tests run: 4 passed, 1 failed, 0 skipped",
            4,
            1,
        );
    }

    #[test]
    fn ignores_prose() {
        check("1 passed the fence\nnothing failed\nℹ duration_ms 12", 0, 0);
    }

    #[test]
    fn a_failed_stage_is_a_failure() {
        assert_eq!(Tally::of_tests(false, "# pass 3\n# fail 0").failed, 1);
        assert_eq!(Tally::of_tests(true, "# pass 3\n# fail 0").failed, 0);
    }
}
