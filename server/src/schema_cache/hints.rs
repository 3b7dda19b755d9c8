//! "Perhaps you meant …": names near the one that was not found.
//!
//! Similarity as in the reference (the Haskell package fuzzyset): candidates share three letters in a row (two,
//! if none does), and the fifty with the most in common are compared by edit distance. Computed only after a
//! failed look-up, so nothing is precomputed.

use std::collections::HashMap;

use super::{Name, SchemaCache};

/// In schemas with at least this many relations, none is suggested.
const MOST_TABLES: usize = 500;
/// Least similarity for relations and functions.
const NAME_SCORE: f64 = 0.75;
/// Least similarity for arguments and relationships.
const LOOSE_SCORE: f64 = 0.33;
/// How many candidates are compared by edit distance.
const COMPARED: usize = 50;
/// Nothing is suggested for a text longer than this, in bytes: comparing takes time and memory by its length, and the text is
/// the client's. Names have at most 63 bytes.
const LONGEST: usize = 1024;

/// For `PGRST205`.
pub fn similar_table(cache: &SchemaCache, schema: &str, name: &str) -> Option<String> {
    let names: Vec<&str> = cache.tables_in(schema).map(|table| &*table.name.name).collect();
    if names.len() >= MOST_TABLES {
        return None;
    }
    let (_, found) = nearest(&names, name, NAME_SCORE)?;
    Some(format!("Perhaps you meant the table '{schema}.{found}'"))
}

/// For `PGRST200`: another origin if that one has no relationships, else another target; `None` if both exist. Unlike
/// the reference, names only exposed relations.
pub fn similar_relation(cache: &SchemaCache, schema: &str, origin: &str, target: &str) -> Option<String> {
    let is_exposed = |schema: &str, name: &str| cache.find_table(schema, name).is_some();
    let targets: Vec<&str> = cache
        .relationships_of(schema, origin)
        .map(|r| r.target())
        .filter(|target| is_exposed(&target.schema, &target.name))
        .map(|target| &*target.name)
        .collect();
    let (wrong, (_, found)) = if targets.is_empty() {
        // Relations of other schemas count too if they lead into this one.
        let origins: Vec<&str> = cache
            .relationships
            .iter()
            .filter(|(_, _, relationships)| relationships.iter().any(|r| &**r.seen_from() == schema))
            .filter(|(schema, name, _)| is_exposed(schema, name))
            .map(|(_, name, _)| &**name)
            .collect();
        (origin, nearest(&origins, origin, LOOSE_SCORE)?)
    } else {
        (target, nearest(&targets, target, LOOSE_SCORE).filter(|(score, _)| *score < 1.0)?)
    };
    Some(format!("Perhaps you meant '{found}' instead of '{wrong}'."))
}

/// For `PGRST202`: another name, or other arguments if there are functions of that name.
pub fn similar_function(cache: &SchemaCache, schema: &str, name: &str, arguments: &[&str]) -> Option<String> {
    let overloads = cache.overloads(schema, name);
    let call = if overloads.is_empty() {
        let names: Vec<&str> = cache.functions.in_schema(schema).map(|(name, _)| &**name).collect();
        nearest(&names, name, NAME_SCORE)?.1.to_owned()
    } else if arguments.iter().map(|argument| argument.len()).sum::<usize>() > LONGEST {
        return None;
    } else {
        let lists: Vec<String> =
            overloads.iter().map(|f| argument_list(f.parameters.iter().map(|p| &p.name))).collect();
        let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
        let arguments: Vec<Name> = arguments.iter().map(|argument| Name::from(*argument)).collect();
        format!("{name}{}", nearest(&lists, &argument_list(arguments.iter()), LOOSE_SCORE)?.1)
    };
    Some(format!("Perhaps you meant to call the function {schema}.{call}"))
}

fn argument_list<'a>(names: impl Iterator<Item = &'a Name>) -> String {
    let mut names: Vec<&str> = names.map(|name| &**name).collect();
    names.sort_unstable();
    format!("({})", names.join(", "))
}

