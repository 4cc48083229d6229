//! The connection and the storage: what the server must be set to, and how a storage is made,
//! recognised and removed.

use super::{NAMING, keys};
use crate::Place;
use crate::server::{ANSWER_MS_MAX, CONNECT_MS_MAX};
use redis::{Client, Connection, FromRedisValue, RedisError, cmd};
use std::time::Duration;
use storeproof_contract::json::Json;
use storeproof_contract::subject::{Reply, StoreError};

/// What the storage's own hash calls it; `common.lua` asks for the same.
pub(super) const KIND: &str = "storeproof-mailbox/1";
/// What it is called while its keys are taken away, so that no other handle adds one meanwhile.
const DYING: &str = "storeproof-mailbox/destroyed";
/// The URL's form; `rediss` would be an encrypted connection.
const URL_FORM: &str = "redis://USER:PASSWORD@HOST:PORT/DATABASE, each part but the host optional";
/// The random bits of a storage's name.
const NAME_BITS: u32 = 128;
/// How many keys a step of the removal looks at, about.
const KEYS_A_STEP: u32 = 1_000;

/// Connects to a server that can keep the store's promises.
pub(super) fn connect(place: &Place) -> Reply<Connection> {
    let client = Client::open(NAMING.url(place)?).map_err(|_| NAMING.bad_url(URL_FORM))?;
    let server = client.get_connection_info().addr().to_string();
    let mut connection = client
        .get_connection_with_timeout(Duration::from_millis(CONNECT_MS_MAX))
        .map_err(|error| NAMING.unreachable(&server, &error.to_string()))?;
    let patience = Some(Duration::from_millis(ANSWER_MS_MAX));
    connection
        .set_read_timeout(patience)
        .and_then(|()| connection.set_write_timeout(patience))
        .map_err(|error| failed("the connection", &error))?;
    check_server(&mut connection, &server)?;
    Ok(connection)
}

fn check_server(connection: &mut Connection, server: &str) -> Reply<()> {
    let mut wrong = Vec::new();
    for (setting, wanted, why) in [
        ("appendonly", "yes", "so that there is a log"),
        ("appendfsync", "always", "so that a receipt is on disk"),
        ("no-appendfsync-on-rewrite", "no", "so that it is on disk during a rewrite, too"),
    ] {
        let is = setting_of(connection, server, setting)?;
        if is != wanted {
            wrong.push(format!("set {setting} {wanted}, {why} (it is {is:?})"));
        }
    }
    let policy = setting_of(connection, server, "maxmemory-policy")?;
    // Keys of the store never have a time to live, so the policies about those spare it.
    if policy != "noeviction" && !policy.starts_with("volatile-") {
        wrong.push(format!(
            "set maxmemory-policy noeviction, so that no mail is evicted (it is {policy:?})"
        ));
    }
    if wrong.is_empty() { Ok(()) } else { Err(NAMING.unfit(server, &wrong)) }
}

fn setting_of(connection: &mut Connection, server: &str, setting: &str) -> Reply<String> {
    let answered: Result<Vec<String>, _> = cmd("CONFIG").arg("GET").arg(setting).query(connection);
    match answered {
        Ok(answer) => Ok(answer.into_iter().nth(1).unwrap_or_default()),
        Err(error) => {
            Err(NAMING.unfit(server, &[format!("it does not tell its setting {setting}: {error}")]))
        }
    }
}

/// Makes a fresh storage, and connects to it.
pub(super) fn create(place: &Place) -> Reply<(Connection, String)> {
    let mut connection = connect(place)?;
    let drawn: String = ask(&mut connection, "a name", cmd("ACL").arg("GENPASS").arg(NAME_BITS))?;
    let name = NAMING.name(&drawn)?;
    let key = keys::storage(&name);
    let is_new: bool =
        ask(&mut connection, "a fresh storage", cmd("HSETNX").arg(key).arg("kind").arg(KIND))?;
    if !is_new {
        return Err(StoreError::Broken(format!("the server drew a name twice: {name}")));
    }
    enter(&mut connection, &name)?;
    Ok((connection, name))
}

/// Connects to a storage that is there, if it is one of ours.
pub(super) fn attach(place: &Place, name: &str) -> Reply<Connection> {
    let mut connection = connect(place)?;
    match kind_of(&mut connection, name)?.as_deref() {
        Some(KIND) => enter(&mut connection, name).map(|()| connection),
        Some(other) => Err(StoreError::Broken(format!("the storage {name} is a {other:?}"))),
        None => Err(StoreError::Broken(format!("there is no storage {name}"))),
    }
}

/// From here on the connection bears the storage's name in the server's list of clients.
fn enter(connection: &mut Connection, name: &str) -> Reply<()> {
    ask(connection, "the connection", cmd("CLIENT").arg("SETNAME").arg(name))
}

fn kind_of(connection: &mut Connection, name: &str) -> Reply<Option<String>> {
    ask(connection, "the storage", cmd("HGET").arg(keys::storage(name)).arg("kind"))
}

/// Removes the storage at `location`, if it really is one of ours. One that is gone already is fine.
/// Its mark goes last: a removal that was cut short can be done again.
pub(super) fn destroy(place: &Place, location: &Json) -> Reply<()> {
    let name = NAMING.named(location)?;
    let mut connection = connect(place)?;
    match kind_of(&mut connection, &name)?.as_deref() {
        None => return Ok(()),
        Some(KIND | DYING) => {}
        Some(other) => {
            return Err(NAMING.stranger(location, &format!("it is a {other:?}")));
        }
    }
    let mark = keys::storage(&name);
    ask::<()>(&mut connection, "the removal", cmd("HSET").arg(&mark).arg("kind").arg(DYING))?;
    let mut cursor = 0_u64;
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(keys::all(&name)).arg("COUNT").arg(KEYS_A_STEP);
        let (next, mut found): (u64, Vec<Vec<u8>>) = ask(&mut connection, "the removal", &scan)?;
        found.retain(|key| key != mark.as_bytes());
        if !found.is_empty() {
            ask::<()>(&mut connection, "the removal", cmd("UNLINK").arg(found))?;
        }
        if next == 0 {
            break;
        }
        cursor = next;
    }
    ask(&mut connection, "the removal", cmd("UNLINK").arg(&mark))
}

fn ask<T: FromRedisValue>(
    connection: &mut Connection,
    what: &str,
    command: &redis::Cmd,
) -> Reply<T> {
    command.query(connection).map_err(|error| failed(what, &error))
}

fn failed(what: &str, error: &RedisError) -> StoreError {
    StoreError::Broken(format!("Redis, {what}: {error}"))
}
