//! Finds the columns of views that cannot be null, from the views' queries.
//!
//! A column is not null if it passes through, unchanged, a not-null column of a table, another view, a subquery or a common table
//! expression that is not on the nullable side of an outer join. Set operations and grouping sets count as nullable.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Error;

use crate::db::Client;
use crate::schema_cache::introspect::node_tree::Tokens;

type Oid = u32;

/// A column: its relation and its number.
type Place = (Oid, i16);

/// Nesting limit of queries. Deeper columns count as nullable.
const DEEPEST: usize = 100;

/// Nesting limit of nodes in a query's text, so that the parser fits on a stack of 2 MB.
const DEEPEST_NODE: usize = 500;

/// Kinds of range table entries, by PostgreSQL's numbers.
const RELATION: &str = "0";
const SUBQUERY: &str = "1";
const JOIN: &str = "2";
const COMMON_TABLE: &str = "6";
const GROUP: &str = "9";

/// Kinds of joins.
const INNER: &str = "0";
const LEFT: &str = "1";
const RIGHT: &str = "3";

/// The not-null columns of all views of the database.
pub async fn view_columns(client: &Client) -> Result<HashSet<Place>, Error> {
    let columns = client.query(include_str!("not_null.sql"), &[]).await?;
    let rules = client
        .query(
            "select r.ev_class, r.ev_action::text from pg_catalog.pg_rewrite r
             join pg_catalog.pg_class c on c.oid = r.ev_class and c.relkind in ('v', 'm')
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace
             where r.ev_type = '1' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'",
            &[],
        )
        .await?;
    let rules: HashMap<Oid, &str> = rules.iter().map(|row| (row.get(0), row.get(1))).collect();
    let tables = columns.iter().map(|row| (row.get(0), row.get(1))).collect();
    Ok(of(&rules, tables))
}

/// The not-null columns of the views with these rules, given those of the tables.
fn of(rules: &HashMap<Oid, &str>, tables: HashSet<Place>) -> HashSet<Place> {
    let trees = rules.iter().filter_map(|(view, rule)| Some((*view, Node::parse(rule)?))).collect();
    let mut search = Search { trees, tables, known: HashMap::new() };
    let views: Vec<Oid> = rules.keys().copied().collect();
    views.into_iter().flat_map(|view| search.of_view(view).into_iter().map(move |column| (view, column))).collect()
}

/// A node of PostgreSQL's text form of a parsed query.
#[derive(Debug)]
enum Node<'a> {
    Word(&'a str),
    List(Vec<Node<'a>>),
    Object { kind: &'a str, fields: Vec<(&'a str, Node<'a>)> },
}

static NOTHING: Node<'static> = Node::Word("<>");

impl<'a> Node<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        Self::read(&mut Tokens(text).peekable(), 0)
    }

    fn read(tokens: &mut std::iter::Peekable<Tokens<'a>>, depth: usize) -> Option<Self> {
        if depth > DEEPEST_NODE {
            return None;
        }
        match tokens.next()? {
            "{" => {
                let kind = tokens.next()?;
                let mut fields = Vec::new();
                loop {
                    let field = tokens.next()?;
                    if field == "}" {
                        return Some(Self::Object { kind, fields });
                    }
                    // The token after a field is always its value, because a column's name may look like a field.
                    fields.push((field, Self::read(tokens, depth + 1)?));
                    // The bytes of a constant are several tokens.
                    while tokens.peek().is_some_and(|next| *next != "}" && !next.starts_with(':')) {
                        Self::read(tokens, depth + 1)?;
                    }
                }
            }
            "(" => {
                let mut items = Vec::new();
                while *tokens.peek()? != ")" {
                    items.push(Self::read(tokens, depth + 1)?);
                }
                tokens.next();
                Some(Self::List(items))
            }
            "}" | ")" => None,
            word => Some(Self::Word(word)),
        }
    }

    fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Object { kind, .. } if *kind == wanted)
    }

    fn field(&self, name: &str) -> &Node<'a> {
        match self {
            Self::Object { fields, .. } => fields.iter().find(|(field, _)| *field == name).map_or(&NOTHING, |(_, v)| v),
            _ => &NOTHING,
        }
    }

    fn word(&self, name: &str) -> &'a str {
        if let Self::Word(word) = self.field(name) { word } else { "" }
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.word(name).parse().ok()
    }

    fn list(&self, name: &str) -> &[Node<'a>] {
        if let Self::List(items) = self.field(name) { items } else { &[] }
    }

    /// The visible column of a query with this number.
    fn target(&self, number: usize) -> Option<&Node<'a>> {
        self.list(":targetList").iter().find(|entry| entry.number(":resno") == Some(number))
    }
}

struct Search<'a> {
    trees: HashMap<Oid, Node<'a>>,
    tables: HashSet<Place>,
    known: HashMap<Oid, HashSet<i16>>,
}

