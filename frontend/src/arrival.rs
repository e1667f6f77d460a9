//! What is still on its way: fetched once, again when asked.
//!
//! Leptos' own resources can wait for each other, be sent from a server and suspend a view.
//! Here a view asks for one file and says so until it is there.

use core::future::Future;

use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

/// `None` until it is there.
pub(crate) type Arrival<T> = RwSignal<Option<T>>;

/// Starts something that arrives later.
pub(crate) fn arrival<T: Send + Sync + 'static>(
    future: impl Future<Output = T> + 'static,
) -> Arrival<T> {
    let arrival = RwSignal::new(None);
    await_into(arrival, future);
    arrival
}

/// Starts it, once more if need be; what had arrived is gone until it is there.
pub(crate) fn await_into<T: Send + Sync + 'static>(
    arrival: Arrival<T>,
    future: impl Future<Output = T> + 'static,
) {
    arrival.set(None);
    spawn_local(async move {
        let value = future.await;
        // The view that waited may be gone.
        arrival.try_set(Some(value));
    });
}
