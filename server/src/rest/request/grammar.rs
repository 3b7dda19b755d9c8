//! The grammars of `select`, filters, `order`, logic trees and column lists.
//!
//! Each function is one production. They follow the reference parser's structure, not only its language,
//! because the structure determines the "expecting" part of error messages.
//!
//! Reference: PostgREST `src/library/PostgREST/ApiRequest/QueryParams.hs`.

use super::combinators::{Parsed, Parser, is_letter};
use super::types::*;

type P<'a> = Parser<'a>;

fn blanks(p: &mut P<'_>) -> Parsed<()> {
    p.run(|c| c == ' ' || c == '\t').map(drop)
}

fn lexeme<T>(p: &mut P<'_>, inner: impl FnOnce(&mut P<'_>) -> Parsed<T>) -> Parsed<T> {
    blanks(p)?;
    let value = inner(p)?;
    blanks(p)?;
    Ok(value)
}

fn delimiter(p: &mut P<'_>) -> Parsed<()> {
    p.label("delimiter (.)", |p| p.char('.')).map(drop)
}

fn text(chars: Vec<char>) -> String {
    chars.into_iter().collect()
}

fn trimmed(chars: Vec<char>) -> String {
    text(chars).trim().to_owned()
}

/// `"…"` where a backslash makes the next character plain.
fn quoted(p: &mut P<'_>) -> Parsed<String> {
    p.char('"')?;
    let value = p.many(|p| {
        p.either(
            |p| p.satisfy(|c| c != '\\' && c != '"'),
            |p| {
                p.char('\\')?;
                p.satisfy(|_| true)
            },
        )
    })?;
    p.char('"')?;
    Ok(text(value))
}

fn identifier(p: &mut P<'_>) -> Parsed<String> {
    let is_part = |c: char| is_letter(c) || c.is_ascii_digit() || matches!(c, '_' | ' ' | '$');
    if let Some(name) = p.unexplained_run(is_part) {
        return if name.is_empty() { p.reject() } else { Ok(name.trim().to_owned()) };
    }
    let one = |p: &mut P<'_>| {
        p.either(|p| p.either(|p| p.letter(), |p| p.digit()), |p| p.satisfy(|c| matches!(c, '_' | ' ' | '$')))
    };
    p.many1(one).map(trimmed)
}

fn joined_by_dashes(p: &mut P<'_>, word: impl Fn(&mut P<'_>) -> Parsed<String>) -> Parsed<String> {
    let mut words = p.separated1(&word, |p| {
        p.attempt(|p| {
            p.char('-')?;
            p.not_followed_by(|c| c == '>')
        })
    })?;
    if words.len() > 1 {
        return Ok(words.join("-"));
    }
    Ok(words.pop().unwrap_or_default())
}

/// The name of a column, relation, alias or hint.
pub fn field_name(p: &mut P<'_>) -> Parsed<String> {
    p.label("field name (* or [a..z0..9_$])", |p| p.either(quoted, |p| joined_by_dashes(p, identifier)))
}

fn json_path(p: &mut P<'_>) -> Parsed<Vec<JsonStep>> {
    p.many(|p| {
        let as_text = p.either(
            |p| p.attempt(|p| p.string("->>").map(|()| true)),
            |p| p.attempt(|p| p.string("->").map(|()| false)),
        )?;
        let operand = p.either(|p| p.attempt(json_index), |p| p.attempt(json_key))?;
        Ok(JsonStep { as_text, operand })
    })
}

fn json_index(p: &mut P<'_>) -> Parsed<JsonOperand> {
    let sign = p.either(|p| p.char('-'), |_| Ok('+'))?;
    let digits = p.many1(|p| p.digit())?;
    let ends = ["->", "::", ".", ","];
    json_index_end(p, &ends)?;
    Ok(JsonOperand::Index(format!("{sign}{}", text(digits))))
}

fn json_index_end(p: &mut P<'_>, ends: &[&'static str]) -> Parsed<()> {
    match ends {
        [] => p.attempt(|p| p.eof()),
        [end, rest @ ..] => p.either(|p| p.attempt(|p| p.look_ahead(|p| p.string(end))), |p| json_index_end(p, rest)),
    }
}

fn json_key(p: &mut P<'_>) -> Parsed<JsonOperand> {
    let key_word =
        |p: &mut P<'_>| p.many1(|p| p.satisfy(|c| !matches!(c, '(' | '-' | ':' | '.' | ',' | '>' | ')'))).map(trimmed);
    p.label("any non reserved character different from: .,>()", |p| p.either(quoted, |p| joined_by_dashes(p, key_word)))
        .map(JsonOperand::Key)
}

