//! Relationships from keys: declared ones of tables, and those of views through their columns.
//!
//! Reference: PostgREST `SchemaCache.hs` (`addViewM2OAndO2ORels`, `addInverseRels`, `addM2MRels`).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::node_tree::Origin;
use super::rows::ConstraintRow;

/// A relation by OID, its column by number.
pub type Attribute = (u32, i16);

/// A relationship from `origin` to `target` in OIDs and column numbers; names are resolved last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRelationship {
    pub origin: u32,
    pub target: u32,
    pub is_self: bool,
    pub shape: RawShape,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawShape {
    /// The origin holds the foreign key: many-to-one, or one-to-one if its columns are unique.
    ToParent { constraint: usize, unique: bool, columns: Vec<(i16, i16)> },
    /// The target holds it.
    ToChild { constraint: usize, unique: bool, columns: Vec<(i16, i16)> },
    Junction {
        table: u32,
        origin_constraint: usize,
        target_constraint: usize,
        /// (origin's, junction's)
        origin_columns: Vec<(i16, i16)>,
        /// (target's, junction's)
        target_columns: Vec<(i16, i16)>,
    },
}

/// For each view, which of its columns (in order) show which table column, directly or through other
/// views.
#[derive(Debug, Default)]
pub struct ViewColumns {
    by_source: HashMap<Attribute, BTreeMap<u32, Vec<i16>>>,
    sources: HashMap<u32, HashSet<u32>>,
}

impl ViewColumns {
    /// `origins`: the plain columns of every followed view.
    pub fn resolve(origins: &HashMap<u32, Vec<Origin>>) -> Self {
        let direct: HashMap<Attribute, Vec<Attribute>> = origins
            .iter()
            .flat_map(|(view, list)| list.iter().map(|o| ((*view, o.column), (o.relation, o.relation_column))))
            .fold(HashMap::new(), |mut all, (from, to)| {
                all.entry(from).or_insert_with(Vec::new).push(to);
                all
            });
        let mut resolved = Self::default();
        for (&(view, column), sources) in &direct {
            let mut seen: HashSet<Attribute> = HashSet::new();
            let mut waiting = sources.clone();
            while let Some(source) = waiting.pop() {
                if !seen.insert(source) {
                    continue;
                }
                resolved.by_source.entry(source).or_default().entry(view).or_default().push(column);
                resolved.sources.entry(view).or_default().insert(source.0);
                waiting.extend(direct.get(&source).into_iter().flatten());
            }
        }
        for views in resolved.by_source.values_mut() {
            for columns in views.values_mut() {
                columns.sort_unstable();
            }
        }
        resolved
    }

    /// Views that show all of these columns of `table`; for each column the view's columns in their order.
    fn showing(&self, table: u32, columns: &[i16]) -> Vec<(u32, Vec<&[i16]>)> {
        let Some((first, rest)) = columns.split_first() else { return Vec::new() };
        let Some(views) = self.by_source.get(&(table, *first)) else { return Vec::new() };
        views
            .iter()
            .filter_map(|(view, shown)| {
                let mut all = vec![shown.as_slice()];
                for column in rest {
                    all.push(self.by_source.get(&(table, *column))?.get(view)?);
                }
                Some((*view, all))
            })
            .collect()
    }
}

/// All primary keys by relation, a view's inferred: the first of several columns that show the same key column
/// counts, and the keys of all shown tables are combined.
pub fn primary_keys(constraints: &[ConstraintRow], views: &ViewColumns) -> HashMap<u32, Vec<i16>> {
    let mut keys: HashMap<u32, Vec<i16>> = HashMap::new();
    for constraint in constraints.iter().filter(|c| c.kind == 'p') {
        keys.insert(constraint.relation, constraint.columns.clone());
        for (view, shown) in views.showing(constraint.relation, &constraint.columns) {
            keys.entry(view).or_default().extend(shown.iter().filter_map(|columns| columns.first()));
        }
    }
    keys
}

