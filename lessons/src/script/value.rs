//! Numbers and times in scripts: `A.balance+20`, `A.token`, `1500ms`, `2s`, `1h`.
//!
//! A number may refer to what a client has been told so far. It is worked out by the
//! client when it sends, so a stale client computes with stale numbers, as it should.

use core::fmt;

use protocol::ids::Label;

/// A sum of terms: `A.balance+20-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The terms with their signs; never empty.
    pub terms: Vec<(bool, Term)>,
}

/// One term of a [`Value`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// A number.
    Number(i64),
    /// `A.token`: the last token that this client was granted.
    Token(Label),
    /// `A.balance`: the value of this key when the client last read it.
    Read(Label, Label),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self { terms: vec![(number < 0, Term::Number(number.saturating_abs()))] }
    }
}

impl Value {
    /// Reads a sum. The error says what a number may look like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || {
            format!("{text:?} is not a number: use 20, A.token, or A.balance+20 (what A last read)")
        };
        let mut terms = Vec::new();
        let mut rest = text;
        let mut negative = false;
        if let Some(after) = rest.strip_prefix('-') {
            (negative, rest) = (true, after);
        }
        loop {
            let end = rest.find(['+', '-']).unwrap_or(rest.len());
            terms.push((negative, Term::parse(&rest[..end]).ok_or_else(bad)?));
            let Some(sign) = rest[end..].chars().next() else { break };
            negative = sign == '-';
            rest = &rest[end + 1..];
        }
        Ok(Self { terms })
    }

    /// The clients that it refers to.
    pub fn clients(&self) -> impl Iterator<Item = &Label> {
        self.terms.iter().filter_map(|(_, term)| match term {
            Term::Number(_) => None,
            Term::Token(client) | Term::Read(client, _) => Some(client),
        })
    }

    /// The number, given what each term stands for. The error is the term that has none.
    pub fn evaluate(&self, known: impl Fn(&Term) -> Option<i64>) -> Result<i64, String> {
        let mut sum: i64 = 0;
        for (negative, term) in &self.terms {
            let number = match term {
                Term::Number(number) => *number,
                _ => known(term).ok_or_else(|| term.to_string())?,
            };
            sum = if *negative { sum.checked_sub(number) } else { sum.checked_add(number) }
                .ok_or_else(|| term.to_string())?;
        }
        Ok(sum)
    }
}

impl Term {
    fn parse(text: &str) -> Option<Self> {
        let is_digit = |c: char| c.is_ascii_digit();
        if let Some((client, key)) = text.split_once('.').filter(|_| !text.starts_with(is_digit)) {
            let client = Label::try_from(client).ok()?;
            return Some(match key {
                "token" => Self::Token(client),
                _ => Self::Read(client, Label::try_from(key).ok()?),
            });
        }
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text.parse().ok().map(Self::Number) } else { None }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (negative, term)) in self.terms.iter().enumerate() {
            let sign = match (negative, index) {
                (true, _) => "-",
                (false, 0) => "",
                (false, _) => "+",
            };
            write!(f, "{sign}{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Token(client) => write!(f, "{client}.token"),
            Self::Read(client, key) => write!(f, "{client}.{key}"),
        }
    }
}

const UNITS: [(&str, u64); 4] = [("ms", 1), ("min", 60_000), ("h", 3_600_000), ("s", 1_000)];

/// Reads a length of time, in ms: `800ms`, `2s`, `1.5s`, `10min`, `1h`.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is not a length of time: use 800ms, 2s, 10min or 1h");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
    let (number, unit) = text.split_at(digits);
    let (_, unit_ms) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    let mut ms = whole.checked_mul(unit_ms).ok_or_else(bad)?;
    if !part.is_empty() {
        let scale =
            10_u64.checked_pow(part.len().try_into().map_err(|_| bad())?).ok_or_else(bad)?;
        let part: u64 = part.parse().map_err(|_| bad())?;
        ms += part.checked_mul(unit_ms).ok_or_else(bad)? / scale;
    }
    Ok(ms)
}

/// The shortest way to write a length of time.
pub fn duration_text(ms: u64) -> String {
    let whole = UNITS.into_iter().filter(|(_, unit_ms)| ms != 0 && ms.is_multiple_of(*unit_ms));
    let (unit, unit_ms) = whole.max_by_key(|(_, unit_ms)| *unit_ms).unwrap_or(("ms", 1));
    format!("{}{unit}", ms / unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_worked_out_and_printed() {
        let value = Value::parse("A.balance+20-A.token").unwrap();
        assert_eq!(value.to_string(), "A.balance+20-A.token");
        let known = |term: &Term| match term {
            Term::Read(..) => Some(100),
            Term::Token(_) => Some(1),
            Term::Number(_) => None,
        };
        assert_eq!(value.evaluate(known), Ok(119));
        assert_eq!(value.evaluate(|_| None), Err("A.balance".to_owned()));
        assert_eq!(Value::parse("-5").unwrap().evaluate(|_| None), Ok(-5));
        assert_eq!(Value::from(-5).to_string(), "-5");
        for bad in ["", "+", "A.", "1.5", "twenty", "A.balance++1"] {
            assert!(Value::parse(bad).unwrap_err().contains("use 20"), "{bad}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, ms) in [("800ms", 800), ("2s", 2_000), ("1.5s", 1_500), ("1h", 3_600_000)] {
            assert_eq!(parse_duration(text), Ok(ms));
        }
        for bad in ["2", "s", "2 s", "-2s", "2d", "1.2.3s"] {
            assert!(parse_duration(bad).unwrap_err().contains("use 800ms"), "{bad}");
        }
        for (ms, text) in [(0, "0ms"), (1_500, "1500ms"), (2_000, "2s"), (600_000, "10min")] {
            assert_eq!(duration_text(ms), text);
        }
    }
}