fn field(p: &mut P<'_>) -> Parsed<Field> {
    lexeme(p, |p| {
        let name = field_name(p)?;
        let path = json_path(p)?;
        Ok(Field { name, path })
    })
}

fn alias(p: &mut P<'_>) -> Parsed<Option<String>> {
    p.optional(|p| {
        p.attempt(|p| {
            let name = field_name(p)?;
            p.char(':')?;
            p.not_followed_by(|c| c == ':')?;
            Ok(name)
        })
    })
}

/// The whole of `select`.
pub fn select(p: &mut P<'_>) -> Parsed<Vec<SelectItem>> {
    p.separated(select_item, |p| lexeme(p, |p| p.char(',')))
}

fn select_item(p: &mut P<'_>) -> Parsed<SelectItem> {
    p.either(
        |p| {
            let head = p.attempt(spread_head)?;
            embed_body(p, head)
        },
        |p| {
            p.either(
                |p| {
                    let head = p.attempt(embed_head)?;
                    embed_body(p, head)
                },
                select_field,
            )
        },
    )
}

struct EmbedHead {
    target: String,
    alias: Option<String>,
    hint: Option<String>,
    join: Option<JoinType>,
    spread: bool,
}

fn embed_body(p: &mut P<'_>, head: EmbedHead) -> Parsed<SelectItem> {
    p.char('(')?;
    let select = p.nested(select)?;
    p.char(')')?;
    let EmbedHead { target, alias, hint, join, spread } = head;
    Ok(SelectItem::Embed { target, alias, hint, join, spread, select })
}

fn spread_head(p: &mut P<'_>) -> Parsed<EmbedHead> {
    lexeme(p, |p| {
        p.string("...")?;
        let target = field_name(p)?;
        let (hint, join) = embed_params(p)?;
        opening_follows(p)?;
        Ok(EmbedHead { target, alias: None, hint, join, spread: true })
    })
}

fn embed_head(p: &mut P<'_>) -> Parsed<EmbedHead> {
    lexeme(p, |p| {
        let alias = alias(p)?;
        let target = field_name(p)?;
        if target == "count" {
            return p.reject();
        }
        let (hint, join) = embed_params(p)?;
        opening_follows(p)?;
        Ok(EmbedHead { target, alias, hint, join, spread: false })
    })
}

fn opening_follows(p: &mut P<'_>) -> Parsed<()> {
    p.attempt(|p| p.look_ahead(|p| p.string("(")))
}

enum EmbedParam {
    Hint(String),
    Join(JoinType),
}

fn embed_params(p: &mut P<'_>) -> Parsed<(Option<String>, Option<JoinType>)> {
    let mut hint = None;
    let mut join = None;
    for _ in 0..2 {
        match p.optional(embed_param)? {
            Some(EmbedParam::Hint(name)) => hint = hint.or(Some(name)),
            Some(EmbedParam::Join(kind)) => join = join.or(Some(kind)),
            None => {}
        }
    }
    Ok((hint, join))
}

fn embed_param(p: &mut P<'_>) -> Parsed<EmbedParam> {
    p.char('!')?;
    p.either(
        |p| p.attempt(|p| p.string("left")).map(|()| EmbedParam::Join(JoinType::Left)),
        |p| {
            p.either(
                |p| p.attempt(|p| p.string("inner")).map(|()| EmbedParam::Join(JoinType::Inner)),
                |p| p.attempt(field_name).map(EmbedParam::Hint),
            )
        },
    )
}

fn select_field(p: &mut P<'_>) -> Parsed<SelectItem> {
    lexeme(p, |p| p.either(|p| p.attempt(star), |p| p.either(|p| p.attempt(count_rows), plain_field)))
}

fn select_end(p: &mut P<'_>) -> Parsed<()> {
    p.either(
        |p| p.attempt(|p| p.look_ahead(|p| p.string(")"))),
        |p| p.either(|p| p.attempt(|p| p.look_ahead(|p| p.string(","))), |p| p.attempt(|p| p.eof())),
    )
}

fn whole_row() -> Field {
    Field { name: "*".to_owned(), path: Vec::new() }
}

fn star(p: &mut P<'_>) -> Parsed<SelectItem> {
    p.string("*")?;
    select_end(p)?;
    Ok(SelectItem::Field { field: whole_row(), aggregate: None, aggregate_cast: None, cast: None, alias: None })
}