/// Every relationship between relations accepted by `exposed`.
pub fn relationships(
    constraints: &[ConstraintRow],
    views: &ViewColumns,
    primary_keys: &HashMap<u32, Vec<i16>>,
    exposed: impl Fn(u32) -> bool,
) -> Vec<RawRelationship> {
    let unique: HashSet<(u32, Vec<i16>)> =
        constraints.iter().filter(|c| matches!(c.kind, 'p' | 'u')).map(|c| (c.relation, sorted(&c.columns))).collect();

    let mut to_parents: Vec<RawRelationship> = Vec::new();
    for (index, foreign_key) in constraints.iter().enumerate().filter(|(_, c)| c.kind == 'f' && c.is_own) {
        let is_unique = unique.contains(&(foreign_key.relation, sorted(&foreign_key.columns)));
        let mut origins: Vec<(u32, Vec<i16>)> = vec![(foreign_key.relation, foreign_key.columns.clone())];
        for (view, shown) in views.showing(foreign_key.relation, &foreign_key.columns) {
            origins.extend(combinations(&shown).into_iter().map(|columns| (view, columns)));
        }
        let mut targets: Vec<(u32, Vec<i16>)> = vec![(foreign_key.target, foreign_key.target_columns.clone())];
        for (view, shown) in views.showing(foreign_key.target, &foreign_key.target_columns) {
            targets.extend(combinations(&shown).into_iter().map(|columns| (view, columns)));
        }
        for (origin, columns) in origins.iter().filter(|(oid, _)| exposed(*oid)) {
            for (target, target_columns) in targets.iter().filter(|(oid, _)| exposed(*oid)) {
                to_parents.push(RawRelationship {
                    origin: *origin,
                    target: *target,
                    is_self: origin == target,
                    shape: RawShape::ToParent {
                        constraint: index,
                        unique: is_unique,
                        columns: columns.iter().copied().zip(target_columns.iter().copied()).collect(),
                    },
                });
            }
        }
    }

    let mut all = junctions(&to_parents, constraints, primary_keys);
    all.extend(to_parents.iter().filter_map(|relationship| {
        let RawShape::ToParent { constraint, unique, columns } = &relationship.shape else { return None };
        Some(RawRelationship {
            origin: relationship.target,
            target: relationship.origin,
            is_self: relationship.is_self,
            shape: RawShape::ToChild { constraint: *constraint, unique: *unique, columns: swapped(columns) },
        })
    }));
    all.extend(to_parents);
    all
}

/// A relation is a junction for any two of its many-to-one relationships with different constraints, if all
/// their columns are in its primary key.
fn junctions(
    to_parents: &[RawRelationship],
    constraints: &[ConstraintRow],
    primary_keys: &HashMap<u32, Vec<i16>>,
) -> Vec<RawRelationship> {
    type Way<'a> = (usize, u32, &'a [(i16, i16)]);
    let mut by_table: BTreeMap<u32, Vec<Way<'_>>> = BTreeMap::new();
    for relationship in to_parents {
        if let RawShape::ToParent { constraint, unique: false, columns } = &relationship.shape {
            let key = primary_keys.get(&relationship.origin).map_or(&[][..], Vec::as_slice);
            if columns.iter().all(|(column, _)| key.contains(column)) {
                by_table.entry(relationship.origin).or_default().push((*constraint, relationship.target, columns));
            }
        }
    }
    let mut found = Vec::new();
    for (table, ways) in by_table {
        for (first, origin, origin_columns) in &ways {
            for (second, target, target_columns) in &ways {
                if constraints[*first].name != constraints[*second].name {
                    found.push(RawRelationship {
                        origin: *origin,
                        target: *target,
                        is_self: origin == target,
                        shape: RawShape::Junction {
                            table,
                            origin_constraint: *first,
                            target_constraint: *second,
                            origin_columns: swapped(origin_columns),
                            target_columns: swapped(target_columns),
                        },
                    });
                }
            }
        }
    }
    found
}

fn swapped(columns: &[(i16, i16)]) -> Vec<(i16, i16)> {
    columns.iter().map(|(a, b)| (*b, *a)).collect()
}

fn sorted(columns: &[i16]) -> Vec<i16> {
    let mut columns = columns.to_vec();
    columns.sort_unstable();
    columns
}

