//! What each rule says, where it comes from, and which case of the review it answers.

use protocol::rules::RuleValue;

/// A rule in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// What a person calls it: `strict guard`.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub sentence: &'static str,
    /// Where the paper has it; `L` is *The Leader You Never Elected*.
    pub paper: &'static str,
    /// The case of the protocol review.
    pub case: &'static str,
}

/// The meaning of a rule in its present setting.
pub fn meaning(rule: &str, value: Option<&RuleValue>) -> Meaning {
    let word = match value {
        Some(RuleValue::Choice(word)) => word.as_str(),
        _ => "",
    };
    let (name, sentence, paper, case) = match (rule, word) {
        ("guard", "strict") => {
            ("strict guard", "Admit only a token above the mark.", "L §5, §6C", "C9")
        }
        ("guard", "at_least") => {
            ("at-least guard", "Admit a token at the mark or above.", "L §5", "C9")
        }
        ("guard", "none") => ("no guard", "Admit everything.", "L §3", "C1"),
        ("guard", _) => (
            "claimed guard",
            "Admit only the token that last claimed the resource, and no claim below the mark.",
            "L §5",
            "C1",
        ),
        ("fence_per_lease", _) => (
            "one fence per lease",
            "The fence covers everything that the lease covers.",
            "L §5",
            "C5",
        ),
        ("atomic_write", _) => {
            ("atomic write", "Mark and value are stored in one commit.", "L §6C", "C4")
        }
        ("remember_write_ids", _) => {
            ("write ids", "A write that comes again gets its first result.", "L §6C", "C2")
        }
        ("check_sequence", _) => (
            "sequence check",
            "Writes of one grant are applied in its order, without gaps.",
            "L §6C",
            "C3",
        ),
        ("fence_reads", _) => {
            ("fenced reads", "A read with a token below the mark is refused.", "L §5", "C8")
        }
        ("renew_proves_grant", _) => (
            "renewal proves the grant",
            "Renewing needs the token of the current grant.",
            "L §6B",
            "B1",
        ),
        ("holder_has_nonce", _) => (
            "holder and nonce",
            "A name is not an identity: the same name does not get in again.",
            "L §6B",
            "B2",
        ),
        ("remember_requests", _) => {
            ("request ids", "A request that comes again gets its first reply.", "L §6B", "B4")
        }
        ("check_not_after", _) => {
            ("not after", "A request is not granted after the time that it names.", "L §6B", "B4")
        }
        ("fifo_queue" | "check_waiter_deadline", _) => (
            "queue",
            "Candidates are served in the order in which they came, while they still wait.",
            "L §6B",
            "B10",
        ),
        ("one_holder", _) => (
            "one holder",
            "While a grant lasts, nobody else gets one. No switch turns this off.",
            "L §2, §6B",
            "T2",
        ),
        ("release_proves_grant", _) => (
            "release proves the grant",
            "Only the current grant can be given back. No switch turns this off.",
            "L §6B",
            "B3",
        ),
        ("sealed", _) => (
            "seal",
            "A sealed shard has handed its keys over. No switch turns this off.",
            "L §4, §6A",
            "A6",
        ),
        ("check_map_epoch", _) => (
            "map epoch",
            "Caller and shard must go by the same map of keys to shards.",
            "L §4, §6A",
            "A6",
        ),
        ("remember_op_ids", _) => {
            ("operation ids", "An operation that comes again gets its first number.", "L §6A", "A4")
        }
        ("atomic_apply", _) => {
            ("atomic apply", "Number, log and state are stored in one commit.", "L §6A", "A2")
        }
        _ => ("a fixed rule", "This check is always on.", "L §5", "–"),
    };
    Meaning { name, sentence, paper, case }
}
