//! Numbers and names as people read them.

#![forbid(unsafe_code)]

use std::ops::Range;

/// `22,445`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 sample`, `22,445 samples`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `6.71 MB`: decimal units, three digits.
pub(crate) fn bytes(number: u64) -> String {
    if number < 1000 {
        return counted(number, "byte");
    }
    let mut value = number as f64;
    let mut unit = "";
    for next in ["kB", "MB", "GB", "TB", "PB", "EB"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    let digits = usize::from(value < 99.95) + usize::from(value < 9.995);
    format!("{value:.digits$} {unit}")
}

/// `12.3 %` of a whole.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    format!("{:.1} %", 100.0 * part as f64 / whole as f64)
}

/// `1.24 M`: a rate or number of events, three digits.
pub(crate) fn metric(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 999.5e6 => (v / 1e9, " G"),
        v if v >= 999.5e3 => (v / 1e6, " M"),
        v if v >= 999.5 => (v / 1e3, " k"),
        v => (v, ""),
    };
    let digits =
        if unit.is_empty() { 0 } else { usize::from(value < 99.95) + usize::from(value < 9.995) };
    format!("{value:.digits$}{unit}")
}

/// `3.2 ms`.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-3 => format!("{:.0} µs", v * 1e6),
        v if v < 1.0 => format!("{:.1} ms", v * 1e3),
        v => format!("{v:.1} s"),
    }
}

/// `3, 7..9`, cut after some.
pub(crate) fn ranges(ranges: &[Range<u64>], most: usize) -> String {
    let mut parts: Vec<String> = ranges
        .iter()
        .take(most)
        .map(|range| match range.end - range.start {
            1 => range.start.to_string(),
            _ => format!("{}..{}", range.start, range.end),
        })
        .collect();
    if ranges.len() > most {
        parts.push(format!("and {} more ranges", ranges.len() - most));
    }
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

/// Text with what would disturb a terminal escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Direction marks reorder what stands around them.
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "sample"), "1 sample");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(6_712_000), "6.71 MB");
        assert_eq!(bytes(u64::MAX), "18.4 EB");
        assert_eq!(metric(12.4), "12");
        assert_eq!(metric(1_240_000.0), "1.24 M");
        assert_eq!(seconds(0.0032), "3.2 ms");
        assert_eq!(share(1, 8), "12.5 %");
        assert_eq!(share(0, 0), "-");
    }

    #[test]
    fn ranges_are_cut() {
        assert_eq!(ranges(&[3..4, 7..9], 5), "3, 7..9");
        assert_eq!(ranges(&[3..4, 7..9, 11..12], 1), "3, and 2 more ranges");
        assert_eq!(ranges(&[], 1), "none");
    }

    #[test]
    fn terminals_are_not_disturbed() {
        assert_eq!(printable("CCO\u{1b}[31m"), "CCO\\u{1b}[31m");
        assert_eq!(printable("größe ✓"), "größe ✓");
    }
}
