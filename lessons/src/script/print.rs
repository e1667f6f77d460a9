//! From script to text, so that what was done in a sandbox can be kept.

use core::fmt::{self, Display, Formatter};

use protocol::control::{AlarmAction, FaultAction, OutboxAction};
use protocol::ids::{Label, Name};
use protocol::rules::Preset;
use protocol::trace::DeliveryMode;

use super::{
    Act, Command, Expectation, FieldExpected, Line, MessageFault, ObjectAct, Only, Predict,
    ReplyExpected, Script, Step, Under, duration_text,
};

impl Display for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for variant in &self.variants {
            writeln!(f, "variant {} \"{}\"", variant.id, variant.title)?;
        }
        if !self.cast.clients.is_empty() {
            writeln!(f, "clients{}", spaced(&self.cast.clients))?;
        }
        for object in &self.cast.objects {
            let kind = object.object_kind().map_or("", |kind| kind.as_str());
            writeln!(f, "{kind} {}", object.name())?;
        }
        self.setup.iter().try_for_each(|line| line.fmt(f))?;
        self.steps.iter().try_for_each(|step| write!(f, "\n{step}"))
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}step {} \"{}\"", self.only, self.id, self.title)?;
        for Predict { only, id, by } in &self.predicts {
            write!(f, "  {only}predict {id}")?;
            if let Some((object, field)) = by {
                write!(f, " by {}.{field}", object.name())?;
            }
            writeln!(f)?;
        }
        self.lines.iter().try_for_each(|line| fmt_line(f, "  ", line))
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt_line(f, "", self)
    }
}

fn fmt_line(f: &mut Formatter<'_>, indent: &str, line: &Line) -> fmt::Result {
    writeln!(f, "{indent}{}{}", line.only, line.command)?;
    line.replies.iter().try_for_each(|reply| writeln!(f, "{indent}  {reply}"))
}

impl Display for Only {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "[{}] ", self.0.join("|")) }
    }
}

impl Display for ReplyExpected {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}-> {}", self.only, self.outcome)?;
        self.fields.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl Display for FieldExpected {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => value.fmt(f),
            Self::Word(word) if word.contains(char::is_whitespace) => write!(f, "\"{word}\""),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Act { client, act, start } => {
                write!(f, "{}{client} {act}", if *start { "start " } else { "" })
            }
            Self::Finish(client) => write!(f, "finish {client}"),
            Self::Pause(client) => write!(f, "pause {client}"),
            Self::Resume(client) => write!(f, "resume {client}"),
            Self::Message(client, fault) => match fault {
                MessageFault::DropRequest => write!(f, "drop request from {client}"),
                MessageFault::DropReply => write!(f, "drop reply to {client}"),
                MessageFault::DelayRequest(ms) => {
                    write!(f, "delay request from {client} {}", duration_text(*ms))
                }
                MessageFault::DelayReply(ms) => {
                    write!(f, "delay reply to {client} {}", duration_text(*ms))
                }
                MessageFault::DuplicateRequest => write!(f, "duplicate request from {client}"),
            },
            Self::Object(object, act) => fmt_object_act(f, object.name(), act),
            Self::Wait(ms) => write!(f, "wait {}", duration_text(*ms)),
            Self::WaitExpiry(lease) => write!(f, "wait until {lease} expires"),
            Self::WaitField { object, field, value } => {
                write!(f, "wait until {}.{field}={value}", object.name())
            }
            Self::Delivery(DeliveryMode::Manual) => f.write_str("delivery manual"),
            Self::Delivery(DeliveryMode::Auto) => f.write_str("delivery auto"),
            Self::Expect(expectation) => write!(f, "expect {expectation}"),
            Self::Note(text) => write!(f, "note \"{text}\""),
        }
    }
}

impl Display for Act {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenAccount { account, balance } => write!(f, "open {account} balance={balance}"),
            Self::Run { transaction, legs, within_ms } => {
                write!(f, "run {transaction}")?;
                for leg in legs.as_slice() {
                    write!(f, " {}{:+}", leg.account, leg.delta.get())?;
                }
                fmt_optional(f, "within", within_ms.map(|ms| duration_text(ms.get())))
            }
            Self::Recover { transaction } => write!(f, "recover {transaction}"),
            Self::Resolve { object, about, decision, reason } => {
                let (object, reason) = (object.name(), reason.as_str());
                write!(f, "resolve {object} {about}={decision} reason=\"{reason}\"")
            }
            Self::Forget { transaction } => write!(f, "forget {transaction}"),
            Self::Acquire { lease, ttl_ms, request, wait_ms, poll } => {
                let verb = if *poll { "await" } else { "acquire" };
                write!(f, "{verb} {lease} ttl={}", duration_text(ttl_ms.get()))?;
                fmt_optional(f, "request", request.as_ref())?;
                fmt_optional(f, "wait", wait_ms.map(|ms| duration_text(ms.get())))
            }
            Self::Renew { lease, ttl_ms, token } => {
                write!(f, "renew {lease} ttl={}", duration_text(ttl_ms.get()))?;
                fmt_optional(f, "token", token.as_ref())
            }
            Self::Release { lease, token } => {
                write!(f, "release {lease}")?;
                fmt_optional(f, "token", token.as_ref())
            }
            Self::ForceRelease { lease, token, reason } => {
                write!(f, "force-release {lease} token={token} reason=\"{reason}\"")
            }
            Self::Check { lease } => write!(f, "check {lease}"),
            Self::Claim { resource, under } => write!(f, "claim {resource}{under}"),
            Self::Read { resource, key, under: Some(under) } => {
                write!(f, "read {resource} {key}{under}")
            }
            Self::Read { resource, key, under: None } => {
                write!(f, "read {resource} {key} token=none")
            }
            Self::Write { resource, key, value, under, id, seq } => {
                write!(f, "write {resource} {key}={value}{under}")?;
                fmt_optional(f, "id", id.as_ref())?;
                fmt_optional(f, "seq", *seq)
            }
            Self::Apply { shard, key, add, value, id, map_epoch } => {
                write!(f, "apply {shard} {key}{}={value}", if *add { "+" } else { "" })?;
                fmt_optional(f, "id", id.as_ref())?;
                fmt_optional(f, "epoch", *map_epoch)
            }
            Self::Seal { shard, map_epoch } => write!(f, "seal {shard} epoch={map_epoch}"),
            Self::Open { shard, map_epoch, copy } => {
                write!(f, "open {shard} epoch={map_epoch}{}", if *copy { " copy" } else { "" })
            }
        }
    }
}

