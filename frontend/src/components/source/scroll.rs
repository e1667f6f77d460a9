//! Brings one line of a list into view inside its own box, and leaves the page where it
//! is: `scrollIntoView` would move the page too.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

/// Space kept free above and below, in pixels.
const MARGIN: f64 = 44.0;

/// Scrolls the box around `list` so that what the selector finds in it can be seen.
pub(crate) fn into_view(list: &Element, selector: &str) {
    let Ok(Some(wanted)) = list.query_selector(selector) else { return };
    let Some(scroller) = scroller_of(list) else { return };
    let (room, line) = (scroller.get_bounding_client_rect(), wanted.get_bounding_client_rect());
    let above = line.top() - room.top() - MARGIN;
    let below = line.bottom() - room.bottom() + MARGIN;
    let by = if above < 0.0 { above } else { below.max(0.0) };
    scroller.set_scroll_top(scroller.scroll_top() + by as i32);
}

/// Scrolls so that the box around `element` begins with it, or the page if that is the box.
pub(crate) fn begin_with(element: &Element) {
    let Some(scroller) = scroller_of(element) else {
        element.scroll_into_view();
        return;
    };
    let (room, wanted) = (scroller.get_bounding_client_rect(), element.get_bounding_client_rect());
    let by = wanted.top() - room.top() - MARGIN / 2.0;
    let options = web_sys::ScrollToOptions::new();
    options.set_top(f64::from(scroller.scroll_top()) + by);
    if !crate::session::prefers_reduced_motion() {
        options.set_behavior(web_sys::ScrollBehavior::Smooth);
    }
    scroller.scroll_to_with_scroll_to_options(&options);
}

/// Scrolls the box around `list` to its beginning.
pub(crate) fn to_top(list: &Element) {
    if let Some(scroller) = scroller_of(list) {
        scroller.set_scroll_top(0);
    }
}

/// The nearest box around the list that scrolls; `None` when that is the page.
fn scroller_of(list: &Element) -> Option<Element> {
    let mut element = list.parent_element();
    while let Some(one) = element {
        if one.dyn_ref::<web_sys::HtmlElement>().is_some_and(|one| one.tag_name() == "BODY") {
            return None;
        }
        let style = window().get_computed_style(&one).ok().flatten()?;
        let overflow = style.get_property_value("overflow-y").unwrap_or_default();
        if overflow == "auto" || overflow == "scroll" {
            return Some(one);
        }
        element = one.parent_element();
    }
    None
}