/// Every combination of one column per place, since a view may show the same key more than once.
fn combinations(places: &[&[i16]]) -> Vec<Vec<i16>> {
    places.iter().fold(vec![Vec::new()], |chosen, place| {
        chosen
            .iter()
            .flat_map(|prefix| {
                place.iter().map(|column| {
                    let mut longer = prefix.clone();
                    longer.push(*column);
                    longer
                })
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(
        kind: char,
        name: &str,
        relation: u32,
        columns: &[i16],
        target: u32,
        target_columns: &[i16],
    ) -> ConstraintRow {
        ConstraintRow {
            kind,
            name: name.into(),
            relation,
            columns: columns.to_vec(),
            target,
            target_columns: target_columns.to_vec(),
            is_own: true,
        }
    }

    fn view(columns: &[(i16, u32, i16)]) -> Vec<Origin> {
        columns
            .iter()
            .map(|&(column, relation, relation_column)| Origin { column, relation, relation_column })
            .collect()
    }

    fn all(constraints: &[ConstraintRow], views: HashMap<u32, Vec<Origin>>) -> Vec<RawRelationship> {
        let columns = ViewColumns::resolve(&views);
        let keys = primary_keys(constraints, &columns);
        relationships(constraints, &columns, &keys, |_| true)
    }

    fn ends(list: &[RawRelationship]) -> Vec<(u32, u32)> {
        let mut ends: Vec<_> = list.iter().map(|r| (r.origin, r.target)).collect();
        ends.sort_unstable();
        ends
    }

    #[test]
    fn a_foreign_key_is_a_relationship_in_both_directions() {
        let found = all(&[key('p', "pk", 1, &[1], 0, &[]), key('f', "fk", 2, &[3], 1, &[1])], HashMap::new());
        assert_eq!(ends(&found), [(1, 2), (2, 1)]);
        assert!(
            found.iter().any(|r| r.origin == 1
                && r.shape == RawShape::ToChild { constraint: 1, unique: false, columns: vec![(1, 3)] })
        );
    }

    #[test]
    fn a_unique_foreign_key_is_one_to_one_whatever_the_order_of_its_columns() {
        let found = all(&[key('u', "u", 2, &[4, 3], 0, &[]), key('f', "fk", 2, &[3, 4], 1, &[1, 2])], HashMap::new());
        assert!(found.iter().all(|r| matches!(
            r.shape,
            RawShape::ToParent { unique: true, .. } | RawShape::ToChild { unique: true, .. }
        )));
    }

    #[test]
    fn two_foreign_keys_within_the_primary_key_make_a_junction() {
        let keys =
            [key('p', "pk", 3, &[1, 2], 0, &[]), key('f', "a", 3, &[1], 1, &[1]), key('f', "b", 3, &[2], 2, &[1])];
        let found = all(&keys, HashMap::new());
        assert_eq!(ends(&found), [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]);
        let without_key = all(&keys[1..], HashMap::new());
        assert_eq!(ends(&without_key), [(1, 3), (2, 3), (3, 1), (3, 2)]);
    }

    #[test]
    fn a_view_has_the_relationships_of_its_columns_even_through_other_views() {
        let keys = [key('p', "pk", 1, &[1], 0, &[]), key('f', "fk", 2, &[3], 1, &[1])];
        let views = HashMap::from([(10, view(&[(1, 2, 3)])), (11, view(&[(5, 10, 1)])), (12, view(&[(2, 1, 1)]))]);
        let found = all(&keys, views);
        assert_eq!(
            ends(&found).into_iter().filter(|(origin, target)| origin > target).collect::<Vec<_>>(),
            [(2, 1), (10, 1), (11, 1), (12, 2), (12, 10), (12, 11)]
                .into_iter()
                .filter(|(o, t)| o > t)
                .collect::<Vec<_>>()
        );
        let columns = ViewColumns::resolve(&HashMap::from([(12, view(&[(2, 1, 1)]))]));
        assert_eq!(primary_keys(&keys, &columns).get(&12), Some(&vec![2]));
    }

    #[test]
    fn a_partial_key_is_not_followed_and_a_repeated_one_is_followed_each_way() {
        let keys = [key('f', "fk", 2, &[3, 4], 1, &[1, 2])];
        let partial = all(&keys, HashMap::from([(10, view(&[(1, 2, 3)]))]));
        assert_eq!(ends(&partial), [(1, 2), (2, 1)]);
        let twice = all(&keys, HashMap::from([(10, view(&[(1, 2, 3), (2, 2, 3), (3, 2, 4)]))]));
        assert_eq!(twice.iter().filter(|r| r.origin == 10).count(), 2);
    }

    #[test]
    fn cyclic_views_terminate() {
        let views = HashMap::from([(10, view(&[(1, 11, 1)])), (11, view(&[(1, 10, 1)]))]);
        assert_eq!(all(&[], views), []);
    }
}
