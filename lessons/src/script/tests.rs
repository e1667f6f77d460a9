//! The language, by example: what is read, what is refused and how, what is printed.

use super::*;

const EVERYTHING: &str = r#"variant published "As published"
variant repaired "Repaired"
clients A B
lease orders
resource ledger
shard stock
shard stock-2
account alice
account bob
transaction t1
[published] rules orders published
rules ledger guard=strict remember_write_ids=off
rules ledger repaired

step work "A works"
  predict why
  [repaired] predict other by ledger.balance
  A acquire orders ttl=2s
    -> granted token=1
  A acquire orders ttl=1500ms request=r1 wait=3s
  A await orders ttl=2s request=r1 wait=3s
  A check orders
    -> valid
  A renew orders ttl=2s token=A.token
  A release orders
  B force-release orders token=1 reason="A does not answer"
  A claim ledger
  A read ledger balance
    -> value value=nothing
  A read ledger balance token=none
  start A write ledger balance=A.balance+20 lease=orders token=1 id=w1 seq=1
  finish A
    [published] -> applied version=1
    [repaired] -> fenced presented=1 high_water_mark=2
  A apply stock apples+=3 id=o1 epoch=1
  A apply stock apples=3
  A seal stock epoch=2
  A open stock-2 epoch=2 copy
  A open alice balance=100
  A run t1 alice-30 bob+30
  start A run t1 alice-30 bob+30 within=2s
  finish A
    -> aborted reason="insufficient_funds: alice"
  A recover t1
  A resolve bob t1=abort reason="the bank called"
  A resolve t1 bob=commit reason="so did the other bank"
  A forget t1

[published|repaired] step faults "Everything breaks"
  pause A
  resume A
  drop request from A
  drop reply to A
  delay request from A 800ms
  delay reply to A 1s
  duplicate request from A
  crash orders at after_persist
  crash orders at now and stay down
  crash t1 at after_nth_vote n=2
  crash t1 at after_decision and stay down
  restart orders
  hold t1 commit to=bob times=1
  drop alice vote
  delay t1 * 300ms to=alice
  duplicate t1 prepare times=2
  delivery manual
  deliver t1 prepare to=alice
  deliver t1 prepare nth=2
  drop waiting alice vote
  duplicate waiting t1 commit to=bob
  delivery auto
  clock orders +1h
  clock orders -1500ms
  clock orders 0
  unreachable orders
  unreachable orders acquire from=A times=2
  slow ledger write 600ms times=1
  heal orders
  alarm orders suppress
  wait 500ms
  wait until orders expires
  wait until t1.phase=done_commit
  expect broken no_older_effect
  expect holds one_holder
  expect all invariants hold
  expect ledger.balance=110
  expect orders.holder=A
  note "that is all"
"#;

#[test]
fn every_command_is_read_and_printed_as_it_was() {
    let script = parse(EVERYTHING).unwrap();
    assert_eq!(script.to_string(), EVERYTHING);
}

#[test]
fn printing_and_parsing_again_gives_the_same_script() {
    let mut script = parse(EVERYTHING).unwrap();
    let mut again = parse(&script.to_string()).unwrap();
    for script in [&mut script, &mut again] {
        // Comments and blank lines are not kept, so line numbers may differ.
        script.steps.iter_mut().for_each(|step| step.number = 0);
    }
    assert_eq!(script, again);
}

#[test]
fn comments_and_blank_lines_say_nothing() {
    let script = parse("# a lesson\n\nclients A # and nobody else\n").unwrap();
    assert_eq!(script.cast.clients.len(), 1);
}

