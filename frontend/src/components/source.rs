//! The handler that ran, with the line that decided lit.
//!
//! The text is the very file that was compiled, served under `/source/`; the line comes
//! from the machine itself, so the two cannot drift.

use std::cell::RefCell;
use std::collections::BTreeMap;

use leptos::html::Div;
use leptos::prelude::*;
use protocol::trace::Decision;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;

use crate::arrival::await_into;
use crate::explain::excerpt::{Line, Token, excerpt};

pub(crate) mod scroll;

thread_local! {
    /// Files fetched so far; they do not change while the page lives.
    static FILES: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
}

/// The handler that ran, with the line that decided lit.
#[component]
pub fn Source(
    /// The line that decided; `None` when the event was not decided by a rule.
    #[prop(into)]
    decision: Signal<Option<Decision>>,
) -> impl IntoView {
    let name = Memo::new(move |_| {
        let file = decision.get()?.file;
        Some(file.rsplit('/').next().unwrap_or(&file).to_owned())
    });
    let file = RwSignal::new(None);
    let ask = move |name: Option<String>| {
        if let Some(name) = name {
            await_into(file, async move {
                let text = fetch(&name).await;
                (name, text)
            });
        }
    };
    Effect::new(move |_| ask(name.get()));
    let panel = NodeRef::<Div>::new();
    Effect::new(move |_| {
        decision.track();
        file.track();
        if let Some(panel) = panel.get() {
            request_animation_frame(move || scroll::into_view(&panel, ".lit"));
        }
    });
    view! {
        <div class="source" node_ref=panel>
            {move || {
                let Some(decision) = decision.get() else {
                    return view! {
                        <p class="panel-empty">
                            "This event was not decided by a rule. Go to a grant, an effect or a refusal to see the line that decided it."
                        </p>
                    }
                    .into_any();
                };
                // What arrives late, when another file is wanted, is not for this event.
                let arrived = file.get().filter(|(arrived, _)| Some(arrived) == name.get().as_ref());
                match arrived {
                    None => view! { <p class="panel-empty" aria-busy="true">"Fetching the source …"</p> }.into_any(),
                    Some((_, Err(problem))) => view! {
                        <p class="panel-empty">
                            {format!("{} could not be fetched ({problem}). ", decision.file)}
                            <button type="button" class="link-button" on:click=move |_| ask(name.get_untracked())>"Try again"</button>
                        </p>
                    }
                    .into_any(),
                    Some((_, Ok(text))) => draw(&decision, &text),
                }
            }}
        </div>
    }
}

async fn fetch(name: &str) -> Result<String, String> {
    if let Some(known) = FILES.with_borrow(|files| files.get(name).cloned()) {
        return Ok(known);
    }
    let no_network = |_| "no connection".to_owned();
    let response = JsFuture::from(window().fetch_with_str(&format!("/source/{name}")))
        .await
        .map_err(no_network)?;
    let response: web_sys::Response = response.dyn_into().map_err(no_network)?;
    if !response.ok() {
        return Err(format!("status {}", response.status()));
    }
    let text = JsFuture::from(response.text().map_err(no_network)?).await.map_err(no_network)?;
    let text = text.as_string().unwrap_or_default();
    FILES.with_borrow_mut(|files| files.insert(name.to_owned(), text.clone()));
    Ok(text)
}

fn draw(decision: &Decision, text: &str) -> AnyView {
    let lines: Vec<_> = excerpt(text, decision.line)
        .into_iter()
        .map(|line| draw_line(line, decision.line))
        .collect();
    view! {
        <p class="source-place mono">{format!("{}:{}", decision.file, decision.line)}</p>
        <p class="source-rule">"decided by "<code>{decision.rule.clone()}</code></p>
        <div class="source-scroll" tabindex="0" role="region" aria-label="Source of the handler">
            <pre class="code">{lines}</pre>
        </div>
    }
    .into_any()
}

fn draw_line(line: Line, lit: u32) -> AnyView {
    let is_lit = line.number == lit;
    // The condition that leads to the line, when it stands on the line before.
    let is_condition =
        line.number + 1 == lit && line.tokens.last().is_some_and(|(_, text)| text.ends_with('{'));
    let tokens: Vec<_> = line
        .tokens
        .into_iter()
        .map(|(token, text)| match token {
            Token::Plain => text.into_any(),
            Token::Comment => view! { <span class="c">{text}</span> }.into_any(),
            Token::Text => view! { <span class="s">{text}</span> }.into_any(),
            Token::Keyword => view! { <span class="k">{text}</span> }.into_any(),
            Token::Type => view! { <span class="t">{text}</span> }.into_any(),
            Token::Number => view! { <span class="n">{text}</span> }.into_any(),
        })
        .collect();
    view! {
        <span class="code-line" class:lit=is_lit class:condition=is_condition>
            <span class="code-number" aria-hidden="true">{line.number}</span>
            {is_lit.then(|| view! { <span class="sr-only">"this line decided: "</span> })}
            <span class="code-text">{tokens}</span>
        </span>
    }
    .into_any()
}
