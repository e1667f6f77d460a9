//! Predict before you press: a question whose answer the run gives.

use leptos::prelude::*;
use lessons::lesson::Prediction;

use super::icon::Icon;

/// A question before a step, and afterwards what each answer was worth.
#[component]
pub(crate) fn PredictionCard(
    /// The question.
    prediction: Prediction,
    /// The option chosen, once one is.
    #[prop(into)]
    chosen: Signal<Option<usize>>,
    /// What happened, once it has: the outcome's word.
    #[prop(into)]
    outcome: Signal<Option<String>>,
    /// The reader has decided.
    #[prop(into)]
    on_answer: Callback<usize>,
) -> impl IntoView {
    let picked = RwSignal::new(chosen.get_untracked());
    let options = StoredValue::new(prediction.options.clone());
    let right = Memo::new(move |_| {
        let outcome = outcome.get()?;
        options.with_value(|options| Some(right_option(options, &outcome)))
    });
    let head = move || match (chosen.get(), right.get()) {
        (None, _) => "What will happen, and why?",
        (Some(_), None) => "You predicted",
        (Some(mine), Some(right)) if mine == right => "You predicted it",
        (Some(_), Some(_)) => "You predicted something else",
    };
    let rows = (0..prediction.options.len())
        .map(|index| option_row(index, &prediction, picked, chosen, right))
        .collect_view();
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        if let (Some(option), None) = (picked.get_untracked(), chosen.get_untracked()) {
            on_answer.run(option);
        }
    };
    view! {
        <form
            class="card prediction"
            data-testid="prediction"
            data-state=move || match (chosen.get(), right.get()) {
                (None, _) => "open",
                (Some(_), None) => "running",
                _ => "answered",
            }
            on:submit=submit
        >
            <fieldset>
                <legend>
                    <span class="eyebrow">{head}</span>
                    <span class="question" inner_html=prediction.question_html.clone()></span>
                </legend>
                {rows}
            </fieldset>
            {move || {
                chosen
                    .get()
                    .is_none()
                    .then(|| {
                        view! {
                            <button
                                class="button primary wide"
                                type="submit"
                                data-testid="predict"
                                disabled=move || picked.get().is_none()
                            >
                                "See what happens"
                            </button>
                        }
                    })
            }}
        </form>
    }
}

fn option_row(
    index: usize,
    prediction: &Prediction,
    picked: RwSignal<Option<usize>>,
    chosen: Signal<Option<usize>>,
    right: Memo<Option<usize>>,
) -> AnyView {
    let option = &prediction.options[index];
    let explanation = option.explanation_html.clone();
    let state = move || match (right.get(), chosen.get()) {
        (Some(right), _) if right == index => "right",
        (Some(_), Some(mine)) if mine == index => "wrong",
        (Some(_), _) => "other",
        (None, Some(mine)) if mine == index => "mine",
        _ => "open",
    };
    let id = format!("{}-{index}", prediction.id);
    view! {
        <div class="option" data-state=state>
            <input
                type="radio"
                name=prediction.id.clone()
                id=id.clone()
                prop:checked=move || picked.get() == Some(index)
                disabled=move || chosen.get().is_some()
                on:change=move |_| picked.set(Some(index))
            />
            <div>
                <label for=id inner_html=option.text_html.clone()></label>
                {move || {
                    right
                        .get()
                        .map(|_| {
                            view! {
                                <div class="explanation">
                                    {verdict(state())}
                                    <div inner_html=explanation.clone()></div>
                                </div>
                            }
                        })
                }}
            </div>
        </div>
    }
    .into_any()
}

fn verdict(state: &'static str) -> AnyView {
    match state {
        "right" => view! {
            <b>
                <Icon name="check" />
                <span class="sr-only">"This happened: "</span>
            </b>
        }
        .into_any(),
        "wrong" => view! {
            <b>
                <Icon name="cross" />
                "Your prediction."
            </b>
        }
        .into_any(),
        _ => ().into_any(),
    }
}

/// The option that the run has proved right: of those that name what happened the one that
/// also gives the right reason.
fn right_option(options: &[lessons::lesson::PredictionOption], outcome: &str) -> usize {
    let named = |wants_right: bool| {
        options.iter().position(|one| one.outcome == outcome && (one.right || !wants_right))
    };
    let marked = options.iter().position(|one| one.right);
    named(true).or_else(|| named(false)).or(marked).unwrap_or(0)
}
