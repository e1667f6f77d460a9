//! The rejection card: what was presented, what was known, which rule decided, and what
//! the same machine would have done without it.

use leptos::prelude::*;

use crate::explain::Rejection;

/// Why a request was refused, and what would have happened without the rule.
#[component]
pub fn RejectionCard(
    /// The refusal.
    rejection: Rejection,
    /// The reader wants to see the line that decided.
    #[prop(into, optional)]
    on_source: Option<Callback<()>>,
) -> impl IntoView {
    let Rejection { title, presented, known, meaning, without, decision, .. } = rejection;
    let place = decision.map(|decision| {
        let file = decision.file.rsplit('/').next().unwrap_or(&decision.file).to_owned();
        format!("{file}:{}", decision.line)
    });
    view! {
        <section class="rejection" aria-label="Refusal">
            <h3>{title}</h3>
            <p class="rejection-facts">
                <span class="fact">{presented.0}<b class="tok stale mono">{presented.1}</b></span>
                <span class="fact-against" aria-hidden="true">"against"</span>
                <span class="fact">{known.0}<b class="tok mono">{known.1}</b></span>
            </p>
            <p><b>{capital(meaning.name)}</b>". "{meaning.sentence}</p>
            <dl>
                {without.map(|without| view! {
                    <dt>"Without it"</dt>
                    <dd>{without.sentence}" "<code class="rejection-setting">{without.setting}</code></dd>
                })}
                <dt>"Paper"</dt>
                <dd>{format!("{} · case {}", meaning.paper, meaning.case)}</dd>
                {place.map(|place| view! {
                    <dt>"Decided in"</dt>
                    <dd>{match on_source {
                        Some(on_source) => view! {
                            <button type="button" class="link-button mono" on:click=move |_| on_source.run(())>{place}</button>
                        }.into_any(),
                        None => view! { <span class="mono">{place}</span> }.into_any(),
                    }}</dd>
                })}
            </dl>
        </section>
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
