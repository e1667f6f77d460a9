//! A durable record as rows: what an object stores and what the page shows.
//!
//! The object's SQLite tables and the page's tables come from the same two functions,
//! so that a table on the screen cannot differ from the one on disk. The first column
//! of every table is its primary key.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A safe integer.
    Integer,
    /// Text.
    Text,
}

/// One table of a record: its name and its columns, the primary key first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// The table's name in SQL.
    pub name: &'static str,
    /// Names and types of the columns.
    pub columns: &'static [(&'static str, ColumnType)],
}

/// One stored value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// No value.
    Null,
    /// A safe integer.
    Integer(i64),
    /// Text.
    Text(String),
}

impl Cell {
    /// The integer as an unsigned one; 0 for anything else.
    pub fn as_u64(&self) -> u64 {
        u64::try_from(self.as_i64()).unwrap_or(0)
    }

    /// The integer; 0 for anything else.
    pub fn as_i64(&self) -> i64 {
        if let Self::Integer(value) = self { *value } else { 0 }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Integer(value as i64)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The rows of one table, in primary-key order.
pub type Rows = Vec<Vec<Cell>>;

/// A durable record that can be written as rows and read back.
pub trait Tabled: Sized {
    /// The record's tables.
    const SCHEMA: &'static [TableSchema];

    /// The rows of each table, in the order of [`Tabled::SCHEMA`].
    fn to_rows(&self) -> Vec<Rows>;

    /// The record that these rows hold; `None` when nothing was ever stored.
    fn from_rows(tables: &[Rows]) -> Option<Self>;
}
