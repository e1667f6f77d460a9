//! The paused holder, at work when the page opens.
//!
//! A really renews its lease while it is awake, which is why pausing it matters. B really
//! asks, is refused, and asks again when it was told the lease would be over.
//!
//! Invariant: every number on the page comes from the log. The scene only sends commands.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use lessons::client::Outcome;
use lessons::script::{self, Command, parse_command};
use protocol::ids::NodeId;
use protocol::lease::LeaseReply;
use protocol::object::Reply;
use wasm_bindgen_futures::spawn_local;

use crate::components::icon::Icon;
use crate::components::notice::Notices;
use crate::components::stage::Stage;
use crate::components::transcript::LiveSentence;
use crate::session::now::stage_clock;
use crate::session::{Mode, Session, Start};

const SCRIPT: &str = "clients A B
lease orders
resource ledger
rules orders repaired
rules ledger published guard=none atomic_write=on
";

/// A renews this often while it is awake, in ms; its lease is for 6 s.
const BEAT_MS: u32 = 2_400;
/// An open page that nobody looks at stops using up the lab after so many renewals.
const BEATS_LONGEST: u32 = 40;
/// How much faster than in a lesson events follow one another.
const PACE: f64 = 0.55;

/// How far the story is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    /// The lab is being made and A gets the lease.
    Opening,
    /// A holds the lease and renews it.
    Works,
    /// A is paused.
    Paused,
    /// B has asked and waits for the lease to run out.
    Waits,
    /// B holds the lease and has written.
    Entered,
    /// A has woken up and its write has been answered.
    Woken,
    /// Nobody looked for a while, so A has stopped.
    Resting,
}

/// What A's late write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It overwrote what B had written.
    Lost,
    /// The fence refused it.
    Fenced,
    /// B had not been in.
    Harmless,
}

/// The run of the scene; nothing when its script is broken, which a test would find.
pub(super) fn session() -> Option<Session> {
    let session = Session::new("", script::parse(SCRIPT).ok()?);
    session.pace.set(PACE);
    Some(session)
}

/// The scene with its controls.
#[component]
pub(super) fn Opening(
    /// The run.
    session: Session,
) -> impl IntoView {
    let story = Story {
        session,
        act: RwSignal::new(Act::Opening),
        ending: RwSignal::new(None),
        fenced: RwSignal::new(false),
    };
    story.open();
    let scene = session.scene();
    let selected = RwSignal::new(None::<NodeId>);
    view! {
        <section class="opening" aria-labelledby="opening-title">
            <div class="opening-text">
                <p class="eyebrow">"A lab for leases and fencing tokens"</p>
                <h1 id="opening-title" class="serif">
                    "A paused process does not know that it was paused."
                </h1>
                <p class="serif lead">
                    "Only the holder of the lease may write to the ledger. Break that."
                </p>
                <Controls story=story />
            </div>
            <div class="opening-figure" data-testid="opening-stage">
                <Stage scene=scene now_ms=stage_clock(session, scene) selected=selected />
                <Verdict story=story />
            </div>
            <Notices session=session />
            <LiveSentence playback=session.playback cursor=session.cursor />
        </section>
    }
}

#[component]
fn Controls(story: Story) -> impl IntoView {
    let act = story.act;
    let step =
        move |number: usize, label: &'static str, hint: &'static str, at: Act, go: fn(Story)| {
            let state = move || match act.get() {
                now if now == at => "now",
                Act::Resting => "ahead",
                now if now > at => "done",
                _ => "ahead",
            };
            view! {
                <li data-state=state>
                    <button
                        type="button"
                        class="act"
                        disabled=move || act.get() != at
                        on:click=move |_| go(story)
                    >
                        <span class="act-number" aria-hidden="true">
                            {move || {
                                if state() == "done" {
                                    view! { <Icon name="check" /> }.into_any()
                                } else {
                                    number.into_any()
                                }
                            }}
                        </span>
                        <span class="act-words">
                            <b>{label}</b>
                            <span>{hint}</span>
                        </span>
                    </button>
                </li>
            }
        };
    view! {
        <ol class="acts">
            {step(1, "Pause A", "a long garbage collection, a closed laptop", Act::Works, Story::pause)}
            {step(2, "Let B in", "it waits until A's lease has run out", Act::Paused, Story::let_in)}
            {step(3, "Wake A: it writes", "A still believes what it believed", Act::Entered, Story::wake)}
        </ol>
        <div class="fence-switch">
            <p id="fence-label">"The fence"</p>
            <div class="segments" role="group" aria-labelledby="fence-label">
                <button
                    type="button"
                    data-testid="fence-off"
                    aria-pressed=move || (!story.fenced.get()).to_string()
                    on:click=move |_| story.set_fence(false)
                >
                    "Off"
                </button>
                <button
                    type="button"
                    data-testid="fence-on"
                    aria-pressed=move || story.fenced.get().to_string()
                    on:click=move |_| story.set_fence(true)
                >
                    "On"
                </button>
            </div>
            <p class="soft">
                {move || {
                    if story.fenced.get() {
                        "The ledger admits no token below the highest it has seen."
                    } else {
                        "The ledger writes whatever it is sent."
                    }
                }}
            </p>
        </div>
    }
}

