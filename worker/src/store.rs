//! SQL: a record as rows, and the writes of one turn.
//!
//! Invariant: only rows that changed are written, each by a statement that names its
//! primary key. The tables of a record come from its schema, so that what a page shows
//! and what is on disk cannot part.

use protocol::table::{Cell, ColumnType, Rows, TableSchema};
use serde_json::Value;

use crate::problem::Problem;

/// The statements of one table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) create: String,
    pub(crate) select: String,
    put: String,
    delete: String,
}

impl Table {
    pub(crate) fn new(schema: &TableSchema) -> Self {
        let columns: Vec<_> = schema.columns.iter().map(|(name, _)| *name).collect();
        let quoted: Vec<_> = columns.iter().map(|name| format!("\"{name}\"")).collect();
        let name = schema.name;
        let key = quoted.first().map_or("", String::as_str);
        let list = quoted.join(", ");
        let updates = quoted.iter().skip(1).map(|column| format!("{column} = excluded.{column}"));
        Self {
            name,
            create: create(schema),
            select: format!("SELECT {list} FROM \"{name}\" ORDER BY {key}"),
            put: format!(
                "INSERT INTO \"{name}\" ({list}) VALUES ({}) ON CONFLICT ({key}) DO UPDATE SET {}",
                vec!["?"; columns.len()].join(", "),
                updates.collect::<Vec<_>>().join(", "),
            ),
            delete: format!("DELETE FROM \"{name}\" WHERE {key} = ?"),
            columns,
        }
    }
}

fn create(schema: &TableSchema) -> String {
    let mut parts = schema.columns.iter().enumerate().map(|(index, (name, kind))| {
        let kind = match kind {
            ColumnType::Integer => "INTEGER",
            ColumnType::Text => "TEXT",
        };
        let key = if index == 0 { " PRIMARY KEY" } else { "" };
        format!("\"{name}\" {kind}{key}")
    });
    let columns = parts.by_ref().collect::<Vec<_>>().join(", ");
    // A text key in a rowid table would be a second index: two rows for every write.
    let is_text = schema.columns.first().is_some_and(|(_, kind)| *kind == ColumnType::Text);
    let options = if is_text { "STRICT, WITHOUT ROWID" } else { "STRICT" };
    format!("CREATE TABLE IF NOT EXISTS \"{}\" ({columns}) {options}", schema.name)
}

/// The writes of one turn, as `glue.js` takes them: `[[statement, value, …], …]`.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    json: String,
}

/// A value to bind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound<'a> {
    Integer(u64),
    Text(&'a str),
}

