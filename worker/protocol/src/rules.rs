//! Rules: every safety measure of a machine is a named switch.
//!
//! `published()` is the paper's code, `repaired()` has everything on. A lesson flips
//! one switch and runs the same script again. A switch is read in exactly one place,
//! which [`crate::trace::Decision`] points at.

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The value of one rule: most are on or off, the fence's guard is a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RuleValue {
    /// On or off.
    Switch(bool),
    /// One of several words.
    Choice(String),
}

impl fmt::Display for RuleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Choice(word) => f.write_str(word),
        }
    }
}

/// The two named settings of every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Preset {
    /// What the paper's code does.
    Published,
    /// Every measure on.
    Repaired,
}

/// A change of rules: a preset first, if one is given, then single rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RulesUpdate {
    /// Start from this preset; without it, from the rules in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Single rules to set, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, RuleValue>,
}

/// Why a change of rules was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRule {
    /// The rule's name as given.
    pub rule: String,
    /// What may be used instead.
    pub allowed: String,
}

impl fmt::Display for BadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {:?}: use {}", self.rule, self.allowed)
    }
}

/// The switches of one machine.
pub trait Rules:
    Copy + fmt::Debug + Eq + core::hash::Hash + Serialize + serde::de::DeserializeOwned
{
    /// The paper's code.
    fn published() -> Self;
    /// Everything on.
    fn repaired() -> Self;
    /// Every rule with its value, in the order of the source.
    fn entries(&self) -> Vec<(&'static str, RuleValue)>;
    /// Sets one rule by name.
    fn set(&mut self, rule: &str, value: &RuleValue) -> Result<(), BadRule>;

    /// The rules after a change, or why it is refused; `self` is untouched then.
    fn updated(self, update: &RulesUpdate) -> Result<Self, BadRule> {
        let mut rules = match update.preset {
            None => self,
            Some(Preset::Published) => Self::published(),
            Some(Preset::Repaired) => Self::repaired(),
        };
        for (rule, value) in &update.set {
            rules.set(rule, value)?;
        }
        Ok(rules)
    }
}

/// Defines a struct of on/off switches: `name: published value,`.
macro_rules! switches {
    ($(#[$doc:meta])* $name:ident { $($(#[$rule_doc:meta])* $rule:ident: $published:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name { $($(#[$rule_doc])* pub $rule: bool,)+ }

        impl $crate::rules::Rules for $name {
            fn published() -> Self {
                Self { $($rule: $published,)+ }
            }

            fn repaired() -> Self {
                Self { $($rule: true,)+ }
            }

            fn entries(&self) -> Vec<(&'static str, $crate::rules::RuleValue)> {
                vec![$((stringify!($rule), $crate::rules::RuleValue::Switch(self.$rule)),)+]
            }

            fn set(
                &mut self,
                rule: &str,
                value: &$crate::rules::RuleValue,
            ) -> Result<(), $crate::rules::BadRule> {
                let bad = |allowed: String| $crate::rules::BadRule { rule: rule.to_owned(), allowed };
                let $crate::rules::RuleValue::Switch(on) = value else {
                    return Err(bad("true or false".to_owned()));
                };
                match rule {
                    $(stringify!($rule) => self.$rule = *on,)+
                    _ => return Err(bad([$(stringify!($rule)),+].join(", "))),
                }
                Ok(())
            }
        }
    };
}
pub(crate) use switches;
