//! The protocol as a JSON Schema, generated from the Rust types that read and write it.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use storeproof_contract::PROTOCOL;
use storeproof_contract::backend::Manifest;
use storeproof_contract::host::{
    AttachResult, InitializeParams, LocationParams, Nothing, OpenResult, StoreParams,
};
use storeproof_contract::mailbox::wire::{
    AckParams, AckResult, AppendParams, AppendResult, BoxParams, ClaimParams, ClaimResult,
    DropResult, LeaseParams, PeekResult, ReapParams, RenewParams,
};

/// The whole protocol: for each method, the schema of its params and of its result, over shared
/// definitions.
#[must_use]
pub fn protocol() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/$defs".into();
    let mut generator = settings.into_generator();
    let mut methods = Map::new();
    let g = &mut generator;
    add::<InitializeParams, Manifest>(&mut methods, g, "initialize");
    add::<Nothing, OpenResult>(&mut methods, g, "store/open");
    add::<LocationParams, AttachResult>(&mut methods, g, "store/attach");
    add::<StoreParams, Nothing>(&mut methods, g, "store/close");
    add::<LocationParams, Nothing>(&mut methods, g, "store/destroy");
    add::<AppendParams, AppendResult>(&mut methods, g, "mailbox/append");
    add::<ClaimParams, Option<ClaimResult>>(&mut methods, g, "mailbox/claim");
    add::<AckParams, AckResult>(&mut methods, g, "mailbox/ack");
    add::<LeaseParams, Nothing>(&mut methods, g, "mailbox/release");
    add::<RenewParams, Nothing>(&mut methods, g, "mailbox/renew");
    add::<BoxParams, PeekResult>(&mut methods, g, "mailbox/peek");
    add::<ReapParams, Nothing>(&mut methods, g, "mailbox/reap");
    add::<BoxParams, DropResult>(&mut methods, g, "mailbox/drop");
    add::<BoxParams, Nothing>(&mut methods, g, "recipient/tombstone");
    add::<Nothing, Nothing>(&mut methods, g, "shutdown");
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "storeproof adapter protocol",
        "version": PROTOCOL,
        "methods": methods,
        "$defs": generator.take_definitions(true),
    })
}

fn add<P: JsonSchema, R: JsonSchema>(
    methods: &mut Map<String, Value>,
    generator: &mut SchemaGenerator,
    method: &str,
) {
    let (params, result) = (generator.subschema_for::<P>(), generator.subschema_for::<R>());
    methods.insert(method.to_owned(), json!({ "params": params, "result": result }));
}
