//! The `Prefer` header (RFC 7240).
//!
//! Reference: PostgREST `src/library/PostgREST/ApiRequest/Preferences.hs`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    MergeDuplicates,
    IgnoreDuplicates,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    Representation,
    HeadersOnly,
    Minimal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Exact,
    Planned,
    Estimated,
}

impl Count {
    /// Whether rows are counted by a query.
    pub fn counts(self) -> bool {
        matches!(self, Count::Exact | Count::Estimated)
    }

    /// Whether the planner's estimate is used.
    pub fn explains(self) -> bool {
        matches!(self, Count::Planned | Count::Estimated)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tx {
    Commit,
    Rollback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Default,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    Strict,
    Lenient,
}

/// The client's preferences; the first value of each counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    pub resolution: Option<Resolution>,
    pub missing: Option<Missing>,
    pub returning: Option<Return>,
    pub count: Option<Count>,
    pub tx: Option<Tx>,
    pub handling: Option<Handling>,
    pub timezone: Option<String>,
    pub max_affected: Option<i64>,
    /// Unknown preferences; an error with `handling=strict`.
    pub unknown: Vec<String>,
}

/// Parses all `Prefer` headers of a request. `tx` is obeyed only if the configuration allows the override.
pub fn parse<'a>(headers: impl Iterator<Item = &'a str>, tx_override: bool) -> Preferences {
    let mut found = Preferences::default();
    let mut limits = Vec::new();
    for word in headers.flat_map(|header| header.split(',')).map(str::trim) {
        match word {
            "resolution=merge-duplicates" => first(&mut found.resolution, Resolution::MergeDuplicates),
            "resolution=ignore-duplicates" => first(&mut found.resolution, Resolution::IgnoreDuplicates),
            "return=representation" => first(&mut found.returning, Return::Representation),
            "return=headers-only" => first(&mut found.returning, Return::HeadersOnly),
            "return=minimal" => first(&mut found.returning, Return::Minimal),
            "count=exact" => first(&mut found.count, Count::Exact),
            "count=planned" => first(&mut found.count, Count::Planned),
            "count=estimated" => first(&mut found.count, Count::Estimated),
            "tx=commit" if tx_override => first(&mut found.tx, Tx::Commit),
            "tx=rollback" if tx_override => first(&mut found.tx, Tx::Rollback),
            "tx=commit" | "tx=rollback" => {}
            "missing=default" => first(&mut found.missing, Missing::Default),
            "missing=null" => first(&mut found.missing, Missing::Null),
            "handling=strict" => first(&mut found.handling, Handling::Strict),
            "handling=lenient" => first(&mut found.handling, Handling::Lenient),
            other => {
                if let Some(zone) = other.strip_prefix("timezone=") {
                    first(&mut found.timezone, zone.to_owned());
                } else if let Some(number) = other.strip_prefix("max-affected=") {
                    limits.push(super::range::read_integer(number));
                } else {
                    found.unknown.push(other.to_owned());
                }
            }
        }
    }
    // The first counts even if it is not a number.
    found.max_affected = limits.first().copied().flatten().map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    found
}

fn first<T>(slot: &mut Option<T>, value: T) {
    if slot.is_none() {
        *slot = Some(value);
    }
}

impl Preferences {
    pub fn is_strict(&self) -> bool {
        self.handling == Some(Handling::Strict)
    }

    /// The maximum of affected rows, if it is enforced.
    pub fn enforced_max_affected(&self) -> Option<i64> {
        self.max_affected.filter(|_| self.is_strict())
    }

    /// The value of `Preference-Applied`, in the reference's fixed order; `None` if nothing was applied.
    pub fn applied(&self) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |word: Option<&str>| words.extend(word.map(str::to_owned));
        add(self.resolution.map(|r| match r {
            Resolution::MergeDuplicates => "resolution=merge-duplicates",
            Resolution::IgnoreDuplicates => "resolution=ignore-duplicates",
        }));
        add(self.missing.map(|m| match m {
            Missing::Default => "missing=default",
            Missing::Null => "missing=null",
        }));
        add(self.returning.map(|r| match r {
            Return::Representation => "return=representation",
            Return::HeadersOnly => "return=headers-only",
            Return::Minimal => "return=minimal",
        }));
        add(self.count.map(|c| match c {
            Count::Exact => "count=exact",
            Count::Planned => "count=planned",
            Count::Estimated => "count=estimated",
        }));
        add(self.tx.map(|t| match t {
            Tx::Commit => "tx=commit",
            Tx::Rollback => "tx=rollback",
        }));
        add(self.handling.map(|h| match h {
            Handling::Strict => "handling=strict",
            Handling::Lenient => "handling=lenient",
        }));
        words.extend(self.timezone.as_ref().map(|zone| format!("timezone={zone}")));
        words.extend(self.enforced_max_affected().map(|n| format!("max-affected={n}")));
        (!words.is_empty()).then(|| words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_preference_of_a_kind_is_used_and_the_echo_has_a_fixed_order() {
        let cases = [
            ("count=exact,   return=representation", "return=representation, count=exact"),
            ("tx=commit, tx=rollback", "tx=commit"),
            ("max-affected=5", ""),
            ("max-affected=5, handling=strict", "handling=strict, max-affected=5"),
            ("max-affected=some, max-affected=5, handling=strict", "handling=strict"),
            (
                "timezone=UTC, missing=default, resolution=merge-duplicates",
                "resolution=merge-duplicates, missing=default, timezone=UTC",
            ),
        ];
        for (header, echo) in cases {
            assert_eq!(parse([header].into_iter(), true).applied().unwrap_or_default(), echo, "{header}");
        }
    }

    #[test]
    fn unknown_preferences_are_kept_and_tx_applies_only_if_allowed() {
        let found = parse(["count=none, params=single-object", "tx=rollback"].into_iter(), false);
        assert_eq!(found.unknown, ["count=none", "params=single-object"]);
        assert_eq!(found.tx, None);
    }
}
