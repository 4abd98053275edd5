//! Formatting of times, for the logs and for a person.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a time in UTC as `2026-11-22T02:03:04.567Z` (RFC 3339).
pub(super) fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    // Converts days to a date of the Gregorian calendar, in years that begin in March (H. Hinnant,
    // "chrono-compatible low-level date algorithms").
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * march + 2) / 5 + 1, if march < 10 { march + 3 } else { march - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Returns a time for a person who reads it at the time `now`, in the time zone of the machine:
/// `today 13:50`, or `2026-11-22 13:50`.
pub(super) fn for_person(time: SystemTime, now: SystemTime) -> String {
    let (time, now) = (local(time), local(now));
    let clock = format!("{:02}:{:02}", time.tm_hour, time.tm_min);
    if (time.tm_year, time.tm_yday) == (now.tm_year, now.tm_yday) {
        return format!("today {clock}");
    }
    format!("{:04}-{:02}-{:02} {clock}", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday)
}

/// Returns the date and the time of day in the time zone of the machine.
#[allow(unsafe_code)]
fn local(time: SystemTime) -> libc::tm {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = libc::time_t::try_from(since.as_secs()).unwrap_or_default();
    // SAFETY: a `tm` of zeros is valid, and `localtime_r` writes to nothing else.
    unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut parts);
        parts
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_person_reads_the_time_of_today_and_the_date_of_another_day() {
        let noon = UNIX_EPOCH + Duration::from_secs(1_798_804_800);
        let shown = for_person(noon, noon + Duration::from_secs(60));
        let clock = shown.strip_prefix("today ").expect(&shown);
        assert!(clock.len() == 5 && clock.ends_with(&format!(":{:02}", local(noon).tm_min)), "{shown}");
        let day = local(noon);
        let date = format!("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
        assert_eq!(for_person(noon, noon + Duration::from_secs(2 * 86_400)), format!("{date} {clock}"));
    }

    #[test]
    fn times_are_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_798_761_600, "2027-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
