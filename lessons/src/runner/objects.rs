//! From what a script does to an object to the control that the object is sent.

use protocol::control::{Alarm, Clock, Control, Crash, Fault, FaultAction};
use protocol::ids::{Label, NodeId, OffsetMs};

use super::Runner;
use crate::driver::Driver;
use crate::script::ObjectAct;

impl<D: Driver + 'static> Runner<D> {
    pub(super) fn control_of(
        &mut self,
        object: &NodeId,
        act: &ObjectAct,
    ) -> Result<Control, String> {
        let mut add_fault = |fault: Option<Fault>| {
            let faults = self.faults.entry(object.clone()).or_default();
            match fault {
                Some(fault) => faults.push(fault),
                None => faults.clear(),
            }
            Control::Faults(faults.clone())
        };
        Ok(match act {
            ObjectAct::Rules(update) => Control::Rules(update.clone()),
            ObjectAct::Crash { at, n, stay_down } => {
                Control::Crash(Crash { at: *at, stay_down: *stay_down, n: *n })
            }
            ObjectAct::Restart => Control::Restart,
            ObjectAct::Clock(offset_ms) => {
                let offset_ms = OffsetMs::try_from(*offset_ms).map_err(|bad| bad.to_string())?;
                Control::Clock(Clock { offset_ms })
            }
            ObjectAct::Unreachable { operation, from, times } => add_fault(Some(Fault {
                message: operation.clone().unwrap_or("*".to_owned()),
                from: from.clone(),
                to: None,
                reply: false,
                action: FaultAction::Unreachable,
                delay_ms: None,
                times: *times,
            })),
            ObjectAct::Slow { operation, delay_ms, times } => add_fault(Some(Fault {
                message: operation.clone(),
                from: None,
                to: None,
                reply: false,
                action: FaultAction::SlowStore,
                delay_ms: Some(*delay_ms),
                times: *times,
            })),
            ObjectAct::Network { action, message, to, delay_ms, times } => add_fault(Some(Fault {
                message: message.clone(),
                from: None,
                to: to.as_ref().and_then(|name| Label::try_from(name.as_str()).ok()),
                reply: false,
                action: *action,
                delay_ms: *delay_ms,
                times: *times,
            })),
            ObjectAct::Waiting { .. } => return Err("this is done to a message".to_owned()),
            ObjectAct::Heal => add_fault(None),
            ObjectAct::Alarm(action) => Control::Alarm(Alarm { action: *action }),
        })
    }
}