#[test]
fn a_mistake_is_reported_with_its_line_and_what_to_do() {
    let head = "variant v \"V\"\nclients A\nlease orders\nresource ledger\n\
        account alice bob\ntransaction t1\n";
    let cases = [
        ("A aquire orders ttl=1s", "a client cannot \"aquire\": use acquire, await"),
        ("A acquire orders", "say how long the lease is to last: ttl=2s"),
        ("A acquire orders ttl=1", "use 800ms, 2s, 10min or 1h"),
        ("A acquire orders ttl=5ms", "use a whole number from 100 to 3600000"),
        ("A acquire orders ttl=1s tll=2s", "\"tll=2s\" does not belong here: take it out"),
        ("A acquire order ttl=1s", "order is no lease: declare it above with `lease order`"),
        ("A write orders balance=1", "orders is no resource: declare it above"),
        ("A write ledger balance", "write key and value as in: A write ledger balance=100"),
        ("A write ledger balance=B.balance", "B is no client: declare it above"),
        ("A write ledger balance=lots", "is not a number: use 20, A.token, or A.balance+20"),
        ("C acquire orders ttl=1s", "there is no command \"C\": use a client's name, start"),
        ("rules ledger guard=loose", "use none, at_least, strict or claimed"),
        ("rules ledger gard=strict", "use guard, fence_per_lease"),
        ("rules ledger fence_reads=yes", "use on or off"),
        ("rules ledger", "add published, repaired, or a rule: guard=none"),
        ("crash orders at lunch", "use one of now, before_persist, after_persist, after_send"),
        ("clock orders 1h", "say by how much, with a sign"),
        ("wait until orders", "write: wait until orders expires"),
        ("expect broken everything", "use one of: tokens_rise"),
        ("expect nothing", "write: expect ledger.balance=110"),
        ("-> granted", "put it below a command that gets a reply"),
        ("[w] pause A", "[w] is no variant of this script (known: v)"),
        ("predict why", "put it into a step"),
        ("predict why by balance", "write: predict told by bob.balance"),
        ("note \"open", "close the quotation mark"),
        ("force", "there is no command \"force\""),
        ("A force-release orders token=1", "say why, for the log"),
        ("lease orders", "orders is declared already: choose another name"),
        ("lease Orders", "\"Orders\" is not a name: use 1 to 64 of a-z"),
        ("delay request from A", "add how long: 800ms"),
        ("A open alice", "say with what: open alice balance=100"),
        ("A run t1", "0 legs: use 1 to 16"),
        ("A run t1 alice-30", "the legs add up to -30"),
        ("A run t1 alice-30 carol+30", "carol is no account: declare it above"),
        ("A run t1 alice 30", "write the legs as in: run t1 alice-30 bob+30"),
        ("A run t1 alice-30 bob+30 within=1ms", "within: "),
        ("A run orders alice-30 bob+30", "orders is no transaction"),
        ("A resolve bob t1=abort", "reason: say why, in 1 to 200 characters"),
        ("A resolve ledger t1=abort reason=x", "only a hold can be resolved"),
        ("A resolve bob alice=abort reason=x", "alice is no transaction"),
        ("A resolve bob t1=maybe reason=x", "\"maybe\": use commit or abort"),
        ("hold t1 letter", "\"letter\" is no message: use prepare, vote"),
        ("hold t1 commit to=nobody", "to=nobody: it is no object declared above"),
        ("delay t1 commit", "add how long: delay t1 commit 300ms"),
        ("deliver t1 commit nth=0", "count from 1"),
        ("delivery slow", "write: delivery manual, or delivery auto"),
        ("crash orders at after_decision", "only a transaction passes this point"),
        ("crash t1 at after_decision n=2", "`n` belongs to `after_nth_vote`"),
        ("wait until t1=done", "write: wait until t1.phase=done_commit"),
        ("variant v \"V\"", "there is a variant v already"),
    ];
    for (line, problem) in cases {
        let error = parse(&format!("{head}{line}")).expect_err(line);
        assert_eq!(error.line, 7, "{line}");
        assert!(error.problem.contains(problem), "{line}: {}", error.problem);
    }
}

#[test]
fn a_single_command_can_be_read_for_a_sandbox() {
    let cast = parse(EVERYTHING).unwrap().cast;
    let command = parse_command(&cast, "A write ledger balance=5").unwrap();
    assert_eq!(command.to_string(), "A write ledger balance=5");
    assert!(parse_command(&cast, "Z write ledger balance=5").is_err());
}
