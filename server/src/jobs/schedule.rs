//! The schedule of a pg_cron job: five cron fields in UTC, a nickname, or an interval in seconds.

use chrono::{DateTime, Datelike, Timelike, Utc};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Minutes, hours, days of the month, months and days of the week, a bit each.
    Fields {
        minutes: u64,
        hours: u32,
        days: u32,
        last_day: bool,
        months: u16,
        weekdays: u8,
        any_day: bool,
        any_weekday: bool,
        /// Whether the minute or the hour begins with a star.
        is_repeated: bool,
    },
    /// Seconds between the starts of two runs.
    Every(u32),
    /// Once after each start of PostgreSQL.
    AtStart,
}

impl Schedule {
    /// `None` if `cron.schedule` would refuse it.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_lowercase();
        let fields = match lower.as_str() {
            "@reboot" => return Some(Self::AtStart),
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        match fields[..] {
            [seconds, "second" | "seconds"] => seconds.parse().ok().filter(|n| (1..60).contains(n)).map(Self::Every),
            [minutes, hours, days, months, weekdays] => {
                let named = |text: &str, names: &[&str], first: u32| {
                    names
                        .iter()
                        .zip(first..)
                        .fold(text.to_owned(), |text, (name, n)| text.replace(name, &n.to_string()))
                };
                let months = named(
                    months,
                    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
                    1,
                );
                let weekdays = named(weekdays, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"], 0);
                let plain_days: Vec<&str> = days.split(',').filter(|item| *item != "$").collect();
                let week = bits(&weekdays, 0, 7)?;
                Some(Self::Fields {
                    minutes: bits(minutes, 0, 59)?,
                    hours: u32::try_from(bits(hours, 0, 23)?).ok()?,
                    days: if plain_days.is_empty() {
                        0
                    } else {
                        u32::try_from(bits(&plain_days.join(","), 1, 31)?).ok()?
                    },
                    last_day: days.split(',').any(|item| item == "$"),
                    months: u16::try_from(bits(&months, 1, 12)?).ok()?,
                    // Sunday is 0 and 7.
                    weekdays: u8::try_from((week | week >> 7) & 0x7f).ok()?,
                    any_day: days.starts_with('*'),
                    any_weekday: weekdays.starts_with('*'),
                    is_repeated: minutes.starts_with('*') || hours.starts_with('*'),
                })
            }
            _ => None,
        }
    }

    /// Whether it has cron fields and no fixed time: the minute or the hour is a star, or one with a step.
    pub fn is_repeated(&self) -> bool {
        matches!(self, Self::Fields { is_repeated: true, .. })
    }

    /// Whether it is due in the minute of `now`.
    pub fn is_due(&self, now: DateTime<Utc>) -> bool {
        let Self::Fields { minutes, hours, days, last_day, months, weekdays, any_day, any_weekday, .. } = self else {
            return false;
        };
        let is_last = (now + chrono::Duration::days(1)).day() == 1;
        let day = days >> now.day() & 1 == 1 || (*last_day && is_last);
        let weekday = weekdays >> now.weekday().num_days_from_sunday() & 1 == 1;
        // If both are restricted, one match is enough.
        let date = if *any_day || *any_weekday { day && weekday } else { day || weekday };
        minutes >> now.minute() & 1 == 1 && hours >> now.hour() & 1 == 1 && months >> now.month() & 1 == 1 && date
    }
}

/// The values of a field: lists of `*`, `a`, `a-b`, each with `/step`.
fn bits(field: &str, lowest: u32, highest: u32) -> Option<u64> {
    let mut bits = 0_u64;
    for item in field.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, step.parse::<usize>().ok().filter(|step| *step > 0)?),
            None => (item, 1),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (lowest, highest),
            Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
            None => {
                let value: u32 = range.parse().ok()?;
                (value, if item.contains('/') { highest } else { value })
            }
        };
        if from < lowest || to > highest || from > to {
            return None;
        }
        for value in (from..=to).step_by(step) {
            bits |= 1 << value;
        }
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).expect("a time").to_utc()
    }

    #[test]
    fn a_job_is_due_in_the_minutes_that_its_fields_name() {
        // 2026-11-23 is a Monday.
        for (schedule, time, is_due) in [
            ("* * * * *", "2026-11-23T10:07:00Z", true),
            ("*/5 * * * *", "2026-11-23T10:07:00Z", false),
            ("*/5 9-17 * * mon-fri", "2026-11-23T10:05:00Z", true),
            ("0 0 1 * *", "2026-12-01T00:00:00Z", true),
            ("0 0 13 * 1", "2026-11-23T00:00:00Z", true),
            ("0 0 13 * 1", "2026-11-24T00:00:00Z", false),
            ("0 0 $ * *", "2026-11-30T00:00:00Z", true),
            ("0 0 $ * *", "2026-11-29T00:00:00Z", false),
            ("0 0 * * 7", "2026-11-22T00:00:00Z", true),
            ("15,45 * * nov *", "2026-11-23T10:45:00Z", true),
            ("@daily", "2026-11-23T00:00:00Z", true),
            ("10 seconds", "2026-11-23T00:00:00Z", false),
        ] {
            assert_eq!(Schedule::parse(schedule).expect(schedule).is_due(at(time)), is_due, "{schedule} {time}");
        }
        assert_eq!(Schedule::parse(" 30 Seconds"), Some(Schedule::Every(30)));
    }

    #[test]
    fn a_star_in_the_minute_or_the_hour_makes_a_job_a_repeated_one() {
        for (schedule, is_repeated) in [
            ("* * * * *", true),
            ("*/5 9 * * *", true),
            ("0 */6 * * *", true),
            ("@hourly", true),
            ("@daily", false),
            ("0,30 9-17 * * *", false),
            ("0 9 * * *", false),
            ("10 seconds", false),
        ] {
            assert_eq!(Schedule::parse(schedule).expect(schedule).is_repeated(), is_repeated, "{schedule}");
        }
    }

    #[test]
    fn invalid_schedules_are_refused() {
        for text in ["", "* * * *", "60 * * * *", "* 24 * * *", "5-1 * * * *", "*/0 * * * *", "60 seconds", "x * * * *"]
        {
            assert_eq!(Schedule::parse(text), None, "{text}");
        }
    }
}
