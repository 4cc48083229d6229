//! Durations as people write them: `500ms`, `2s`, `1.5m`.

use std::time::Duration;

/// The longest duration that is taken, in seconds: a week.
const SPAN_S_MAX: f64 = 7.0 * 24.0 * 3600.0;

/// Reads a duration above zero.
///
/// # Errors
/// What is wrong with it and what would be right.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let found = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let Some((number, unit_s)) = found else {
        return Err("write a number with a unit: 500ms, 2s, 5m, 1h".to_owned());
    };
    match number.parse::<f64>() {
        Ok(n) if n > 0.0 && n * unit_s <= SPAN_S_MAX => Ok(Duration::from_secs_f64(n * unit_s)),
        Ok(_) => Err("a duration is above 0 and at most a week".to_owned()),
        Err(_) => Err(format!("{number:?} is no number; write 500ms, 2s, 5m, 1h")),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn spans_need_a_number_and_a_unit() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("1.5m"), Ok(Duration::from_secs(90)));
        for bad in ["", "5", "0s", "-1s", "s", "NaNs", "infs", "1e300h", "2 days"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
