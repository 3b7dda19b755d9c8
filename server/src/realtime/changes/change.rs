//! A changed row, with what is known of it before and after.

use std::sync::Arc;

use super::Action;
use super::pgoutput::{Cell, Old, Relation, Tuple};

/// A changed row.
pub struct Change {
    pub relation: Arc<Relation>,
    pub action: Action,
    pub old: Option<Old>,
    pub new: Option<Tuple>,
    /// Microseconds since 1970.
    pub committed: i64,
    /// Its transaction.
    pub xid: u32,
}

impl Change {
    /// Bytes of its values.
    pub fn size(&self) -> usize {
        let old = match &self.old {
            Some(Old::Key(tuple) | Old::Full(tuple)) => tuple.as_slice(),
            None => &[],
        };
        old.iter().chain(self.new.iter().flatten()).map(Cell::len).sum()
    }

    pub fn place(&self) -> (String, String) {
        (self.relation.schema.clone(), self.relation.name.clone())
    }

    /// The value of a column after the change; `None` if unknown.
    pub fn new_cell(&self, column: usize) -> Option<&Cell> {
        match self.new.as_ref()?.get(column)? {
            Cell::Unchanged => match &self.old {
                Some(Old::Full(tuple)) => tuple.get(column).filter(|cell| **cell != Cell::Unchanged),
                _ => None,
            },
            cell => Some(cell),
        }
    }

    /// The value of a column before the change, if the replica identity contains it.
    pub fn old_cell(&self, column: usize) -> Option<&Cell> {
        let is_key = self.relation.columns.get(column)?.is_key;
        let cell = match &self.old {
            Some(Old::Full(tuple)) => tuple.get(column),
            Some(Old::Key(tuple)) => is_key.then(|| tuple.get(column))?,
            // The key did not change.
            None if self.action == Action::Update => return is_key.then(|| self.new_cell(column))?,
            None => None,
        };
        cell.filter(|cell| **cell != Cell::Unchanged)
    }

    /// The value of a key column before the change. Columns outside the replica identity count as unchanged.
    pub fn identified_cell(&self, column: usize) -> Option<&Cell> {
        self.old_cell(column).or_else(|| self.new_cell(column))
    }

    /// The value that filters check.
    pub fn filtered_cell(&self, column: usize) -> Option<&Cell> {
        if self.action == Action::Delete { self.old_cell(column) } else { self.new_cell(column) }
    }
}
