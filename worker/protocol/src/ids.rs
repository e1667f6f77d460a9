//! Names, numbers and nodes: everything that identifies something on the wire.
//!
//! Invariant: a value of one of these types is valid. Deserialization refuses what
//! is not, so a machine never meets a fraction, a negative token, a number that
//! JavaScript would round, or an object name that another caller would spell
//! differently (protocol-case A5: `"7"`, `"07"` and `" 7"` would be three writers).

use core::fmt;

use serde::{Deserialize, Serialize};

/// The largest integer that JSON and JavaScript carry without rounding: 2^53 − 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Length limit of every name and label, in characters.
pub const NAME_LENGTH_MAX: usize = 64;

macro_rules! bounded_integer {
    ($(#[$doc:meta])* $name:ident, $repr:ident, $repr_text:literal, $min:expr, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = $repr_text, into = $repr_text)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name($repr);

        impl $name {
            /// The smallest value allowed.
            pub const MIN: $repr = $min;
            /// The largest value allowed.
            pub const MAX: $repr = $max;

            /// The number itself.
            pub const fn get(self) -> $repr {
                self.0
            }
        }

        impl TryFrom<$repr> for $name {
            type Error = OutOfRange;

            fn try_from(value: $repr) -> Result<Self, OutOfRange> {
                if (Self::MIN..=Self::MAX).contains(&value) {
                    Ok(Self(value))
                } else {
                    Err(OutOfRange { value: value as i128, min: Self::MIN as i128, max: Self::MAX as i128 })
                }
            }
        }

        impl From<$name> for $repr {
            fn from(value: $name) -> $repr {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

bounded_integer!(
    /// The number that grows with each grant of one lease. 0 is never granted; a
    /// resource that has admitted nothing has the high-water mark 0.
    FencingToken, u64, "u64", 0, MAX_SAFE_INTEGER
);
bounded_integer!(
    /// How long a lease is to last, in milliseconds: 100 ms to 1 h.
    TtlMs, u64, "u64", 100, 3_600_000
);
bounded_integer!(
    /// How long a candidate is ready to wait in the queue, in milliseconds: 0 to 10 min.
    WaitMs, u64, "u64", 0, 600_000
);
bounded_integer!(
    /// A point in time, in milliseconds since 1970, by the clock of whoever reads it.
    TimestampMs, u64, "u64", 0, MAX_SAFE_INTEGER
);
bounded_integer!(
    /// A count or position that starts at 0: a sequence number, a map epoch.
    Count, u64, "u64", 0, MAX_SAFE_INTEGER
);
bounded_integer!(
    /// A value that a resource or a shard stores: −(2^53 − 1) to 2^53 − 1.
    Value, i64, "i64", -(MAX_SAFE_INTEGER as i64), MAX_SAFE_INTEGER as i64
);
bounded_integer!(
    /// How far an object's clock is moved, in milliseconds: one year either way.
    OffsetMs, i64, "i64", -31_536_000_000, 31_536_000_000
);

impl TtlMs {
    /// As a person says it: `2 s`, `1.5 s`, `10 min`, `1 h`.
    pub fn in_words(self) -> String {
        match self.get() {
            ms if ms.is_multiple_of(3_600_000) => format!("{} h", ms / 3_600_000),
            ms if ms.is_multiple_of(60_000) => format!("{} min", ms / 60_000),
            ms if ms >= 1000 => format!("{} s", ms as f64 / 1000.0),
            ms => format!("{ms} ms"),
        }
    }
}

bounded_integer!(
    /// How long a coordinator waits for votes, in milliseconds: 100 ms to 10 min.
    VoteWithinMs, u64, "u64", 100, 600_000
);

/// Why a number was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// What was given.
    pub value: i128,
    /// The smallest number allowed.
    pub min: i128,
    /// The largest number allowed.
    pub max: i128,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is out of range: use a whole number from {} to {}",
            self.value, self.min, self.max
        )
    }
}

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    /// What was given, cut to 80 characters.
    pub given: String,
    /// Which characters are allowed.
    pub allowed: &'static str,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a name: use 1 to {NAME_LENGTH_MAX} of {}", self.given, self.allowed)
    }
}

macro_rules! checked_name {
    ($(#[$doc:meta])* $name:ident, $allowed:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name(String);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadName;

            fn try_from(text: String) -> Result<Self, BadName> {
                let allowed: fn(u8) -> bool = $check;
                let fits = !text.is_empty() && text.len() <= NAME_LENGTH_MAX;
                if fits && text.bytes().all(allowed) {
                    Ok(Self(text))
                } else {
                    Err(BadName { given: text.chars().take(80).collect(), allowed: $allowed })
                }
            }
        }

        impl TryFrom<&str> for $name {
            type Error = BadName;

            fn try_from(text: &str) -> Result<Self, BadName> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_name!(
    /// The name of an object in a lab. One spelling only, since uniqueness is a
    /// property of the exact string.
    Name,
    "a-z 0-9 - _ .",
    |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte)
);
checked_name!(
    /// A caller's own word: a holder, a nonce, a key, a request, write or operation id.
    Label,
    "A-Z a-z 0-9 - _ . :",
    |byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)
);

/// The kinds of object that a lab can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ObjectKind {
    /// Grants one lease and issues its fencing tokens.
    Lease,
    /// Stores values behind a fence.
    Resource,
    /// The single writer of one shard.
    Shard,
    /// Holds money, and reserves it while a transaction is in doubt.
    Account,
    /// Coordinates one transaction.
    Transaction,
}