fn count_rows(p: &mut P<'_>) -> Parsed<SelectItem> {
    let alias = alias(p)?;
    p.string("count()")?;
    let aggregate_cast = cast(p)?;
    select_end(p)?;
    let aggregate = Some(Aggregate::Count);
    Ok(SelectItem::Field { field: whole_row(), aggregate, aggregate_cast, cast: None, alias })
}

fn plain_field(p: &mut P<'_>) -> Parsed<SelectItem> {
    let alias = alias(p)?;
    let field = field(p)?;
    let field_cast = cast(p)?;
    let aggregate = p.optional(|p| {
        p.attempt(|p| {
            p.char('.')?;
            let aggregate = aggregate(p)?;
            p.string("()")?;
            Ok(aggregate)
        })
    })?;
    let aggregate_cast = cast(p)?;
    select_end(p)?;
    Ok(SelectItem::Field { field, aggregate, aggregate_cast, cast: field_cast, alias })
}

fn cast(p: &mut P<'_>) -> Parsed<Option<CastName>> {
    let name = p.optional(|p| {
        p.string("::")?;
        identifier(p)
    })?;
    Ok(name.as_deref().and_then(CastName::new))
}

fn aggregate(p: &mut P<'_>) -> Parsed<Aggregate> {
    p.either(
        |p| p.string("sum").map(|()| Aggregate::Sum),
        |p| {
            p.either(
                |p| p.string("avg").map(|()| Aggregate::Avg),
                |p| {
                    p.either(
                        |p| p.string("count").map(|()| Aggregate::Count),
                        |p| {
                            p.either(
                                |p| p.attempt(|p| p.string("max")).map(|()| Aggregate::Max),
                                |p| p.attempt(|p| p.string("min")).map(|()| Aggregate::Min),
                            )
                        },
                    )
                },
            )
        },
    )
}

/// `[not.]operator.value`; `value` reads what follows the operator.
pub fn op_expr(p: &mut P<'_>, value: fn(&mut P<'_>) -> Parsed<String>) -> Parsed<OpExpr> {
    let negated = p.either(
        |p| {
            p.attempt(|p| {
                p.string("not")?;
                delimiter(p)?;
                Ok(true)
            })
        },
        |_| Ok(false),
    )?;
    let operation = p.label("operator (eq, gt, ...)", |p| operation(p, value))?;
    Ok(OpExpr { negated, operation })
}

fn operation(p: &mut P<'_>, value: fn(&mut P<'_>) -> Parsed<String>) -> Parsed<Operation> {
    let keyword = |p: &mut P<'_>, word: &'static str| {
        p.attempt(|p| {
            p.string(word)?;
            delimiter(p)
        })
    };
    let in_list = |p: &mut P<'_>| {
        keyword(p, "in")?;
        list(p).map(Operation::In)
    };
    let is = |p: &mut P<'_>| {
        keyword(p, "is")?;
        is_value(p).map(Operation::Is)
    };
    let is_distinct = |p: &mut P<'_>| {
        keyword(p, "isdistinct")?;
        value(p).map(Operation::IsDistinct)
    };
    p.either(in_list, |p| {
        p.either(is, |p| {
            p.either(is_distinct, |p| {
                p.either(
                    |p| p.attempt(|p| full_text(p, value)),
                    |p| p.either(|p| p.attempt(|p| simple(p, value)), |p| p.attempt(|p| quantified(p, value))),
                )
            })
        })
    })
}

/// The first of `words` that the input begins with.
fn one_of_words<T: Copy>(p: &mut P<'_>, words: &[(&'static str, T)]) -> Parsed<T> {
    match words {
        [] => p.reject(),
        [(word, meaning), rest @ ..] => {
            p.either(|p| p.attempt(|p| p.string(word)).map(|()| *meaning), |p| one_of_words(p, rest))
        }
    }
}

/// Longer words before their prefixes.
pub const SIMPLE_WORDS: [(&str, SimpleOp); 9] = [
    ("neq", SimpleOp::NotEqual),
    ("cs", SimpleOp::Contains),
    ("cd", SimpleOp::Contained),
    ("ov", SimpleOp::Overlap),
    ("sl", SimpleOp::StrictlyLeft),
    ("sr", SimpleOp::StrictlyRight),
    ("nxr", SimpleOp::NotExtendsRight),
    ("nxl", SimpleOp::NotExtendsLeft),
    ("adj", SimpleOp::Adjacent),
];

