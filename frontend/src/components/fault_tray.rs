//! "Break it": what a person can do to the clients, their messages and the objects, at
//! any time. Each button is one command of the script language and says so.

use leptos::prelude::*;
use lessons::script::{Cast, parse_command};
use protocol::ids::{NodeId, ObjectKind};

use super::icon::Icon;
use crate::narration;
use crate::playback::{Object, Scene};
use crate::session::{Session, Trouble};

/// The tray.
#[component]
pub(crate) fn FaultTray(
    /// The run.
    session: Session,
    /// How things stand.
    scene: Memo<Scene>,
    /// Whether it is open.
    open: RwSignal<bool>,
) -> impl IntoView {
    let cast = StoredValue::new(session.cast());
    let clients = cast.with_value(|cast| cast.clients.clone());
    let objects = cast.with_value(|cast| cast.objects.clone());
    let act = Callback::new(move |text: String| {
        match cast.with_value(|cast| parse_command(cast, &text)) {
            Ok(command) => session.perform(command),
            Err(error) => session.trouble.set(Some(Trouble::Refused(error.problem))),
        }
    });
    let close = move || {
        open.set(false);
        super::tabs::focus("tray-button");
    };
    let on_key = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Escape" {
            event.stop_propagation();
            close();
        }
    };
    let node = NodeRef::<leptos::html::Section>::new();
    Effect::new(move |_| {
        if let Some(node) = node.get() {
            let _ = node.focus();
        }
    });
    view! {
        <section
            class="tray"
            id="fault-tray"
            data-testid="tray"
            tabindex="-1"
            aria-label="Break it"
            node_ref=node
            on:keydown=on_key
        >
            <header>
                <h2>"Break it"</h2>
                <p class="soft">"On the real objects, at any time. The log keeps it."</p>
                <button
                    class="icon-button"
                    type="button"
                    aria-label="Close"
                    on:click=move |_| close()
                >
                    <Icon name="close" />
                </button>
            </header>
            <div class="tray-body">
                {clients
                    .into_iter()
                    .map(|name| {
                        let node = NodeId::Client(name);
                        client_row(node, cast, scene, act)
                    })
                    .collect_view()}
                {objects.into_iter().map(|node| object_row(node, scene, act)).collect_view()}
            </div>
        </section>
    }
}

/// A button that does one command.
fn button(act: Callback<String>, word: &'static str, command: String) -> AnyView {
    let title = command.clone();
    view! {
        <button class="chip" type="button" title=title on:click=move |_| act.run(command.clone())>
            {word}
        </button>
    }
    .into_any()
}

fn group(label: &'static str, buttons: Vec<AnyView>) -> AnyView {
    view! {
        <div class="tray-group" role="group" aria-label=label>
            <span>{label}</span>
            <div>{buttons}</div>
        </div>
    }
    .into_any()
}

fn client_row(
    node: NodeId,
    cast: StoredValue<Cast>,
    scene: Memo<Scene>,
    act: Callback<String>,
) -> AnyView {
    let name = node.name().to_owned();
    let title = name.clone();
    let testid = format!("pause-{name}");
    let is_paused = Memo::new(move |_| {
        use crate::playback::Activity;
        scene.with(|scene| {
            scene.client(&node).is_some_and(|one| matches!(one.activity, Activity::Paused { .. }))
        })
    });
    let value = RwSignal::new("50".to_owned());
    let pause = {
        let name = name.clone();
        move |_| {
            let verb = if is_paused.get_untracked() { "resume" } else { "pause" };
            act.run(format!("{verb} {name}"));
        }
    };
    let word = |verb: &str| format!("{verb} {name}");
    let on_request = vec![
        button(act, "Drop", word("drop request from")),
        button(act, "Hold 2 s", format!("delay request from {name} 2s")),
        button(act, "Send twice", word("duplicate request from")),
    ];
    let on_reply = vec![
        button(act, "Drop", word("drop reply to")),
        button(act, "Hold 2 s", format!("delay reply to {name} 2s")),
    ];
    let acts = cast.with_value(|cast| {
        let mut acts = Vec::new();
        for lease in cast.of_kind(ObjectKind::Lease) {
            acts.push(button(act, "Acquire 3 s", format!("{name} acquire {lease} ttl=3s")));
            acts.push(button(act, "Renew", format!("{name} renew {lease} ttl=3s")));
            acts.push(button(act, "Release", format!("{name} release {lease}")));
        }
        for resource in cast.of_kind(ObjectKind::Resource) {
            acts.push(button(act, "Claim", format!("{name} claim {resource}")));
            acts.push(button(act, "Read", format!("{name} read {resource} balance")));
            acts.push(write_form(name.clone(), resource.to_string(), value, act));
        }
        for shard in cast.of_kind(ObjectKind::Shard) {
            let text = format!("{name} apply {shard} apples+=1 epoch=1");
            let label = format!("+1 on {shard}");
            let title = text.clone();
            acts.push(
                view! {
                    <button
                        class="chip"
                        type="button"
                        title=title
                        on:click=move |_| act.run(text.clone())
                    >
                        {label}
                    </button>
                }
                .into_any(),
            );
        }
        acts
    });
    view! {
        <fieldset class="tray-row">
            <legend>
                <span class="who">{title.clone()}</span>
            </legend>
            <button
                class="chip strong"
                type="button"
                data-testid=testid
                aria-pressed=move || is_paused.get().to_string()
                on:click=pause
            >
                {move || {
                    if is_paused.get() { format!("Wake {title}") } else { format!("Pause {title}") }
                }}
            </button>
            {group("by hand", acts)}
            {group("next request", on_request)}
            {group("next reply", on_reply)}
        </fieldset>
    }
    .into_any()
}