/// The entry most similar to `wanted`, with its similarity between 0 and 1 (1: equal ignoring case). None for a text longer
/// than [`LONGEST`].
fn nearest<'a>(entries: &[&'a str], wanted: &str, least: f64) -> Option<(f64, &'a str)> {
    if wanted.len() > LONGEST {
        return None;
    }
    let wanted = wanted.to_lowercase();
    let keys: Vec<(String, &str)> = entries.iter().map(|entry| (entry.to_lowercase(), *entry)).collect();
    if let Some((_, entry)) = keys.iter().find(|(key, _)| *key == wanted) {
        return Some((1.0, entry));
    }
    [3, 2].into_iter().find_map(|size| {
        let wanted_grams = grams(&wanted, size);
        let mut shared: Vec<(f64, &str, &str)> = keys
            .iter()
            .filter_map(|(key, entry)| {
                let score = cosine(&wanted_grams, &grams(key, size));
                (score > 0.0).then_some((score, key.as_str(), *entry))
            })
            .collect();
        shared.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let mut compared: Vec<(f64, &str)> =
            shared.into_iter().take(COMPARED).map(|(_, key, entry)| (likeness(&wanted, key), entry)).collect();
        compared.sort_by(|a, b| b.0.total_cmp(&a.0));
        compared.into_iter().next().filter(|(score, _)| *score >= least)
    })
}

/// How often each run of `size` characters occurs in the word between hyphens.
fn grams(text: &str, size: usize) -> HashMap<String, f64> {
    let letters = text.chars().filter(|c| c.is_alphanumeric() || c.is_whitespace() || *c == ',');
    let framed: Vec<char> = std::iter::once('-').chain(letters).chain(std::iter::once('-')).collect();
    let mut counts = HashMap::new();
    for gram in framed.windows(size) {
        *counts.entry(gram.iter().collect()).or_insert(0.0) += 1.0;
    }
    counts
}

fn cosine(a: &HashMap<String, f64>, b: &HashMap<String, f64>) -> f64 {
    let dot: f64 = a.iter().filter_map(|(gram, count)| b.get(gram).map(|other| count * other)).sum();
    let norm = |grams: &HashMap<String, f64>| grams.values().map(|count| count * count).sum::<f64>().sqrt();
    if dot == 0.0 { 0.0 } else { dot / (norm(a) * norm(b)) }
}

/// 1 minus the edit distance per character of the longer text.
fn likeness(a: &str, b: &str) -> f64 {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let longer = a.len().max(b.len());
    if longer == 0 {
        return 1.0;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    1.0 - row[b.len()] as f64 / longer as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_is_per_character_of_the_longer_text() {
        assert_eq!(likeness("kitten", "sitting"), 1.0 - 3.0 / 7.0);
        assert_eq!(likeness("same", "same"), 1.0);
        assert_eq!(likeness("", "abc"), 0.0);
    }

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let names = ["plants", "plantings", "gardens"];
        assert_eq!(nearest(&names, "plant", NAME_SCORE).map(|n| n.1), Some("plants"));
        assert_eq!(nearest(&names, "GARDENS", NAME_SCORE), Some((1.0, "gardens")));
        assert_eq!(nearest(&names, "orders", NAME_SCORE), None);
    }

    #[test]
    fn nothing_is_near_a_text_that_is_too_long_to_be_compared() {
        let entry = "ab".repeat(LONGEST / 2);
        let similar = format!("{}b", &entry[1..]);
        assert!(nearest(&[&entry], &similar, NAME_SCORE).is_some());
        assert_eq!(nearest(&[&entry], &format!("{similar}b"), LOOSE_SCORE), None);
    }

    #[test]
    fn shorter_runs_are_tried_when_no_longer_one_is_shared() {
        assert_eq!(nearest(&["axbc"], "aybc", LOOSE_SCORE).map(|n| n.1), Some("axbc"));
        assert_eq!(nearest(&["qqqq"], "aybc", LOOSE_SCORE), None);
    }
}
