//! The Durable Object classes, as the runtime sees them.
//!
//! They are plain exported classes: the runtime calls `fetch`, `alarm` and, for the lab,
//! the socket handlers, by name. `worker`'s own macro would do the same and turn every
//! request and response into its own types and back, twice a request.

use std::rc::Rc;

use js_sys::Promise;
use protocol::ids::ObjectKind;
use wasm_bindgen::prelude::*;

use crate::glue;
use crate::incoming::{Handler, handler};
use crate::lab::LabObject;
use crate::shell::Shell;

/// The binding, in `wrangler.toml`, of the class for a kind of object.
pub(crate) const fn binding(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Lease => "LEASES",
        ObjectKind::Resource => "RESOURCES",
        ObjectKind::Shard => "SHARDS",
        ObjectKind::Account => "ACCOUNTS",
        ObjectKind::Transaction => "TRANSACTIONS",
    }
}

macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $machine:ty) => {
        $(#[$doc])*
        #[wasm_bindgen]
        pub struct $name {
            shell: Rc<Shell<$machine>>,
            handler: Handler,
        }

        #[wasm_bindgen]
        impl $name {
            /// Called by the runtime when the object starts.
            #[wasm_bindgen(constructor)]
            pub fn new(ctx: JsValue, env: JsValue) -> Self {
                let shell = Rc::new(Shell::<$machine>::new(ctx, env));
                let answering = Rc::clone(&shell);
                let handler = handler(move |incoming| Rc::clone(&answering).answer(incoming));
                Self { shell, handler }
            }

            /// Called by the runtime for each request.
            pub fn fetch(&self, request: JsValue) -> Promise {
                glue::serve(&request, self.handler.as_ref())
            }

            /// Called by the runtime when the alarm is due.
            pub async fn alarm(&self) -> Result<(), JsValue> {
                Rc::clone(&self.shell).alarm().await
            }
        }
    };
}

object!(
    /// Grants one lease and issues its fencing tokens.
    LeaseAuthority, protocol::lease::LeaseAuthority
);
object!(
    /// Stores values behind a fence.
    FencedResource, protocol::fence::FencedResource
);
object!(
    /// The single writer of one shard.
    ShardCoordinator, protocol::shard::ShardCoordinator
);
object!(
    /// Holds money, and reserves it while a transaction is in doubt.
    Account, protocol::transaction::account::Account
);
object!(
    /// Coordinates one transaction.
    TxnCoordinator, protocol::transaction::coordinator::TxnCoordinator
);

/// One learner's world.
#[wasm_bindgen]
pub struct Lab {
    lab: Rc<LabObject>,
    handler: Handler,
}

#[wasm_bindgen]
impl Lab {
    /// Called by the runtime when the object starts.
    #[wasm_bindgen(constructor)]
    pub fn new(ctx: JsValue, env: JsValue) -> Self {
        let lab = Rc::new(LabObject::new(ctx, env));
        let answering = Rc::clone(&lab);
        let handler = handler(move |incoming| Rc::clone(&answering).answer(incoming));
        Self { lab, handler }
    }

    /// Called by the runtime for each request.
    pub fn fetch(&self, request: JsValue) -> Promise {
        glue::serve(&request, self.handler.as_ref())
    }

    /// Called by the runtime when the alarm is due.
    pub async fn alarm(&self) -> Result<(), JsValue> {
        self.lab.alarm().await
    }

    /// Called by the runtime when a socket sends something.
    #[wasm_bindgen(js_name = webSocketMessage)]
    pub fn web_socket_message(&self, socket: JsValue, _message: JsValue) {
        self.lab.socket_message(&socket);
    }

    /// Called by the runtime when a socket is closed.
    #[wasm_bindgen(js_name = webSocketClose)]
    pub fn web_socket_close(
        &self,
        socket: JsValue,
        code: u16,
        _reason: JsValue,
        _was_clean: JsValue,
    ) {
        self.lab.socket_closed(&socket, code);
    }

    /// Called by the runtime when a socket breaks.
    #[wasm_bindgen(js_name = webSocketError)]
    pub fn web_socket_error(&self, socket: JsValue, _error: JsValue) {
        self.lab.socket_closed(&socket, 1000);
    }
}