/// Like [`SIMPLE_WORDS`], for the operators that take a quantifier.
pub const QUANTIFIED_WORDS: [(&str, QuantOp); 9] = [
    ("eq", QuantOp::Equal),
    ("gte", QuantOp::GreaterOrEqual),
    ("gt", QuantOp::Greater),
    ("lte", QuantOp::LessOrEqual),
    ("lt", QuantOp::Less),
    ("like", QuantOp::Like),
    ("ilike", QuantOp::ILike),
    ("match", QuantOp::Match),
    ("imatch", QuantOp::IMatch),
];

fn simple(p: &mut P<'_>, value: fn(&mut P<'_>) -> Parsed<String>) -> Parsed<Operation> {
    let op = p.label("unknown single value operator", |p| one_of_words(p, &SIMPLE_WORDS))?;
    delimiter(p)?;
    Ok(Operation::Simple(op, value(p)?))
}

fn quantified(p: &mut P<'_>, value: fn(&mut P<'_>) -> Parsed<String>) -> Parsed<Operation> {
    let op = p.label("unknown single value operator", |p| one_of_words(p, &QUANTIFIED_WORDS))?;
    let quantifier = p.optional(|p| {
        p.attempt(|p| {
            p.char('(')?;
            let which = p.either(
                |p| p.attempt(|p| p.string("any")).map(|()| Quantifier::Any),
                |p| p.string("all").map(|()| Quantifier::All),
            )?;
            p.char(')')?;
            Ok(which)
        })
    })?;
    delimiter(p)?;
    Ok(Operation::Quantified(op, quantifier, value(p)?))
}

fn full_text(p: &mut P<'_>, value: fn(&mut P<'_>) -> Parsed<String>) -> Parsed<Operation> {
    const WORDS: [(&str, FtsOp); 4] =
        [("fts", FtsOp::Plain), ("plfts", FtsOp::PlainTo), ("phfts", FtsOp::PhraseTo), ("wfts", FtsOp::WebSearch)];
    let op = one_of_words(p, &WORDS)?;
    let language = p.optional(|p| {
        p.attempt(|p| {
            p.char('(')?;
            let language = identifier(p)?;
            p.char(')')?;
            Ok(language)
        })
    })?;
    delimiter(p)?;
    Ok(Operation::FullText(op, language, value(p)?))
}

fn is_value(p: &mut P<'_>) -> Parsed<IsValue> {
    const WORDS: [(&str, IsValue); 5] = [
        ("null", IsValue::Null),
        ("not_null", IsValue::NotNull),
        ("true", IsValue::True),
        ("false", IsValue::False),
        ("unknown", IsValue::Unknown),
    ];
    fn any_case(p: &mut P<'_>, words: &[(&'static str, IsValue)]) -> Parsed<IsValue> {
        match words {
            [] => p.reject(),
            [(word, meaning), rest @ ..] => p.either(
                |p| {
                    p.attempt(|p| {
                        for c in word.chars() {
                            p.either(|p| p.char(c), |p| p.char(c.to_ascii_uppercase()))?;
                        }
                        Ok(*meaning)
                    })
                },
                |p| any_case(p, rest),
            ),
        }
    }
    p.label("isVal: (null, not_null, true, false, unknown)", |p| any_case(p, &WORDS))
}

/// A value at the top level: the rest, verbatim.
pub fn rest(p: &mut P<'_>) -> Parsed<String> {
    p.run(|_| true)
}

fn until_delimiter(p: &mut P<'_>) -> Parsed<String> {
    p.run(|c| c != ',' && c != ')')
}

fn quoted_to_delimiter(p: &mut P<'_>) -> Parsed<String> {
    p.attempt(|p| {
        let value = quoted(p)?;
        p.not_followed_by(|c| c != ',' && c != ')')?;
        Ok(value)
    })
}

fn list(p: &mut P<'_>) -> Parsed<Vec<String>> {
    lexeme(p, |p| p.char('('))?;
    let items = p.separated1(|p| p.either(quoted_to_delimiter, until_delimiter), |p| p.char(','))?;
    lexeme(p, |p| p.char(')'))?;
    Ok(items)
}

