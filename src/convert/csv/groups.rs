//! Rows by graph: tables that are read side by side, and the order in which graphs come.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::fmt;

use super::table::Table;
use crate::convert::quoted;
use crate::error::{Error, Result};

/// A table whose rows belong to graphs. One row has always been read ahead.
#[derive(Debug)]
pub(super) struct Groups {
    table: Table,
    id: usize,
    /// Whether there is a row.
    row: bool,
}

impl Groups {
    /// `id` is the column of ids.
    pub(super) fn new(mut table: Table, id: usize) -> Result<Self> {
        let row = table.advance()?;
        Ok(Groups { table, id, row })
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Whether a row is left.
    pub(super) fn has_row(&self) -> bool {
        self.row
    }

    /// The graph of the row.
    pub(super) fn id(&self) -> &[u8] {
        self.table.cell(self.id)
    }

    /// Whether the row is one of the graph that `order` is at.
    pub(super) fn is_at(&self, order: &Order) -> bool {
        self.row && order.is_now(self.id())
    }

    pub(super) fn advance(&mut self) -> Result<()> {
        self.row = self.table.advance()?;
        Ok(())
    }

    pub(super) fn fault(&self, expected: impl Into<Box<str>>) -> Error {
        self.table.fault(self.id, expected, quoted(self.id()))
    }
}

/// The graphs that have come.
#[derive(Debug)]
pub(super) enum Order {
    /// None.
    Start,
    /// Ids are whole numbers, and this is the last one.
    Ascending(i64),
    /// Ids are texts: the last one, and all.
    Remembered(Box<[u8]>, HashSet<Box<[u8]>>),
}

fn number(id: &[u8]) -> Option<i64> {
    std::str::from_utf8(id).ok()?.parse().ok()
}

impl Order {
    fn is_now(&self, id: &[u8]) -> bool {
        match self {
            Order::Start => false,
            Order::Ascending(last) => number(id) == Some(*last),
            Order::Remembered(last, _) => **last == *id,
        }
    }

    /// Goes to the graph of the row, which must be a new one.
    pub(super) fn enter(&mut self, groups: &Groups) -> Result<()> {
        let id = groups.id();
        if let Order::Start = self {
            *self = match number(id) {
                Some(id) => Order::Ascending(id),
                None => Order::Remembered(id.into(), HashSet::from([id.into()])),
            };
            return Ok(());
        }
        self.check_new(groups)?;
        match self {
            Order::Start => {}
            Order::Ascending(last) => *last = number(id).unwrap_or(*last),
            Order::Remembered(last, all) => {
                *last = id.into();
                all.insert(id.into());
            }
        }
        Ok(())
    }

    /// A row that is not of the present graph must be of one that has not come.
    pub(super) fn check_new(&self, groups: &Groups) -> Result<()> {
        match self {
            Order::Start => Ok(()),
            Order::Ascending(last) => match number(groups.id()) {
                Some(id) if id > *last => Ok(()),
                Some(_) => Err(groups.fault(format!(
                    "an id above {last}: ids ascend in every file, and a graph is in the first of graphs.csv and nodes.csv (sort by this column)"
                ))),
                None => Err(groups.fault("a whole number, as the first id is")),
            },
            Order::Remembered(_, all) => match all.contains(groups.id()) {
                false => Ok(()),
                true => Err(groups.fault(
                    "a graph that has not come yet: its rows stand together, and graphs have the same order in every file",
                )),
            },
        }
    }
}

/// The present graph, as messages call it.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Start => f.write_str("none"),
            Order::Ascending(last) => write!(f, "{last}"),
            Order::Remembered(last, _) => f.write_str(&quoted(last)),
        }
    }
}
