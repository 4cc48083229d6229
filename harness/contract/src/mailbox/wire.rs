//! The mailbox on the wire: the protocol's member names, read and written in one place.

use super::store::{
    Address, ClaimAsk, Delivery, Handle, LeaseId, MailboxStore, Message, Millis, SEQ_MAX, Scope,
    Seq, Tombstones,
};
use crate::call::{INVALID_PARAMS, RpcError};
use crate::host::{answer, decode, missing};
use crate::json::Json;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Params of `mailbox/append`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppendParams {
    /// Scope of the recipient.
    pub scope: String,
    /// Handle of the recipient.
    pub handle: String,
    /// Any JSON.
    pub body: Json,
    /// Epoch milliseconds.
    pub now: u64,
}

/// Params of `mailbox/claim`. `ttlMs` and `max` are judged by the store, so any JSON gets this far.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClaimParams {
    /// Scope of the recipient.
    pub scope: String,
    /// Handle of the recipient.
    pub handle: String,
    /// Who claims.
    pub owner: String,
    /// Milliseconds, above 0.
    pub ttl_ms: Json,
    /// The most messages to deliver, above 0.
    #[serde(default)]
    pub max: Option<Json>,
    /// Epoch milliseconds.
    pub now: u64,
}

/// Params of `mailbox/ack`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AckParams {
    /// Scope of the recipient.
    pub scope: String,
    /// Handle of the recipient.
    pub handle: String,
    /// Who acks.
    pub owner: String,
    /// The lease to settle.
    pub lease: String,
    /// Delivered messages up to and including this seq go.
    pub up_to: u64,
    /// Epoch milliseconds.
    pub now: u64,
}

/// Params of `mailbox/release`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeaseParams {
    /// Scope of the recipient.
    pub scope: String,
    /// Handle of the recipient.
    pub handle: String,
    /// Who holds the lease.
    pub owner: String,
    /// The lease.
    pub lease: String,
    /// Epoch milliseconds.
    pub now: u64,
}

/// Params of `mailbox/renew`. `ttlMs` is judged by the store, so any JSON gets this far.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RenewParams {
    /// Scope of the recipient.
    pub scope: String,
    /// Handle of the recipient.
    pub handle: String,
    /// Who holds the lease.
    pub owner: String,
    /// The lease.
    pub lease: String,
    /// Milliseconds from `now`, above 0.
    pub ttl_ms: Json,
    /// Epoch milliseconds.
    pub now: u64,
}

/// Params of `mailbox/peek`, `mailbox/drop` and `recipient/tombstone`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoxParams {
    /// Scope of the recipient.
    pub scope: String,
    /// Handle of the recipient.
    pub handle: String,
    /// Epoch milliseconds.
    pub now: u64,
}

/// Params of `mailbox/reap`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReapParams {
    /// Epoch milliseconds.
    pub now: u64,
}

/// Result of `mailbox/append`. Any number passes the form; `mailbox/core/seq-increases` judges it.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppendResult {
    /// The receipt: an integer in 1..2^53-1.
    pub seq: Json,
}

/// A delivered message.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WireMessage {
    /// Its number.
    pub seq: Json,
    /// Its body.
    pub body: Json,
}

/// Result of `mailbox/claim`, where it is not `null`.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimResult {
    /// Lease id.
    pub lease: String,
    /// A non-empty prefix of the box, ascending.
    pub messages: Vec<WireMessage>,
}

/// Result of `mailbox/peek`.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeekResult {
    /// Everything not yet acked.
    pub messages: Vec<WireMessage>,
}

/// Result of `mailbox/ack`.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AckResult {
    /// How many messages this call removed; any number passes the form, the clauses judge it.
    pub acked: f64,
}

/// Result of `mailbox/drop`.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DropResult {
    /// How many messages this call removed; any number passes the form, the clauses judge it.
    pub dropped: f64,
}

