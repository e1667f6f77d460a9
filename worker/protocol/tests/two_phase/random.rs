//! Random schedules of transfers: callers that come again, faults on messages and answers,
//! crashes at every point, held alarms, moved clocks, delivery by hand.

use protocol::control::{
    Alarm, AlarmAction, Clock, Control, Crash, Fault, FaultAction, OutboxAction,
};
use protocol::rules::Preset;
use protocol::trace::{CrashPoint, DeliveryMode};

use super::bank::{Bank, node};
use super::draw::Draw;

const NODES: [&str; 6] =
    ["account/a", "account/b", "account/c", "transaction/t0", "transaction/t1", "transaction/t2"];

/// One lab under one seed, up to the point where everything is put right and has settled.
pub fn run(seed: u64, preset: Preset) -> Bank {
    let mut bank = Bank::opened(preset);
    let mut draw = Draw::new(seed);
    for _ in 0..80 {
        step(&mut bank, &mut draw);
        let ms = 1 + draw.below(400);
        bank.world.advance(ms);
    }
    for to in NODES {
        let offset_ms = 0.try_into().expect("no offset");
        bank.control(to, Control::Clock(Clock { offset_ms }));
    }
    // Twice, since a crash that still waits for its point may come after the first.
    bank.heal(&NODES);
    bank.heal(&NODES);
    bank
}

fn step(bank: &mut Bank, draw: &mut Draw) {
    let to = NODES[draw.below(6) as usize];
    match draw.below(12) {
        0..=4 => {
            let txn = draw.below(3);
            let legs = ["a-60 b+60", "a-60 c+60", "b-70 a+30 c+40"][txn as usize];
            bank.run(&format!("t{txn}"), legs);
        }
        5 | 6 => {
            let at = CrashPoint::ALL[draw.below(10) as usize];
            if at.is_of_transaction() && !to.starts_with("transaction") {
                return;
            }
            let n = at.is_counted().then(|| 1 + draw.below(2));
            bank.control(to, Control::Crash(Crash { at, stay_down: draw.chance(20), n }));
        }
        7 => {
            bank.control(to, Control::Restart);
        }
        8 => {
            let action = if draw.chance(50) { AlarmAction::Suppress } else { AlarmAction::Resume };
            bank.control(to, Control::Alarm(Alarm { action }));
        }
        9 | 10 => {
            bank.control(to, Control::Faults(vec![fault(draw)]));
        }
        _ => by_hand(bank, draw, to),
    }
}

fn fault(draw: &mut Draw) -> Fault {
    let actions = [
        FaultAction::Hold,
        FaultAction::Drop,
        FaultAction::Delay,
        FaultAction::Duplicate,
        FaultAction::Unreachable,
    ];
    let action = actions[draw.below(5) as usize];
    Fault {
        message: "*".to_owned(),
        from: None,
        to: None,
        reply: action.is_of_network() && draw.chance(50),
        action,
        delay_ms: (action == FaultAction::Delay).then(|| draw.below(2_000)),
        times: Some(1 + draw.below(3) as u32),
    }
}

fn by_hand(bank: &mut Bank, draw: &mut Draw, to: &str) {
    if draw.chance(30) {
        let is_manual = draw.chance(40);
        let mode = if is_manual { DeliveryMode::Manual } else { DeliveryMode::Auto };
        bank.world.set_delivery(mode);
        return;
    }
    for message in bank.world.outbox(&node(to)).into_iter().filter(|message| message.held) {
        let actions = [OutboxAction::Deliver, OutboxAction::Drop, OutboxAction::Duplicate];
        let action = actions[draw.below(3) as usize];
        bank.control(to, Control::Outbox { id: message.id, action });
    }
}