fn value_in_logic(p: &mut P<'_>) -> Parsed<String> {
    p.either(quoted_to_delimiter, |p| {
        p.either(
            |p| {
                p.attempt(|p| {
                    p.string("{")?;
                    let inner = p.many(|p| p.satisfy(|c| c != '{' && c != '}'))?;
                    p.string("}")?;
                    Ok(format!("{{{}}}", text(inner)))
                })
            },
            until_delimiter,
        )
    })
}

/// The whole of `order`.
pub fn order(p: &mut P<'_>) -> Parsed<Vec<OrderItem>> {
    p.separated1(|p| lexeme(p, |p| p.either(|p| p.attempt(related_order), plain_order)), |p| p.char(','))
}

fn plain_order(p: &mut P<'_>) -> Parsed<OrderItem> {
    let field = field(p)?;
    order_modifiers(p, None, field)
}

fn related_order(p: &mut P<'_>) -> Parsed<OrderItem> {
    let embed = field_name(p)?;
    p.char('(')?;
    let inner = field(p)?;
    p.char(')')?;
    order_modifiers(p, Some(embed), inner)
}

fn order_modifiers(p: &mut P<'_>, embed: Option<String>, field: Field) -> Parsed<OrderItem> {
    let word = |p: &mut P<'_>, word: &'static str| {
        p.attempt(|p| {
            delimiter(p)?;
            p.string(word)
        })
    };
    let direction = p.optional(|p| {
        p.either(|p| word(p, "asc").map(|()| Direction::Asc), |p| word(p, "desc").map(|()| Direction::Desc))
    })?;
    let end = |p: &mut P<'_>| {
        p.either(|p| p.attempt(|p| p.look_ahead(|p| p.char(',')).map(drop)), |p| p.attempt(|p| p.eof()))
    };
    let nulls = p.either(
        |p| {
            let nulls = p.optional(|p| {
                p.either(
                    |p| word(p, "nullsfirst").map(|()| Nulls::First),
                    |p| word(p, "nullslast").map(|()| Nulls::Last),
                )
            })?;
            end(p)?;
            Ok(nulls)
        },
        |p| end(p).map(|()| None),
    )?;
    Ok(OrderItem { embed, field, direction, nulls })
}

/// `[not.]and(…)` with everything inside it.
pub fn logic_tree(p: &mut P<'_>) -> Parsed<LogicTree> {
    p.either(|p| p.attempt(logic_filter).map(LogicTree::Filter), logic_group)
}

fn logic_filter(p: &mut P<'_>) -> Parsed<Filter> {
    let field = field(p)?;
    delimiter(p)?;
    let op = op_expr(p, value_in_logic)?;
    Ok(Filter { field, op })
}

fn logic_group(p: &mut P<'_>) -> Parsed<LogicTree> {
    let negated = p.label("negation operator (not)", |p| {
        p.either(
            |p| {
                p.attempt(|p| {
                    p.string("not")?;
                    delimiter(p)?;
                    Ok(true)
                })
            },
            |_| Ok(false),
        )
    })?;
    let op = p.label("logic operator (and, or)", |p| {
        p.either(|p| p.attempt(|p| p.string("and")).map(|()| LogicOp::And), |p| p.string("or").map(|()| LogicOp::Or))
    })?;
    lexeme(p, |p| p.char('('))?;
    let members = p.nested(|p| p.separated1(logic_tree, |p| lexeme(p, |p| p.char(','))))?;
    lexeme(p, |p| p.char(')'))?;
    Ok(LogicTree::Group { negated, op, members })
}

/// `a.b.column->path`: the embed path and the field.
pub fn tree_path(p: &mut P<'_>) -> Parsed<(EmbedPath, Field)> {
    let mut names = p.separated1(field_name, delimiter)?;
    let path = json_path(p)?;
    let name = names.pop().unwrap_or_default();
    Ok((names, Field { name, path }))
}

/// `a.b.not.or`: the embed path and the operator with its negation, as in `not.or`.
pub fn logic_path(p: &mut P<'_>) -> Parsed<(EmbedPath, String)> {
    let names = p.separated1(field_name, delimiter)?;
    let negated = names.iter().any(|name| name == "not");
    let (op, path) = names.split_last().map_or((String::new(), &[][..]), |(last, init)| (last.clone(), init));
    let path = path.iter().filter(|name| *name != "not").cloned().collect();
    Ok((path, if negated { format!("not.{op}") } else { op }))
}

/// `columns` and `on_conflict`.
pub fn columns(p: &mut P<'_>) -> Parsed<Vec<String>> {
    p.separated1(field_name, |p| lexeme(p, |p| p.char(',')))
}