/// Carries out one `mailbox/...` call on a Rust store.
pub(crate) fn dispatch(
    store: &mut dyn MailboxStore,
    method: &str,
    params: &Json,
) -> Result<Json, RpcError> {
    let outcome = match method {
        "mailbox/append" => {
            let p: AppendParams = decode(params)?;
            store
                .append(&address(p.scope, p.handle), &p.body, Millis(p.now))
                .map(|seq| json!({ "seq": seq.0 }))
        }
        "mailbox/claim" => {
            let p: ClaimParams = decode(params)?;
            let ask = ClaimAsk {
                owner: p.owner,
                ttl_ms: whole("invalid_ttl", "ttlMs", &p.ttl_ms)?,
                max: p.max.as_ref().map(|max| whole("invalid_max", "max", max)).transpose()?,
            };
            store.claim(&address(p.scope, p.handle), &ask, Millis(p.now)).map(delivery)
        }
        "mailbox/ack" => {
            let p: AckParams = decode(params)?;
            store
                .ack(
                    &address(p.scope, p.handle),
                    &p.owner,
                    &LeaseId(p.lease),
                    up_to(p.up_to)?,
                    Millis(p.now),
                )
                .map(|acked| json!({ "acked": acked }))
        }
        "mailbox/release" => {
            let p: LeaseParams = decode(params)?;
            store
                .release(&address(p.scope, p.handle), &p.owner, &LeaseId(p.lease), Millis(p.now))
                .map(|()| json!({}))
        }
        "mailbox/renew" => {
            let p: RenewParams = decode(params)?;
            let ttl_ms = whole("invalid_ttl", "ttlMs", &p.ttl_ms)?;
            store
                .renew(
                    &address(p.scope, p.handle),
                    &p.owner,
                    &LeaseId(p.lease),
                    ttl_ms,
                    Millis(p.now),
                )
                .map(|()| json!({}))
        }
        "mailbox/peek" => {
            let p: BoxParams = decode(params)?;
            store
                .peek(&address(p.scope, p.handle), Millis(p.now))
                .map(|found| json!({ "messages": messages(found) }))
        }
        "mailbox/reap" => {
            let p: ReapParams = decode(params)?;
            store.reap(Millis(p.now)).map(|()| json!({}))
        }
        "mailbox/drop" => {
            let p: BoxParams = decode(params)?;
            store
                .drop_box(&address(p.scope, p.handle), Millis(p.now))
                .map(|dropped| json!({ "dropped": dropped }))
        }
        _ => return Err(missing(method)),
    };
    outcome.map_err(|error| answer(method, error))
}

/// Carries out `recipient/tombstone` on a Rust store.
pub(crate) fn tombstone(hook: &mut dyn Tombstones, params: &Json) -> Result<Json, RpcError> {
    let p: BoxParams = decode(params)?;
    hook.tombstone(&address(p.scope, p.handle), Millis(p.now))
        .map(|()| json!({}))
        .map_err(|error| answer("recipient/tombstone", error))
}

fn address(scope: String, handle: String) -> Address {
    Address { scope: Scope(scope), handle: Handle(handle) }
}

fn up_to(value: u64) -> Result<Seq, RpcError> {
    if value <= SEQ_MAX {
        return Ok(Seq(value));
    }
    let message = format!("invalid params: upTo is {value}, above 2^53-1");
    Err(RpcError { code: INVALID_PARAMS, message, data: None })
}

/// A whole number, whatever its sign; anything else is refused with `reason` before the store sees it.
fn whole(reason: &'static str, member: &str, value: &Json) -> Result<i64, RpcError> {
    value.as_i64().ok_or_else(|| {
        RpcError::refused(
            reason,
            format!("{member} is {}, not a whole number", crate::json::excerpt(value)),
        )
    })
}

fn delivery(found: Option<Delivery>) -> Json {
    match found {
        None => Json::Null,
        Some(found) => json!({ "lease": found.lease.0, "messages": messages(found.messages) }),
    }
}

fn messages(found: Vec<Message>) -> Vec<Json> {
    found.into_iter().map(|m| json!({ "seq": m.seq.0, "body": m.body })).collect()
}
