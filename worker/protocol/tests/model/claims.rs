//! What must hold, and what must be possible, in every system of the lease and fence
//! models: one bit each, set by the step that breaks or shows it.
//!
//! The bits tell about the last step only, so that they do not multiply the states.

use super::system::{Lab, System};

/// Defines a `Claim` for a model and its state, which must have `told(Claim) -> bool`.
macro_rules! claims {
    ($model:ty, $state:ty; $($(#[$doc:meta])* $name:ident: $kind:ident $words:literal,)+) => {
        /// One thing that must hold (`always`) or must be possible (`sometimes`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Claim { $($(#[$doc])* $name,)+ }

        impl Claim {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its words.
            pub fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)+ }
            }

            /// Whether it must hold in every state, rather than be possible in some.
            pub fn is_always(self) -> bool {
                match self { $(Self::$name => stringify!($kind) == "always",)+ }
            }

            /// As the checker wants it.
            pub fn property(self) -> stateright::Property<$model> {
                match self { $(Self::$name => {
                    stateright::Property::$kind($words, |_, state: &$state| {
                        state.told(Self::$name) != Self::$name.is_always()
                    })
                })+ }
            }
        }
    };
}
pub(crate) use claims;

claims! {
    Lab, System;
    // ---- the authority ---------------------------------------------------------------
    /// Each grant has a higher token than every grant before it.
    TokensRise: always "tokens rise",
    /// No grant while another client's grant has time left by the authority's clock.
    OneHolder: always "one holder",
    /// A request id leads to one grant at most, however often it arrives.
    OneGrantPerRequest: always "one grant per request",
    /// Nothing is granted after the time that the request itself set.
    NoLateGrant: always "no late grant",
    /// Nobody is granted the lease ahead of one who asked before and still waits.
    FirstComeFirstServed: always "first come, first served",
    /// Nobody is granted the lease who has stopped waiting.
    NoGrantToTheGone: always "no grant to the gone",
    /// A reply that says "granted" and gives time is about the grant that is current.
    GrantedMeansHeld: always "granted means held",
    /// An alarm that has rung is not due again at the same moment.
    AlarmRests: always "the alarm rests",
    // ---- the resource ----------------------------------------------------------------
    /// Writes to one key land in the order of their tokens.
    EffectsInTokenOrder: always "effects in token order",
    /// Once a newer holder has claimed, read or written, nothing of an older grant lands.
    NoOlderEffect: always "no older effect",
    /// Nobody is served a read under a grant that a newer holder has ended by beginning.
    NoOlderRead: always "no older read",
    /// Nobody overwrites another client's write that it has not seen.
    NoLostUpdate: always "no lost update",
    /// A write id has one effect at most.
    OneEffectPerWriteId: always "one effect per write",
    /// Who asks again what became of an applied write is told that it was applied.
    OutcomeLearnt: always "the outcome is learnt",
    /// The fence moved if and only if the payload is stored.
    AllOrNothing: always "all or nothing",
    /// The writes of one grant land in the order in which it numbered them.
    WritesInSequence: always "writes in sequence",
    // ---- what must be possible, or the model would be empty -----------------------------
    /// Both clients get a write through.
    BothWrite: sometimes "both write",
    /// A write is refused as older.
    Fenced: sometimes "a write is fenced",
    /// A queued candidate is granted the lease.
    QueueGrants: sometimes "the queue grants",
    /// A queued candidate gives up.
    WaiterTimesOut: sometimes "a waiter times out",
    /// A write is answered with its first result.
    Duplicate: sometimes "a duplicate is told",
    /// A renewal succeeds.
    Renewed: sometimes "a grant is renewed",
    /// A renewal is refused.
    RenewalLost: sometimes "a renewal is lost",
    /// An acquire is answered with its first result.
    Repeated: sometimes "a request is repeated",
    /// An acquire is refused because it is late.
    Late: sometimes "a request is late",
    /// A write is refused because one before it is missing.
    Gap: sometimes "a gap is seen",
    /// A read is refused as older.
    ReadFenced: sometimes "a read is fenced",
}
