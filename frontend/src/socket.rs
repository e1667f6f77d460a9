//! The lab's event socket: opens again by itself, and loses nothing.
//!
//! Invariant: every (re)connection asks for what comes after the last event that the log
//! has, so a gap cannot open; the log checks the numbers all the same and says when one is
//! missing. It keeps no events.

use std::cell::RefCell;
use std::rc::Rc;

use gloo_timers::callback::{Interval, Timeout};
use protocol::trace::TraceEvent;
use serde::Deserialize;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::prelude::Closure;
use web_sys::{CloseEvent, MessageEvent, WebSocket};

use crate::api;

/// The pause before the first new try, in ms; it doubles with each one.
const BACKOFF_FIRST_MS: u32 = 400;
const BACKOFF_LONGEST_MS: u32 = 8_000;
/// A socket that was cut off in the middle says nothing. Two silent pings mean it is dead.
const PING_EVERY_MS: u32 = 20_000;

/// How the connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// The first try is under way.
    #[default]
    Connecting,
    /// Events come as they happen.
    Open,
    /// Cut off; tries again by itself.
    Lost,
    /// The lab does not exist any more.
    Gone,
}

/// What the socket tells the session.
pub(crate) struct Listener {
    /// The last event that the log has.
    pub(crate) last_seq: Box<dyn Fn() -> u64>,
    /// Events, in order. False when one before them is missing.
    pub(crate) on_events: Box<dyn Fn(Vec<TraceEvent>) -> bool>,
    /// The connection changed.
    pub(crate) on_link: Box<dyn Fn(Link)>,
}

/// A socket that stays open until it is dropped.
pub(crate) struct Socket(Rc<Inner>);

struct Inner {
    lab: String,
    listener: Listener,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    ended: bool,
    n_failures: u32,
    n_silent_pings: u32,
    connection: Option<Connection>,
    retry: Option<Timeout>,
    ping: Option<Interval>,
    online: Option<OnlineListeners>,
}

/// What the browser calls when the network comes back, and when it goes.
type OnlineListeners = (Closure<dyn FnMut()>, Closure<dyn FnMut()>);

struct Connection {
    socket: WebSocket,
    _on_open: Closure<dyn FnMut()>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_close: Closure<dyn FnMut(CloseEvent)>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        let _ = self.socket.close();
    }
}

#[derive(Deserialize)]
struct Frame {
    events: Vec<TraceEvent>,
}

impl Socket {
    /// Connects, and goes on connecting.
    pub(crate) fn open(lab: &str, listener: Listener) -> Self {
        let inner = Rc::new(Inner { lab: lab.to_owned(), listener, state: RefCell::default() });
        Inner::watch_network(&inner);
        Inner::connect(&inner);
        Self(inner)
    }