#[component]
fn Verdict(story: Story) -> impl IntoView {
    let text = move || {
        let settled = !story.session.is_walking();
        match (story.act.get(), story.ending.get()) {
            (Act::Woken, Some(ending)) if settled => Some(ending),
            _ => None,
        }
    };
    let waiting = move || match story.act.get() {
        Act::Opening => "Setting up a fresh lab…",
        Act::Works => "A holds the lease and renews it every few seconds.",
        Act::Paused => "A is paused and renews nothing. Its lease runs out.",
        Act::Waits => "B was refused: A's lease has still some time to run. B waits.",
        Act::Entered => {
            "B has the lease and has added 20. A sleeps, and still wants to take off 5."
        }
        Act::Woken => "A writes what it worked out before its pause.",
        Act::Resting => "A has stopped renewing, so as not to use up the lab.",
    };
    let again = move |fenced: bool| {
        move |_| {
            story.fenced.set(fenced);
            story.open();
        }
    };
    let button = move |label: &'static str, fenced: bool, primary: bool| {
        view! {
            <button
                class="button"
                class:primary=primary
                type="button"
                on:click=again(fenced)
            >
                {label}
            </button>
        }
    };
    view! {
        <div class="verdict" data-testid="verdict" data-kind=move || match text() {
            Some(Ending::Lost) => "red",
            Some(Ending::Fenced) => "green",
            _ => "plain",
        }>
            {move || match text() {
                None => {
                    view! {
                        <p>{waiting()}</p>
                        {(story.act.get() == Act::Resting).then(|| button("Begin again", false, true))}
                    }
                        .into_any()
                }
                Some(Ending::Lost) => {
                    view! {
                        <p>
                            <b>"B's 20 are gone."</b>
                            " A wrote under an old token, and nothing stopped it: A had no way to know, and nobody else looked."
                        </p>
                        {button("Again, with the fence on", true, true)}
                    }
                        .into_any()
                }
                Some(Ending::Fenced) => {
                    view! {
                        <p>
                            <b>"Fenced."</b>
                            " A's token is below the mark that B has left, so the ledger refused the write. The ledger looked at a number, not at a clock."
                        </p>
                        <p>
                            <b>"So are we safe now? "</b>
                            "Not yet. "
                            <a href="/lessons/06-before-the-first-write">
                                "A stale write that comes before B's first"
                            </a>
                            " still gets in, and so does "
                            <a href="/lessons/07-renewal-is-not-acquisition">
                                "a holder that wakes and renews"
                            </a>
                            "."
                        </p>
                        {button("Again, without", false, false)}
                    }
                        .into_any()
                }
                Some(Ending::Harmless) => {
                    view! {
                        <p>
                            <b>"No harm done:"</b>
                            " nobody else had been in. Pause A, and let B in before you wake it."
                        </p>
                        {button("Again", story.fenced.get_untracked(), true)}
                    }
                        .into_any()
                }
            }}
        </div>
    }
}

/// The story's state and what moves it on.
#[derive(Clone, Copy)]
struct Story {
    session: Session,
    act: RwSignal<Act>,
    ending: RwSignal<Option<Ending>>,
    fenced: RwSignal<bool>,
}

