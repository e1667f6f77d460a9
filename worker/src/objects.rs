//! The Durable Object classes, as the runtime sees them.
//!
//! They are plain exported classes: the runtime calls `fetch`, `alarm` and, for the lab,
//! the socket handlers, by name. `worker`'s own macro would do the same and turn every
//! request and response into its own types and back, twice a request.

use protocol::ids::ObjectKind;
use wasm_bindgen::prelude::*;
use web_sys::Response;

use crate::lab::LabObject;
use crate::shell::Shell;

/// The binding, in `wrangler.toml`, of the class for a kind of object.
pub(crate) const fn binding(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Lease => "LEASES",
        ObjectKind::Resource => "RESOURCES",
        ObjectKind::Shard => "SHARDS",
    }
}

macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $machine:ty) => {
        $(#[$doc])*
        #[wasm_bindgen]
        pub struct $name {
            shell: Shell<$machine>,
        }

        #[wasm_bindgen]
        impl $name {
            /// Called by the runtime when the object starts.
            #[wasm_bindgen(constructor)]
            pub fn new(ctx: JsValue, env: JsValue) -> Self {
                Self { shell: Shell::new(ctx, env) }
            }

            /// Called by the runtime for each request.
            pub async fn fetch(&self, request: JsValue) -> Response {
                self.shell.fetch(request).await
            }

            /// Called by the runtime when the alarm is due.
            pub async fn alarm(&self) -> Result<(), JsValue> {
                self.shell.alarm().await
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

/// One learner's world.
#[wasm_bindgen]
pub struct Lab {
    lab: LabObject,
}

#[wasm_bindgen]
impl Lab {
    /// Called by the runtime when the object starts.
    #[wasm_bindgen(constructor)]
    pub fn new(ctx: JsValue, env: JsValue) -> Self {
        Self { lab: LabObject::new(ctx, env) }
    }

    /// Called by the runtime for each request.
    pub async fn fetch(&self, request: JsValue) -> Response {
        self.lab.fetch(request).await
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
