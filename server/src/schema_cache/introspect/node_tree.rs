//! Parses as much of PostgreSQL's node-tree text (`pg_rewrite.ev_action`) as is needed to find the origin of a view's
//! columns.
//!
//! Nodes are `{TYPE :field value …}`, lists `( … )`; a backslash escapes the next character.

/// A column of a view and the column of another relation that it shows unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Number of the view's column.
    pub column: i16,
    /// OID of the relation underneath: a table, or another view.
    pub relation: u32,
    /// Number of its column.
    pub relation_column: i16,
}

/// The plain columns among the top target list of a SELECT rule. Empty for text that is not such a rule.
///
/// The top target list of a UNION names no origin, so nothing is found.
pub fn origins(rule: &str) -> Vec<Origin> {
    let mut found = Vec::new();
    // Depth of braces and parentheses; the rule is `({QUERY …})`, so the query's fields stand at depth 2 and
    // the fields of its target entries at depth 4.
    let mut depth = 0usize;
    let mut in_targets = false;
    let mut field = "";
    let (mut column, mut relation, mut relation_column) = (0i16, 0u32, 0i16);
    for token in Tokens(rule) {
        match token {
            "{" | "(" => {
                if depth == 4 {
                    field = "";
                }
                depth += 1;
            }
            "}" | ")" => {
                if in_targets && depth == 4 && token == "}" {
                    if relation != 0 && relation_column > 0 && column > 0 {
                        found.push(Origin { column, relation, relation_column });
                    }
                    (column, relation, relation_column) = (0, 0, 0);
                }
                depth = depth.saturating_sub(1);
            }
            _ if depth == 2 && token.starts_with(':') => {
                if in_targets {
                    break;
                }
                in_targets = token == ":targetList";
            }
            _ if in_targets && depth == 4 && (!field.is_empty() || token.starts_with(':')) => {
                // A column's name may begin with a colon, so whatever follows a field is its value.
                match field {
                    "" => {
                        field = token;
                        continue;
                    }
                    ":resno" => column = token.parse().unwrap_or_default(),
                    ":resorigtbl" => relation = token.parse().unwrap_or_default(),
                    ":resorigcol" => relation_column = token.parse().unwrap_or_default(),
                    _ => {}
                }
                field = "";
            }
            _ => {}
        }
    }
    found
}

/// Braces, parentheses, and the words between them, escapes and all.
pub struct Tokens<'a>(pub &'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start_matches([' ', '\n', '\t']);
        let bytes = text.as_bytes();
        let mut end = 0;
        while let Some(byte) = bytes.get(end) {
            match byte {
                b'{' | b'}' | b'(' | b')' if end == 0 => {
                    end = 1;
                    break;
                }
                b'{' | b'}' | b'(' | b')' | b' ' | b'\n' | b'\t' => break,
                // Only ASCII is escaped, so the next byte is a whole character or the start of one.
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        let mut end = end.min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        if end == 0 {
            return None;
        }
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(column: i16, name: &str, relation: u32, relation_column: i16) -> String {
        format!(
            "{{TARGETENTRY :expr {{VAR :varno 1 :varattno {column}}} :resno {column} :resname {name} \
             :ressortgroupref 0 :resorigtbl {relation} :resorigcol {relation_column} :resjunk false}}"
        )
    }

    fn query(targets: &[String], rtable: &str) -> String {
        format!("({{QUERY :commandType 1 :rtable {rtable} :targetList ({}) :returningList <>}})", targets.join(" "))
    }

    #[test]
    fn plain_columns_are_found_and_expressions_are_not() {
        let rule = query(&[entry(1, "id", 16400, 1), entry(2, "sum", 0, 0), entry(3, "name", 16400, 4)], "<>");
        assert_eq!(
            origins(&rule),
            [
                Origin { column: 1, relation: 16400, relation_column: 1 },
                Origin { column: 3, relation: 16400, relation_column: 4 }
            ]
        );
    }

    #[test]
    fn target_lists_of_subqueries_do_not_count() {
        let inner = query(&[entry(1, "x", 7, 7)], "<>");
        let rule = query(&[entry(1, "id", 16400, 1)], &format!("({{RTE :subquery {}}})", &inner[1..inner.len() - 1]));
        assert_eq!(origins(&rule), [Origin { column: 1, relation: 16400, relation_column: 1 }]);
    }

    #[test]
    fn escaped_brackets_in_names_do_not_change_the_depth() {
        let rule = query(&[entry(1, "a\\ \\{\\(\\)b", 5, 1), entry(2, "b", 5, 2)], "<>");
        assert_eq!(origins(&rule).len(), 2);
    }

    #[test]
    fn a_column_named_like_a_field_is_a_value() {
        let rule = query(&[entry(1, ":resorigtbl", 5, 1), entry(2, ":targetList", 5, 2)], "<>");
        assert_eq!(origins(&rule).len(), 2);
    }

    #[test]
    fn other_text_has_no_origins() {
        for text in ["", "(", "}}}}", "({QUERY :targetList", "\\", "é\\é{(", "<>"] {
            assert_eq!(origins(text), []);
        }
    }
}