impl Story {
    /// A fresh lab in which A gets the lease and works.
    fn open(self) {
        self.act.set(Act::Opening);
        self.ending.set(None);
        self.session.start(Start::default());
        let started = self.session.started_at();
        spawn_local(async move {
            while self.is_same(started) && self.session.mode.get_untracked() == Mode::Starting {
                TimeoutFuture::new(30).await;
            }
            if self.fenced.try_get_untracked() == Some(true) {
                self.command(started, "rules ledger guard=at_least").await;
            }
            self.command(started, "A acquire orders ttl=6s").await;
            self.command(started, "A write ledger balance=100").await;
            self.command(started, "A read ledger balance").await;
            self.command(started, "B read ledger balance token=none").await;
            if self.is_same(started) {
                self.session.skip();
                self.act.set(Act::Works);
                self.beat(started).await;
            }
        });
    }

    /// A renews while it is awake.
    async fn beat(self, started: u32) {
        for _ in 0..BEATS_LONGEST {
            TimeoutFuture::new(BEAT_MS).await;
            if !self.is_same(started) || self.act.get_untracked() != Act::Works {
                return;
            }
            if !is_page_visible() {
                break;
            }
            self.command(started, "A renew orders ttl=6s").await;
        }
        if self.is_same(started) && self.act.get_untracked() == Act::Works {
            self.act.set(Act::Resting);
        }
    }

    fn pause(self) {
        self.act.set(Act::Paused);
        let started = self.session.started_at();
        spawn_local(async move {
            self.command(started, "pause A").await;
        });
    }

    fn let_in(self) {
        self.act.set(Act::Waits);
        let started = self.session.started_at();
        spawn_local(async move {
            loop {
                match self.command(started, "B acquire orders ttl=60s").await {
                    Some(Outcome::Reply(Reply::Lease(LeaseReply::Refused {
                        remaining_ms,
                        ..
                    }))) => TimeoutFuture::new(remaining_ms as u32 + 80).await,
                    Some(Outcome::Reply(Reply::Lease(LeaseReply::Granted { .. }))) => break,
                    _ => TimeoutFuture::new(800).await,
                }
                if !self.is_same(started) {
                    return;
                }
            }
            self.command(started, "B read ledger balance").await;
            self.command(started, "B write ledger balance=B.balance+20").await;
            while self.is_same(started) && untrack(|| self.session.is_walking()) {
                TimeoutFuture::new(50).await;
            }
            if self.is_same(started) {
                self.act.set(Act::Entered);
            }
        });
    }

    fn wake(self) {
        self.act.set(Act::Woken);
        let started = self.session.started_at();
        spawn_local(async move {
            self.command(started, "resume A").await;
            let outcome = self.command(started, "A write ledger balance=A.balance-5").await;
            if !self.is_same(started) {
                return;
            }
            self.ending.set(match outcome.as_ref().map(Outcome::word) {
                Some("fenced") => Some(Ending::Fenced),
                Some("applied") => Some(Ending::Lost),
                _ => Some(Ending::Harmless),
            });
        });
    }

    fn set_fence(self, on: bool) {
        if self.fenced.get_untracked() == on {
            return;
        }
        self.fenced.set(on);
        if matches!(self.act.get_untracked(), Act::Woken | Act::Resting) {
            self.open();
            return;
        }
        let guard = if on { "at_least" } else { "none" };
        if let Some(command) = self.parse(&format!("rules ledger guard={guard}")) {
            self.session.perform(command);
        }
    }

    /// Does one command when the one before is done; nothing when the scene has changed.
    async fn command(self, started: u32, text: &str) -> Option<Outcome> {
        let command = self.parse(text)?;
        loop {
            if !self.is_same(started) {
                return None;
            }
            match self.session.do_now(command.clone()).await {
                Ok(outcome) => return outcome,
                Err(problem) if problem == "busy" => TimeoutFuture::new(40).await,
                Err(_) => return None,
            }
        }
    }

    fn parse(self, text: &str) -> Option<Command> {
        parse_command(&self.session.cast(), text).ok()
    }

    fn is_same(self, started: u32) -> bool {
        self.session.is_started(started)
    }
}

fn is_page_visible() -> bool {
    web_sys::window().and_then(|window| window.document()).is_some_and(|page| !page.hidden())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_and_all_commands_of_the_scene_can_be_read() {
        let script = script::parse(SCRIPT).expect("the scene's script");
        let source = include_str!("scene.rs");
        let commands = source.lines().filter_map(|line| {
            let (_, rest) = line.split_once("self.command(started, \"")?;
            rest.split_once('"').map(|(text, _)| text)
        });
        let mut n_commands = 0;
        for text in commands {
            parse_command(&script.cast, text).expect(text);
            n_commands += 1;
        }
        assert!(n_commands >= 8, "{n_commands}");
    }
}