fn write_form(
    client: String,
    resource: String,
    value: RwSignal<String>,
    act: Callback<String>,
) -> AnyView {
    let label = format!("Value that {client} writes");
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let value = value.get_untracked();
        act.run(format!("{client} write {resource} balance={}", value.trim()));
    };
    view! {
        <form class="chip-form" on:submit=submit>
            <button class="chip" type="submit">
                "Write"
            </button>
            <input
                type="text"
                inputmode="numeric"
                size="4"
                aria-label=label
                prop:value=move || value.get()
                on:input=move |event| value.set(event_target_value(&event))
            />
        </form>
    }
    .into_any()
}

fn object_row(node: NodeId, scene: Memo<Scene>, act: Callback<String>) -> AnyView {
    let name = node.name().to_owned();
    let kind = node.object_kind();
    let point = RwSignal::new("now".to_owned());
    let stays = RwSignal::new(false);
    let condition = Memo::new(move |_| {
        scene
            .with(|scene| {
                scene.object(&node).map(Object::condition).map(|one| {
                    (
                        one.is_down(),
                        !one.faults.is_empty(),
                        one.alarm_suppressed,
                        one.clock_offset_ms,
                    )
                })
            })
            .unwrap_or_default()
    });
    let crash = {
        let name = name.clone();
        move |_| {
            let down = if stays.get_untracked() { " and stay down" } else { "" };
            act.run(format!("crash {name} at {}{down}", point.get_untracked()));
        }
    };
    let word = |text: &str| text.replace('@', &name);
    let clock = vec![
        button(act, "−10 s", word("clock @ -10s")),
        button(act, "+10 s", word("clock @ +10s")),
        button(act, "+1 h", word("clock @ +1h")),
        button(act, "Right", word("clock @ 0")),
    ];
    let network = vec![
        button(act, "Cut off", word("unreachable @")),
        button(act, "Next call only", word("unreachable @ times=1")),
        button(act, "Heal", word("heal @")),
    ];
    let mut groups = vec![group("network", network), group("clock", clock)];
    if kind == Some(ObjectKind::Lease) {
        groups.push(group(
            "alarm",
            vec![
                button(act, "Ring now", word("alarm @ fire")),
                button(act, "Hold", word("alarm @ suppress")),
                button(act, "Let go", word("alarm @ resume")),
            ],
        ));
    }
    if kind == Some(ObjectKind::Resource) {
        groups.push(group(
            "guard",
            vec![
                button(act, "None", word("rules @ guard=none")),
                button(act, ">=", word("rules @ guard=at_least")),
                button(act, ">", word("rules @ guard=strict")),
                button(act, "Claimed", word("rules @ guard=claimed")),
            ],
        ));
    }
    groups.push(group(
        "rules",
        vec![
            button(act, "As published", word("rules @ published")),
            button(act, "Repaired", word("rules @ repaired")),
        ],
    ));
    let heading = kind.map_or(name.clone(), |kind| format!("{} · {name}", kind.as_str()));
    let restart = word("restart @");
    let state = move || {
        let (down, cut, alarm, offset_ms) = condition.get();
        let mut words = Vec::new();
        if down {
            words.push("down".to_owned());
        }
        if cut {
            words.push("faults set".to_owned());
        }
        if alarm {
            words.push("alarm held".to_owned());
        }
        if offset_ms != 0 {
            let sign = if offset_ms < 0 { "−" } else { "+" };
            words.push(format!("clock {sign}{}", narration::span(offset_ms.unsigned_abs())));
        }
        words.join(" · ")
    };
    view! {
        <fieldset class="tray-row">
            <legend>
                <span class="who">{heading.clone()}</span>
                <span class="tray-state">{state}</span>
            </legend>
            <div class="tray-group" role="group" aria-label="crash">
                <span>"crash"</span>
                <div>
                    <select
                        aria-label=format!("Where {heading} crashes")
                        on:change=move |event| point.set(event_target_value(&event))
                    >
                        <option value="now">"at once"</option>
                        <option value="before_persist">"before it is stored"</option>
                        <option value="after_persist">"stored, nobody told"</option>
                        <option value="after_send">"after the reply"</option>
                    </select>
                    <label class="tick">
                        <input
                            type="checkbox"
                            prop:checked=move || stays.get()
                            on:change=move |event| stays.set(event_target_checked(&event))
                        />
                        "stay down"
                    </label>
                    <button class="chip strong" type="button" on:click=crash>
                        "Crash"
                    </button>
                    {button(act, "Restart", restart)}
                </div>
            </div>
            {groups}
        </fieldset>
    }
    .into_any()
}
