//! Bodies as the bytes that a database keeps.

use serde::Deserialize as _;
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::{Address, Message, Seq};
use storeproof_contract::subject::{Reply, StoreError};

/// The message `seq` of a box, its body read from JSON text; a body that cannot be read is named and
/// never left out.
pub(crate) fn message(of: &Address, seq: u64, body: &[u8]) -> Reply<Message> {
    match read(body) {
        Ok(body) => Ok(Message { seq: Seq(seq), body }),
        Err(why) => {
            Err(StoreError::Broken(format!("message {seq} of {of} has no readable body: {why}")))
        }
    }
}

/// Bodies are limited in depth when they come in, so the reader sets no limit.
fn read(bytes: &[u8]) -> Result<Json, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    reader.disable_recursion_limit();
    let body = Json::deserialize(&mut reader)?;
    reader.end()?;
    Ok(body)
}