impl<'a> Search<'a> {
    fn of_view(&mut self, view: Oid) -> HashSet<i16> {
        if let Some(known) = self.known.get(&view) {
            return known.clone();
        }
        // A view that refers back to itself proves nothing.
        self.known.insert(view, HashSet::new());
        let Some(tree) = self.trees.remove(&view) else { return HashSet::new() };
        let mut found = HashSet::new();
        if let Node::List(queries) = &tree
            && let Some(query) = queries.first()
            && can_be_followed(query)
        {
            for entry in query.list(":targetList").iter().filter(|entry| entry.word(":resjunk") != "true") {
                let number = entry.word(":resno").parse::<i16>();
                if self.holds(entry.field(":expr"), &[query]) {
                    found.extend(number);
                }
            }
        }
        self.known.insert(view, found.clone());
        found
    }

    /// Whether an expression of the innermost query is never null.
    fn holds(&mut self, expression: &Node<'a>, within: &[&Node<'a>]) -> bool {
        let Some(query) = within.last() else { return false };
        if within.len() > DEEPEST || !expression.is("VAR") || expression.word(":varlevelsup") != "0" {
            return false;
        }
        let (Some(entry), Ok(column)) = (expression.number(":varno"), expression.word(":varattno").parse::<i16>())
        else {
            return false;
        };
        if column <= 0 || filled_up(query).contains(&entry) {
            return false;
        }
        let Some(source) = entry.checked_sub(1).and_then(|at| query.list(":rtable").get(at)) else { return false };
        let place = usize::from(column.unsigned_abs());
        match source.word(":rtekind") {
            RELATION => match source.word(":relid").parse() {
                Ok(relation) if self.trees.contains_key(&relation) || self.known.contains_key(&relation) => {
                    self.of_view(relation).contains(&column)
                }
                Ok(relation) => self.tables.contains(&(relation, column)),
                Err(_) => false,
            },
            SUBQUERY => self.query_holds(source.field(":subquery"), place, within),
            JOIN => source.list(":joinaliasvars").get(place - 1).is_some_and(|below| self.holds(below, within)),
            GROUP => source.list(":groupexprs").get(place - 1).is_some_and(|below| self.holds(below, within)),
            COMMON_TABLE => {
                let Some(outer) = source.number(":ctelevelsup").and_then(|up| within.len().checked_sub(up + 1)) else {
                    return false;
                };
                let name = source.word(":ctename");
                let tables = within[outer].list(":cteList").iter();
                let table =
                    tables.filter(|table| table.word(":cterecursive") != "true").find(|t| t.word(":ctename") == name);
                table.is_some_and(|table| self.query_holds(table.field(":ctequery"), place, &within[..=outer]))
            }
            _ => false,
        }
    }

    fn query_holds(&mut self, query: &Node<'a>, number: usize, within: &[&Node<'a>]) -> bool {
        let Some(entry) = query.target(number).filter(|_| can_be_followed(query)) else { return false };
        let within: Vec<&Node<'a>> = within.iter().copied().chain([query]).collect();
        self.holds(entry.field(":expr"), &within)
    }
}

fn can_be_followed(query: &Node<'_>) -> bool {
    query.is("QUERY") && query.word(":setOperations") == "<>" && query.list(":groupingSets").is_empty()
}

/// Range table entries on the nullable side of an outer join.
fn filled_up(query: &Node<'_>) -> HashSet<usize> {
    fn walk(node: &Node<'_>, is_filled_up: bool, found: &mut HashSet<usize>) {
        if node.is("FROMEXPR") {
            for below in node.list(":fromlist") {
                walk(below, is_filled_up, found);
            }
            return;
        }
        if is_filled_up {
            found.extend(node.number(":rtindex"));
        }
        if node.is("JOINEXPR") {
            let kind = node.word(":jointype");
            walk(node.field(":larg"), is_filled_up || ![INNER, LEFT].contains(&kind), found);
            walk(node.field(":rarg"), is_filled_up || ![INNER, RIGHT].contains(&kind), found);
        }
    }
    let mut found = HashSet::new();
    walk(query.field(":jointree"), false, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_rule_makes_no_column_not_null() {
        for rule in ["", "(", "}", "({QUERY", "({QUERY :targetList (", "<>", "({QUERY :a b})"] {
            assert!(of(&HashMap::from([(1, rule)]), HashSet::new()).is_empty(), "{rule}");
        }
        let deep = "(".repeat(1_000_000);
        assert!(of(&HashMap::from([(1, deep.as_str())]), HashSet::new()).is_empty());
    }

    #[test]
    fn cyclic_views_terminate() {
        let over = |relation: u32| {
            format!(
                "({{QUERY :setOperations <> :cteList <> :rtable ({{RANGETBLENTRY :rtekind 0 :relid {relation}}}) \
                 :jointree {{FROMEXPR :fromlist ({{RANGETBLREF :rtindex 1}}) :quals <>}} \
                 :targetList ({{TARGETENTRY :expr {{VAR :varno 1 :varattno 1 :varlevelsup 0}} :resno 1 :resjunk false}}) \
                 :groupingSets <>}})"
            )
        };
        let (one, two, three) = (over(11), over(10), over(5));
        let rules = HashMap::from([(10, one.as_str()), (11, two.as_str()), (12, three.as_str())]);
        assert_eq!(of(&rules, HashSet::from([(5, 1)])), HashSet::from([(12, 1)]));
    }
}
