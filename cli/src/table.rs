//! Tables as plain aligned columns.

#![forbid(unsafe_code)]

use std::fmt;

use unicode_width::UnicodeWidthStr;

/// Which way a column is set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    Left,
    Right,
}

/// Rows under a heading, columns two spaces apart.
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    /// The heading, then the rows.
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(columns: [(&str, Column); N]) -> Self {
        Table {
            columns: columns.map(|(_, side)| side),
            rows: vec![columns.map(|(name, _)| name.to_owned())],
        }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    /// Each line two spaces in, nothing behind its last word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Columns that a terminal takes, which is not the number of characters.
        let mut widths = [0; N];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), side) in row.iter().zip(widths).zip(self.columns) {
                let space = " ".repeat(width - cell.width());
                let (before, after) = match side {
                    Column::Left => ("", space.as_str()),
                    Column::Right => (space.as_str(), ""),
                };
                line.extend(["  ", before, cell, after]);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new([("name", Column::Left), ("bytes", Column::Right)]);
        assert!(table.is_empty());
        table.row(["größe".into(), "7".into()]);
        table.row(["分子".into(), "1,234,567".into()]);
        assert_eq!(
            table.to_string(),
            "  name       bytes\n  größe          7\n  分子   1,234,567\n"
        );
    }
}
