//! Durations, limits and lengths as Supabase Auth reads them.

use std::time::Duration;

use crate::config::{Reader, parse_go_duration};

/// A duration in Go's syntax; a negative one counts as zero.
pub fn duration(reader: &mut Reader<'_>, names: &[&'static str], default: Duration) -> Duration {
    let Some((name, value)) = reader.find(names) else { return default };
    match parse_go_duration(value.trim()) {
        Some(nanos) => Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)),
        None => {
            reader.problem(format!("{name} must be a duration like 1h30m"));
            default
        }
    }
}

/// A pause between messages: unset or zero is a minute.
pub fn frequency(reader: &mut Reader<'_>, name: &'static str) -> Duration {
    let minute = Duration::from_secs(60);
    let value = duration(reader, &[name], minute);
    if value.is_zero() { minute } else { value }
}

/// A limit that must be positive when it is set.
pub fn limit(reader: &mut Reader<'_>, name: &'static str) -> Option<Duration> {
    reader.find(&[name])?;
    let value = duration(reader, &[name], Duration::ZERO);
    if value.is_zero() {
        reader.problem(format!("{name} must be a positive duration"));
    }
    Some(value)
}

/// Whole seconds; zero means the default.
pub fn seconds_unless_zero(reader: &mut Reader<'_>, name: &'static str, default: u64) -> Duration {
    let value = reader.seconds_or(&[name], Duration::from_secs(default));
    if value.is_zero() { Duration::from_secs(default) } else { value }
}

/// Digits of a code, 6 to 10; 6 for anything else.
pub fn otp_length(reader: &mut Reader<'_>, name: &'static str) -> usize {
    let length = reader.parse_or(&[name], "a number of digits", 6_usize);
    if (6..=10).contains(&length) { length } else { 6 }
}
