//! Generated pages are current.

use std::path::Path;

#[test]
fn the_protocol_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol.schema.json");
    let schema = format!("{:#}\n", storeproof::schema::protocol());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &schema).expect("docs/ can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == schema, "docs/protocol.schema.json is not current: run scripts/regenerate");
}