    /// Tries at once instead of after the pause.
    pub(crate) fn retry_now(&self) {
        if self.0.state.borrow().connection.is_none() {
            Inner::connect(&self.0);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.ended = true;
        state.connection = None;
        state.retry = None;
        state.ping = None;
        if let (Some((online, offline)), Some(window)) = (state.online.take(), web_sys::window()) {
            let remove = |name: &str, closure: &Closure<dyn FnMut()>| {
                let target = closure.as_ref().unchecked_ref();
                let _ = window.remove_event_listener_with_callback(name, target);
            };
            remove("online", &online);
            remove("offline", &offline);
        }
    }
}

impl Inner {
    fn connect(this: &Rc<Self>) {
        if this.state.borrow().ended {
            return;
        }
        let Some(url) = this.url() else { return };
        let Ok(socket) = WebSocket::new(&url) else {
            Self::lost(this);
            return;
        };
        let weak = Rc::downgrade(this);
        let on_open = Closure::<dyn FnMut()>::new(move || {
            let Some(this) = weak.upgrade() else { return };
            this.state.borrow_mut().n_failures = 0;
            Self::start_pings(&this);
            (this.listener.on_link)(Link::Open);
        });
        let weak = Rc::downgrade(this);
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
            let Some(this) = weak.upgrade() else { return };
            this.state.borrow_mut().n_silent_pings = 0;
            let Some(text) = message.data().as_string() else { return };
            let Ok(frame) = serde_json::from_str::<Frame>(&text) else { return };
            if !(this.listener.on_events)(frame.events) {
                // An event is missing: begin again after the last one that is there.
                Self::lost(&this);
            }
        });
        let weak = Rc::downgrade(this);
        let on_close = Closure::<dyn FnMut(CloseEvent)>::new(move |_| {
            if let Some(this) = weak.upgrade() {
                Self::lost(&this);
            }
        });
        socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        let connection =
            Connection { socket, _on_open: on_open, _on_message: on_message, _on_close: on_close };
        this.state.borrow_mut().connection = Some(connection);
    }

    fn url(&self) -> Option<String> {
        let location = web_sys::window()?.location();
        let scheme = if location.protocol().ok()? == "https:" { "wss" } else { "ws" };
        let host = location.host().ok()?;
        let after = (self.listener.last_seq)();
        Some(format!("{scheme}://{host}/api/labs/{}/socket?after={after}", self.lab))
    }

    /// Waits a little longer each time, and finds out meanwhile whether the lab exists.
    fn lost(this: &Rc<Self>) {
        let pause_ms = {
            let mut state = this.state.borrow_mut();
            if state.ended || state.retry.is_some() {
                return;
            }
            let closed = state.connection.take();
            state.ping = None;
            state.n_failures += 1;
            drop(state);
            // Its callbacks may be running: let them end before they are freed.
            Timeout::new(0, move || drop(closed)).forget();
            let n_failures = this.state.borrow().n_failures;
            (BACKOFF_FIRST_MS << (n_failures - 1).min(6)).min(BACKOFF_LONGEST_MS)
        };
        (this.listener.on_link)(Link::Lost);
        let weak = Rc::downgrade(this);
        let retry = Timeout::new(pause_ms, move || {
            let Some(this) = weak.upgrade() else { return };
            this.state.borrow_mut().retry = None;
            wasm_bindgen_futures::spawn_local(Self::ask_and_connect(this));
        });
        this.state.borrow_mut().retry = Some(retry);
    }

    /// A failed socket does not say why; the lab's own page does.
    async fn ask_and_connect(this: Rc<Self>) {
        match api::lab_status(&this.lab).await {
            Ok(_) => Self::connect(&this),
            Err(error) if error.is_gone() => {
                this.state.borrow_mut().ended = true;
                (this.listener.on_link)(Link::Gone);
            }
            Err(_) => Self::lost(&this),
        }
    }

    fn start_pings(this: &Rc<Self>) {
        let weak = Rc::downgrade(this);
        let ping = Interval::new(PING_EVERY_MS, move || {
            let Some(this) = weak.upgrade() else { return };
            let is_dead = {
                let mut state = this.state.borrow_mut();
                state.n_silent_pings += 1;
                if let Some(connection) = &state.connection {
                    let _ = connection.socket.send_with_str("ping");
                }
                state.n_silent_pings > 2
            };
            if is_dead {
                Self::lost(&this);
            }
        });
        let mut state = this.state.borrow_mut();
        state.n_silent_pings = 0;
        state.ping = Some(ping);
    }

    /// The browser knows first when the network goes and comes.
    fn watch_network(this: &Rc<Self>) {
        let Some(window) = web_sys::window() else { return };
        let weak = Rc::downgrade(this);
        let online = Closure::<dyn FnMut()>::new(move || {
            let Some(this) = weak.upgrade() else { return };
            {
                let mut state = this.state.borrow_mut();
                state.retry = None;
                state.n_failures = 0;
            }
            if this.state.borrow().connection.is_none() {
                Self::connect(&this);
            }
        });
        let weak = Rc::downgrade(this);
        let offline = Closure::<dyn FnMut()>::new(move || {
            if let Some(this) = weak.upgrade() {
                Self::lost(&this);
            }
        });
        let add = |name: &str, closure: &Closure<dyn FnMut()>| {
            let target = closure.as_ref().unchecked_ref();
            let _ = window.add_event_listener_with_callback(name, target);
        };
        add("online", &online);
        add("offline", &offline);
        this.state.borrow_mut().online = Some((online, offline));
    }
}
