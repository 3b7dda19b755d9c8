//! Durations in Go's syntax (`1h30m`, `250ms`, `-1.5h`), the form of the `GOTRUE_*` settings and of bans.

/// The nanoseconds of a duration text, possibly negative; `None` if it is invalid or does not fit 64 bits.
///
/// Units: `ns`, `us`, `µs`, `ms`, `s`, `m`, `h`; a lone `0` needs none (Go's `time.ParseDuration`).
pub fn parse_go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let unit_length = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_length);
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        if !whole.is_empty() {
            total = total.checked_add(whole.parse::<i128>().ok()?.checked_mul(scale)?)?;
        }
        if !fraction.is_empty() {
            let kept = &fraction[..fraction.len().min(15)];
            let divisor = 10_i128.pow(u32::try_from(kept.len()).ok()?);
            total = total.checked_add(kept.parse::<i128>().ok()? * scale / divisor)?;
        }
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

#[cfg(test)]
mod tests {
    use super::parse_go_duration;

    #[test]
    fn units_add_up_and_fractions_count() {
        assert_eq!(parse_go_duration("1h30m"), Some(5_400_000_000_000));
        assert_eq!(parse_go_duration("1.5h"), Some(5_400_000_000_000));
        assert_eq!(parse_go_duration("-250ms"), Some(-250_000_000));
        assert_eq!(parse_go_duration("1ns"), Some(1));
        assert_eq!(parse_go_duration("0"), Some(0));
    }

    #[test]
    fn a_number_without_a_unit_and_nonsense_are_refused() {
        for text in ["", "10", "1d", "h", "1h-1m", "1..5s", ".s", "9999999999999h"] {
            assert_eq!(parse_go_duration(text), None, "{text}");
        }
    }
}