impl ObjectKind {
    /// Every kind, in the order in which pages list them.
    pub const ALL: [Self; 5] =
        [Self::Lease, Self::Resource, Self::Shard, Self::Account, Self::Transaction];

    /// The word used in node ids and in `/objects/{kind}/…`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Resource => "resource",
            Self::Shard => "shard",
            Self::Account => "account",
            Self::Transaction => "transaction",
        }
    }

    /// The word used in `/api/labs/{lab}/{plural}/{name}`.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Lease => "leases",
            Self::Resource => "resources",
            Self::Shard => "shards",
            Self::Account => "accounts",
            Self::Transaction => "transactions",
        }
    }

    /// The kind with this singular or plural word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word || kind.plural() == word)
    }
}

/// Who an event happened at: `lab`, `client/A`, `lease/orders`, `resource/ledger`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
pub enum NodeId {
    /// The lab itself.
    Lab,
    /// A client, by the name it uses as a holder.
    Client(Label),
    /// One of the lab's objects.
    Object(ObjectKind, Name),
}

impl NodeId {
    /// The part after the slash, or `lab`.
    pub fn name(&self) -> &str {
        match self {
            Self::Lab => "lab",
            Self::Client(label) => label.as_str(),
            Self::Object(_, name) => name.as_str(),
        }
    }

    /// The object's kind, when it is an object.
    pub fn object_kind(&self) -> Option<ObjectKind> {
        match self {
            Self::Object(kind, _) => Some(*kind),
            _ => None,
        }
    }

    /// Whether this is a client.
    pub fn is_client(&self) -> bool {
        matches!(self, Self::Client(_))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lab => f.write_str("lab"),
            Self::Client(label) => write!(f, "client/{label}"),
            Self::Object(kind, name) => write!(f, "{}/{name}", kind.as_str()),
        }
    }
}

impl From<NodeId> for String {
    fn from(node: NodeId) -> Self {
        node.to_string()
    }
}

impl TryFrom<String> for NodeId {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        let bad = || BadName {
            given: text.chars().take(80).collect(),
            allowed: "lab, client/NAME, lease/NAME, resource/NAME, shard/NAME, account/NAME, \
                      transaction/NAME",
        };
        if text == "lab" {
            return Ok(Self::Lab);
        }
        let (kind, name) = text.split_once('/').ok_or_else(bad)?;
        if kind == "client" {
            return Ok(Self::Client(name.try_into()?));
        }
        let kind = ObjectKind::ALL.into_iter().find(|one| one.as_str() == kind).ok_or_else(bad)?;
        Ok(Self::Object(kind, name.try_into()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling() {
        for good in ["orders", "a", "shard-7", "a.b_c", &"x".repeat(64)] {
            assert!(Name::try_from(good).is_ok(), "{good}");
        }
        for bad in ["", "Orders", " 7", "a/b", "ä", &"x".repeat(65)] {
            assert!(Name::try_from(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_that_would_be_rounded_are_refused() {
        assert!(FencingToken::try_from(MAX_SAFE_INTEGER).is_ok());
        assert!(FencingToken::try_from(MAX_SAFE_INTEGER + 1).is_err());
        for bad in ["1.5", "-1", "\"1\"", "null", "1e300", "9007199254740992"] {
            assert!(serde_json::from_str::<FencingToken>(bad).is_err(), "{bad}");
        }
        let error = serde_json::from_str::<TtlMs>("5").unwrap_err().to_string();
        assert!(
            error.contains("5 is out of range: use a whole number from 100 to 3600000"),
            "{error}"
        );
    }

    #[test]
    fn a_ttl_is_said_in_the_largest_unit_that_fits() {
        let cases = [
            (100, "100 ms"),
            (1000, "1 s"),
            (1500, "1.5 s"),
            (60_000, "1 min"),
            (90_000, "90 s"),
            (3_600_000, "1 h"),
        ];
        for (ms, words) in cases {
            assert_eq!(TtlMs::try_from(ms).expect("a ttl").in_words(), words);
        }
    }

    #[test]
    fn node_ids_round_trip_through_text() {
        for text in [
            "lab",
            "client/A",
            "lease/orders",
            "resource/ledger",
            "shard/7",
            "account/a",
            "transaction/t1",
        ] {
            let node = NodeId::try_from(text.to_owned()).expect(text);
            assert_eq!(node.to_string(), text);
        }
        assert!(NodeId::try_from("lease/Orders".to_owned()).is_err());
        assert!(NodeId::try_from("account".to_owned()).is_err());
    }
}
