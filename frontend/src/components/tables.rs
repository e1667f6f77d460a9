//! The rows of every object at the cursor, as they are in its tables.
//!
//! Rows and columns come from the same functions that write them to disk. What the event
//! at the cursor changed is marked, by color and by a sign before the cell.

use leptos::prelude::*;
use protocol::fence::FenceRecord;
use protocol::ids::NodeId;
use protocol::lease::LeaseRecord;
use protocol::shard::ShardRecord;
use protocol::table::{Cell, Rows, TableSchema, Tabled};
use protocol::trace::ObjectRecord;
use protocol::transaction::account::AccountRecord;
use protocol::transaction::coordinator::TxnRecord;

use crate::narration::title;
use crate::playback::{Object, Scene};

/// One table, ready to be shown.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    name: &'static str,
    columns: Vec<&'static str>,
    /// Each cell: short text, whole text, whether it has just changed.
    rows: Vec<Vec<(String, String, bool)>>,
}

/// The tables of one object.
#[derive(Clone, Debug, PartialEq)]
struct Block {
    node: NodeId,
    tables: Vec<Shown>,
    is_down: bool,
}

/// The rows of every object at the cursor; what the last event changed is marked.
#[component]
pub fn Tables(
    /// How things stand.
    #[prop(into)]
    scene: Signal<Scene>,
    /// Only this object, when it is one.
    #[prop(into, optional)]
    selected: Signal<Option<NodeId>>,
) -> impl IntoView {
    let blocks = Memo::new(move |_| {
        let wanted = selected.get().filter(|node| node.object_kind().is_some());
        scene.with(|scene| {
            let objects = scene.objects.iter();
            let objects =
                objects.filter(|one| wanted.as_ref().is_none_or(|node| node == one.node()));
            objects.map(|object| block(scene, object)).collect::<Vec<_>>()
        })
    });
    view! {
        <div class="tables">
            {move || {
                let blocks = blocks.get();
                if blocks.is_empty() {
                    return view! { <p class="panel-empty">"No object yet: an object's tables appear with its first request."</p> }.into_any();
                }
                blocks.into_iter().map(draw).collect::<Vec<_>>().into_any()
            }}
        </div>
    }
}

fn block(scene: &Scene, object: &Object) -> Block {
    let condition = object.condition();
    let is_new = condition.record.is_some() && condition.record_at + 1 == scene.cursor;
    let before = condition.previous_record.as_deref().map(tables_of);
    let tables = condition.record.as_deref().map(tables_of).unwrap_or_default();
    let shown = tables.into_iter().enumerate().filter_map(|(nth, (schema, rows))| {
        if rows.is_empty() {
            return None;
        }
        let old = before.as_ref().and_then(|before| before.get(nth)).map(|(_, rows)| rows);
        Some(shown(schema, rows, old, is_new))
    });
    Block { node: object.node().clone(), tables: shown.collect(), is_down: condition.is_down() }
}

fn tables_of(record: &ObjectRecord) -> Vec<(&'static TableSchema, Rows)> {
    fn zip<R: Tabled>(record: &R) -> Vec<(&'static TableSchema, Rows)> {
        R::SCHEMA.iter().zip(record.to_rows()).collect()
    }
    match record {
        ObjectRecord::Lease(record) => zip::<LeaseRecord>(record),
        ObjectRecord::Resource(record) => zip::<FenceRecord>(record),
        ObjectRecord::Shard(record) => zip::<ShardRecord>(record),
        ObjectRecord::Account(record) => zip::<AccountRecord>(record),
        ObjectRecord::Transaction(record) => zip::<TxnRecord>(record),
    }
}

fn shown(schema: &'static TableSchema, rows: Rows, old: Option<&Rows>, is_new: bool) -> Shown {
    let columns: Vec<&'static str> = schema.columns.iter().map(|(name, _)| *name).collect();
    let rows = rows.into_iter().map(|row| {
        let before = old.and_then(|old| old.iter().find(|other| other[0] == row[0]));
        let cells = row.iter().enumerate().map(|(nth, cell)| {
            let changed = is_new && before.and_then(|before| before.get(nth)) != Some(cell);
            let (short, whole) = texts(columns[nth], cell);
            (short, whole, changed)
        });
        cells.collect()
    });
    Shown { name: schema.name, rows: rows.collect(), columns }
}

/// A point in time is shown by its last digits, which are the ones that differ.
fn texts(column: &str, cell: &Cell) -> (String, String) {
    let whole = match cell {
        Cell::Null => "–".to_owned(),
        Cell::Integer(value) => value.to_string(),
        Cell::Text(text) => text.clone(),
    };
    let is_time = column.ends_with("_ms") && whole.len() > 11;
    let short = if is_time {
        let tail = &whole[whole.len() - 5..];
        format!("…{} {}", &tail[..2], &tail[2..])
    } else {
        whole.clone()
    };
    (short, whole)
}

fn draw(block: Block) -> impl IntoView {
    let heading = title(&block.node);
    let place = block.node.to_string();
    view! {
        <section class="table-block">
            <h3 class="eyebrow">
                {heading}
                {block.is_down.then(|| view! { <span class="table-down">"down · on disk"</span> })}
            </h3>
            {if block.tables.is_empty() {
                view! { <p class="panel-empty">"nothing stored yet"</p> }.into_any()
            } else {
                block.tables.into_iter().map(|table| draw_table(&place, table)).collect::<Vec<_>>().into_any()
            }}
        </section>
    }
}

/// How wide a table of one row may be before it is turned on its side, in letters.
const LETTERS_MAX: usize = 36;

fn draw_table(place: &str, table: Shown) -> AnyView {
    let label = format!("{place}, table {}", table.name);
    let letters: usize = table.columns.iter().map(|column| column.len() + 2).sum();
    let body = match table.rows.as_slice() {
        [only] if letters > LETTERS_MAX => on_its_side(&table.columns, only),
        _ => as_it_is(&table),
    };
    view! {
        <div class="table-scroll" tabindex="0" role="region" aria-label=label>
            <table class="rows mono">
                <caption>{table.name}</caption>
                {body}
            </table>
        </div>
    }
    .into_any()
}

fn as_it_is(table: &Shown) -> AnyView {
    let head: Vec<_> =
        table.columns.iter().map(|column| view! { <th scope="col">{*column}</th> }).collect();
    let rows: Vec<_> = table
        .rows
        .iter()
        .map(|row| view! { <tr>{row.iter().map(draw_cell).collect::<Vec<_>>()}</tr> })
        .collect();
    view! {
        <thead><tr>{head}</tr></thead>
        <tbody>{rows}</tbody>
    }
    .into_any()
}

fn on_its_side(columns: &[&'static str], row: &[(String, String, bool)]) -> AnyView {
    let pairs = columns.iter().zip(row);
    let rows: Vec<_> = pairs
        .map(|(column, cell)| view! { <tr><th scope="row">{*column}</th>{draw_cell(cell)}</tr> })
        .collect();
    view! { <tbody class="on-its-side">{rows}</tbody> }.into_any()
}

fn draw_cell((short, whole, changed): &(String, String, bool)) -> AnyView {
    let full = (short != whole).then(|| whole.clone());
    let note = changed.then(|| view! { <span class="sr-only">"changed: "</span> });
    view! { <td class:changed=*changed title=full>{note}<span>{short.clone()}</span></td> }
        .into_any()
}
