//! The course: what there is, and honestly what there is not yet.

use serde::{Deserialize, Serialize};

/// One line of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// From 1; the order of the course.
    pub number: u32,
    /// The name of its files and its page: `04-the-fence`. Empty when it is planned.
    pub slug: String,
    /// The title.
    pub title: String,
    /// Which part of the course.
    pub part: Part,
    /// One or two sentences.
    pub summary: String,
    /// How long it takes; 0 when it is planned.
    pub minutes: u32,
    /// Whether it can be taken.
    pub available: bool,
}

/// A part of the course.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Lessons 1 to 8.
    LeasesAndFences,
    /// Lessons 9 to 14.
    TheWorldOutside,
    /// Lessons 15 to 22.
    TwoPhaseCommit,
}

impl Part {
    /// Every part, in order.
    pub const ALL: [Self; 3] = [Self::LeasesAndFences, Self::TheWorldOutside, Self::TwoPhaseCommit];

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::LeasesAndFences => "Leases and fences",
            Self::TheWorldOutside => "The world outside",
            Self::TwoPhaseCommit => "Two-phase commit",
        }
    }

    /// The word in a lesson's front matter and in JSON.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "leases_and_fences" => Some(Self::LeasesAndFences),
            "the_world_outside" => Some(Self::TheWorldOutside),
            "two_phase_commit" => Some(Self::TwoPhaseCommit),
            _ => None,
        }
    }
}

/// The lessons that are planned and cannot be taken yet.
pub fn planned() -> Vec<Entry> {
    use Part::{TheWorldOutside as World, TwoPhaseCommit as Commit};
    const PLANNED: [(u32, Part, &str, &str); 14] = [
        (
            9,
            World,
            "Somebody else's store",
            "R2 with `If-Match`, SQL with `WHERE token <`: the same fence where the store is not yours.",
        ),
        (10, World, "Redlock", "Five nodes and a majority, and still no order."),
        (11, World, "The clock jumps", "NTP and skew, and who has to care."),
        (
            12,
            World,
            "Partition",
            "Unavailable by design: what CP means when it is your turn to wait.",
        ),
        (13, World, "One hot key", "The throughput ceiling of a single writer, measured live."),
        (14, World, "The bootstrap cycle", "A coordinator that needs what it coordinates."),
        (
            15,
            Commit,
            "Two accounts, one decision",
            "Two-phase commit that works, a No vote, presumed abort.",
        ),
        (16, Commit, "The coordinator dies", "In doubt at every point, and recovery by alarm."),
        (17, Commit, "The decision you make twice", "`run()` again after COMMIT."),
        (18, Commit, "Nobody set the alarm", "And the alarm that decides without deciding."),
        (
            19,
            Commit,
            "Overdraft by two honest votes",
            "And the acknowledgement that acknowledges nothing.",
        ),
        (20, Commit, "The fence of a coordinator", "Stale rounds."),
        (21, Commit, "Blast radius", "One coordinator for all, or one each."),
        (
            22,
            Commit,
            "Where consensus is the answer",
            "Three-phase commit under partition, Paxos Commit without blocking.",
        ),
    ];
    let entry = |(number, part, title, summary): (u32, Part, &str, &str)| Entry {
        number,
        slug: String::new(),
        title: title.to_owned(),
        part,
        summary: summary.to_owned(),
        minutes: 0,
        available: false,
    };
    PLANNED.into_iter().map(entry).collect()
}