impl Writes {
    pub(crate) fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// Adds a statement with its values.
    pub(crate) fn add(&mut self, statement: &str, values: &[Bound<'_>]) {
        self.open(statement);
        for value in values {
            self.json.push(',');
            match value {
                Bound::Integer(number) => self.json.push_str(&number.to_string()),
                Bound::Text(text) => push_text(&mut self.json, text),
            }
        }
        self.json.push(']');
    }

    /// Adds what changed in one table.
    pub(crate) fn add_changes(&mut self, table: &Table, old: &Rows, new: &Rows) {
        for change in changes(old, new) {
            let (statement, cells) = match change {
                Change::Put(row) => (&table.put, row),
                Change::Delete(key) => (&table.delete, core::slice::from_ref(key)),
            };
            self.open(statement);
            for cell in cells {
                self.json.push(',');
                match cell {
                    Cell::Null => self.json.push_str("null"),
                    Cell::Integer(number) => self.json.push_str(&number.to_string()),
                    Cell::Text(text) => push_text(&mut self.json, text),
                }
            }
            self.json.push(']');
        }
    }

    fn open(&mut self, statement: &str) {
        self.json.push_str(if self.json.is_empty() { "[[" } else { ",[" });
        push_text(&mut self.json, statement);
    }

    pub(crate) fn into_json(mut self) -> String {
        self.json.push_str(if self.json.is_empty() { "[]" } else { "]" });
        self.json
    }
}

fn push_text(json: &mut String, text: &str) {
    // Writing a string to a string cannot fail.
    json.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// A row that is to be written.
#[derive(Debug, PartialEq, Eq)]
enum Change<'a> {
    Put(&'a [Cell]),
    Delete(&'a Cell),
}

/// What turns the old rows into the new ones. Both are in the order of the first column.
fn changes<'a>(old: &'a Rows, new: &'a Rows) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    let mut old = old.iter().peekable();
    for row in new {
        let Some(key) = row.first() else { continue };
        while let Some(gone) = old.next_if(|known| known.first() < Some(key)) {
            changes.extend(gone.first().map(Change::Delete));
        }
        match old.next_if(|known| known.first() == Some(key)) {
            Some(known) if known == row => {}
            _ => changes.push(Change::Put(row)),
        }
    }
    changes.extend(old.filter_map(|gone| gone.first()).map(Change::Delete));
    changes
}

/// Rows that were read as JSON.
pub(crate) fn rows_from_json(json: &str) -> Result<Rows, Problem> {
    let rows: Vec<Vec<Value>> = serde_json::from_str(json)?;
    Ok(rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect())
}

fn cell(value: Value) -> Cell {
    match value {
        Value::String(text) => Cell::Text(text),
        Value::Number(number) => Cell::Integer(number.as_i64().unwrap_or(0)),
        _ => Cell::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pairs: &[(u64, &str)]) -> Rows {
        pairs.iter().map(|(key, text)| vec![(*key).into(), (*text).into()]).collect()
    }

    fn check(old: &[(u64, &str)], new: &[(u64, &str)]) -> String {
        let (old, new) = (rows(old), rows(new));
        let names = changes(&old, &new).into_iter().map(|change| match change {
            Change::Put(row) => format!("put {}", row[0].as_u64()),
            Change::Delete(key) => format!("delete {}", key.as_u64()),
        });
        names.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn only_what_changed_is_written() {
        assert_eq!(check(&[], &[(1, "a")]), "put 1");
        assert_eq!(check(&[(1, "a")], &[(1, "a")]), "");
        assert_eq!(check(&[(1, "a"), (2, "b")], &[(1, "a"), (2, "c")]), "put 2");
        assert_eq!(
            check(&[(1, "a"), (2, "b"), (4, "d")], &[(2, "b"), (3, "c")]),
            "delete 1, put 3, delete 4"
        );
        assert_eq!(check(&[(1, "a"), (2, "b")], &[]), "delete 1, delete 2");
    }

    #[test]
    fn writes_are_json_of_statements_and_values() {
        let mut writes = Writes::default();
        assert_eq!(Writes::default().into_json(), "[]");
        writes.add("A ?", &[Bound::Integer(5), Bound::Text("x\"y")]);
        writes.add("B", &[]);
        assert_eq!(writes.into_json(), r#"[["A ?",5,"x\"y"],["B"]]"#);
    }

    #[test]
    fn a_text_key_costs_one_row() {
        const SCHEMA: TableSchema = TableSchema {
            name: "stored",
            columns: &[("key", ColumnType::Text), ("value", ColumnType::Integer)],
        };
        let table = Table::new(&SCHEMA);
        assert_eq!(
            table.create,
            "CREATE TABLE IF NOT EXISTS \"stored\" (\"key\" TEXT PRIMARY KEY, \"value\" INTEGER) STRICT, WITHOUT ROWID"
        );
        assert!(
            table
                .put
                .ends_with("ON CONFLICT (\"key\") DO UPDATE SET \"value\" = excluded.\"value\"")
        );
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let json = r#"[[0,"A",null,9007199254740991],[1,"B","n",-5]]"#;
        let rows = rows_from_json(json).unwrap();
        assert_eq!(rows[0][3].as_u64(), 9_007_199_254_740_991);
        assert_eq!(rows[1][3].as_i64(), -5);
        assert_eq!(rows[0][2], Cell::Null);
    }
}