impl Display for Under {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt_optional(f, "lease", self.lease.as_ref())?;
        fmt_optional(f, "token", self.token.as_ref())
    }
}

impl Display for Expectation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(invariant) => write!(f, "broken {}", invariant.word()),
            Self::Holds(invariant) => write!(f, "holds {}", invariant.word()),
            Self::AllHold => f.write_str("all invariants hold"),
            Self::Field { object, field, value } => {
                write!(f, "{}.{field}={value}", object.name())
            }
        }
    }
}

fn fmt_object_act(f: &mut Formatter<'_>, object: &str, act: &ObjectAct) -> fmt::Result {
    match act {
        ObjectAct::Rules(update) => {
            let preset = match update.preset {
                None => "",
                Some(Preset::Published) => " published",
                Some(Preset::Repaired) => " repaired",
            };
            write!(f, "rules {object}{preset}")?;
            update.set.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
        }
        ObjectAct::Crash { at, n, stay_down } => {
            write!(f, "crash {object} at {}", at.as_str())?;
            fmt_optional(f, "n", *n)?;
            f.write_str(if *stay_down { " and stay down" } else { "" })
        }
        ObjectAct::Network { action, message, to, delay_ms, times } => {
            let verb = match action {
                FaultAction::Hold => "hold",
                FaultAction::Delay => "delay",
                FaultAction::Duplicate => "duplicate",
                FaultAction::Drop | FaultAction::Unreachable | FaultAction::SlowStore => "drop",
            };
            write!(f, "{verb} {object} {message}")?;
            if let Some(ms) = delay_ms {
                write!(f, " {}", duration_text(*ms))?;
            }
            fmt_optional(f, "to", to.as_ref())?;
            fmt_optional(f, "times", *times)
        }
        ObjectAct::Waiting { action, message, to, nth } => {
            fmt_waiting(f, object, *action, (message, to.as_ref(), *nth))
        }
        ObjectAct::Restart => write!(f, "restart {object}"),
        ObjectAct::Clock(0) => write!(f, "clock {object} 0"),
        ObjectAct::Clock(offset_ms) => {
            let sign = if *offset_ms < 0 { '-' } else { '+' };
            write!(f, "clock {object} {sign}{}", duration_text(offset_ms.unsigned_abs()))
        }
        ObjectAct::Unreachable { operation, from, times } => {
            write!(f, "unreachable {object}")?;
            if let Some(operation) = operation {
                write!(f, " {operation}")?;
            }
            fmt_optional(f, "from", from.as_ref())?;
            fmt_optional(f, "times", *times)
        }
        ObjectAct::Slow { operation, delay_ms, times } => {
            write!(f, "slow {object} {operation} {}", duration_text(*delay_ms))?;
            fmt_optional(f, "times", *times)
        }
        ObjectAct::Heal => write!(f, "heal {object}"),
        ObjectAct::Alarm(action) => {
            let word = match action {
                AlarmAction::Fire => "fire",
                AlarmAction::Suppress => "suppress",
                AlarmAction::Resume => "resume",
            };
            write!(f, "alarm {object} {word}")
        }
    }
}

fn fmt_waiting(
    f: &mut Formatter<'_>,
    object: &str,
    action: OutboxAction,
    (message, to, nth): (&str, Option<&Name>, u64),
) -> fmt::Result {
    let verb = match action {
        OutboxAction::Deliver => "deliver",
        OutboxAction::Drop => "drop waiting",
        OutboxAction::Duplicate => "duplicate waiting",
    };
    write!(f, "{verb} {object} {message}")?;
    fmt_optional(f, "to", to)?;
    fmt_optional(f, "nth", (nth > 1).then_some(nth))
}

fn fmt_optional(f: &mut Formatter<'_>, name: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name}={value}"))
}

fn spaced(names: &[Label]) -> String {
    names.iter().map(|name| format!(" {name}")).collect()
}
