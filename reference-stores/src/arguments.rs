//! The rules about arguments that every store here applies alike, before it looks at any box.

use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::{Address, ClaimAsk, Millis};
use storeproof_contract::subject::{Reply, StoreError};

/// The deepest body that is kept, in levels of nesting. Reading and dropping a JSON value recurses,
/// so a limit has to exist; this one fits in a thread's default stack with room to spare.
const BODY_LEVELS_MAX: usize = 1_000;

/// The refusal of every operation on a store that was closed.
pub(crate) fn closed() -> StoreError {
    StoreError::refused("closed", "this store is closed")
}

/// The refusal of everything that needs a live lease and has none. It does not say which of owner,
/// id, box and time was wrong: a stranger is owed nothing more.
pub(crate) fn not_held() -> StoreError {
    StoreError::refused("lease_not_held", "the caller does not hold the live lease of this box")
}

/// Refuses an empty scope or handle. Every other Rust string is kept as it is.
pub(crate) fn check_names(of: &Address) -> Reply<()> {
    if of.scope.0.is_empty() {
        return Err(StoreError::refused("invalid_name", "the scope is empty"));
    }
    if of.handle.0.is_empty() {
        return Err(StoreError::refused("invalid_name", "the handle is empty"));
    }
    Ok(())
}

/// Refuses a body that is nested too deeply to be read back.
pub(crate) fn check_body(body: &Json) -> Reply<()> {
    let mut waiting = vec![(body, 1)];
    while let Some((value, level)) = waiting.pop() {
        if level > BODY_LEVELS_MAX && (value.is_array() || value.is_object()) {
            let message = format!("the body is nested deeper than {BODY_LEVELS_MAX} levels");
            return Err(StoreError::refused("too_large", message));
        }
        match value {
            Json::Array(items) => waiting.extend(items.iter().map(|item| (item, level + 1))),
            Json::Object(members) => waiting.extend(members.values().map(|v| (v, level + 1))),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }
    Ok(())
}

/// What a claim may deliver and until when its lease would live.
pub(crate) struct Terms {
    /// The moment from which the lease is dead.
    pub(crate) expiry: Millis,
    /// The most messages to deliver.
    pub(crate) most: usize,
}

/// The terms of a claim made at `now`, or why there can be none.
pub(crate) fn terms(ask: &ClaimAsk, now: Millis) -> Reply<Terms> {
    let expiry = expiry(now, ask.ttl_ms)?;
    let most = match ask.max {
        None => usize::MAX,
        Some(max) if max > 0 => usize::try_from(max).unwrap_or(usize::MAX),
        Some(max) => {
            let message = format!("max is {max}; it must be above 0");
            return Err(StoreError::refused("invalid_max", message));
        }
    };
    Ok(Terms { expiry, most })
}

/// `now + ttl_ms`, at most the end of time; refused where the ttl is not above 0.
pub(crate) fn expiry(now: Millis, ttl_ms: i64) -> Reply<Millis> {
    match u64::try_from(ttl_ms) {
        Ok(ttl_ms) if ttl_ms > 0 => Ok(Millis(now.0.saturating_add(ttl_ms))),
        Ok(_) | Err(_) => {
            let message = format!("ttlMs is {ttl_ms}; it must be above 0");
            Err(StoreError::refused("invalid_ttl", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lease_for_ever_ends_at_the_end_of_time() {
        assert_eq!(expiry(Millis(u64::MAX), i64::MAX), Ok(Millis(u64::MAX)));
        assert!(expiry(Millis(0), 0).is_err());
        assert!(expiry(Millis(0), i64::MIN).is_err());
    }

    #[test]
    fn the_depth_limit_counts_containers_and_nothing_else() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(check_body(&nested(BODY_LEVELS_MAX)), Ok(()));
        assert!(check_body(&nested(BODY_LEVELS_MAX + 1)).is_err());
    }
}
