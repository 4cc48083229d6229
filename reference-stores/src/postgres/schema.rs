//! The connection and the schema: how a session behaves, how a storage is made, recognised and removed.

use super::{LOCK_WAIT_MS_MAX, NAMING};
use crate::Place;
use crate::server::{ANSWER_MS_MAX, CONNECT_MS_MAX};
use postgres::config::Host;
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};
use std::error::Error as _;
use std::time::Duration;
use storeproof_contract::json::Json;
use storeproof_contract::subject::{Reply, StoreError};

/// What the storage's own row calls it.
const KIND: &str = "storeproof mailbox";
/// The version of `schema.sql`; another one is refused, never altered.
const SCHEMA_VERSION: i32 = 1;
/// The oldest server, as it numbers itself: the first with `gen_random_uuid` of its own.
const SERVER_VERSION_MIN: i32 = 130_000;

const URL_FORM: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE";

const SCHEMA: &str = include_str!("schema.sql");

/// Takes away what `schema.sql` makes and nothing else: where anything else lies in the schema or hangs
/// on it, the last statements fail, and with them all.
const REMOVAL: &str = "
    DROP FUNCTION tombstone, drop_box, reap, peek, renew, release, ack, claim, append,
        end_lease, is_held, lease_id, made_box, locked_box RESTRICT;
    DROP TABLE messages, boxes, storage RESTRICT;
";

/// Connects to a server that can keep the store's promises.
pub(super) fn connect(place: &Place) -> Reply<Client> {
    let mut config: Config = NAMING.url(place)?.parse().map_err(|_| NAMING.bad_url(URL_FORM))?;
    config
        .application_name("storeproof")
        .connect_timeout(Duration::from_millis(CONNECT_MS_MAX))
        .tcp_user_timeout(Duration::from_millis(ANSWER_MS_MAX));
    let server = shown(&config);
    let mut client =
        config.connect(NoTls).map_err(|error| NAMING.unreachable(&server, &told(&error)))?;
    // Whatever the role or the database prefers: the functions rely on it.
    let session = format!(
        "SET default_transaction_isolation = 'read committed';
         SET default_transaction_read_only = off;
         SET synchronous_commit = on;
         SET lock_timeout = {LOCK_WAIT_MS_MAX};
         SET statement_timeout = {ANSWER_MS_MAX}"
    );
    client.batch_execute(&session).map_err(|error| failed("the session", &error))?;
    check_server(&mut client, &server)?;
    Ok(client)
}

/// The server's addresses; a URL has a password in it and is never shown.
fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(n, host)| {
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    });
    hosts.collect::<Vec<_>>().join(", ")
}

fn check_server(client: &mut Client, server: &str) -> Reply<()> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int, current_setting('fsync'),
                current_setting('full_page_writes'), pg_is_in_recovery(),
                has_database_privilege(current_database(), 'CREATE'), current_database()::text",
            &[],
        )
        .map_err(|error| failed("the server's settings", &error))?;
    let (version, database): (i32, String) = (row.get(0), row.get(5));
    let (fsync, full_pages): (&str, &str) = (row.get(1), row.get(2));
    let (is_standby, may_create): (bool, bool) = (row.get(3), row.get(4));
    let wrong = [
        (version < SERVER_VERSION_MIN, "it is older than version 13".to_owned()),
        (fsync != "on", "set fsync = on, so that a receipt is on disk".to_owned()),
        (full_pages != "on", "set full_page_writes = on, so that a torn page heals".to_owned()),
        (is_standby, "it is a standby that takes no writes".to_owned()),
        (!may_create, format!("the role may not CREATE schemas in the database {database}")),
    ];
    let wrong: Vec<String> =
        wrong.into_iter().filter(|(bad, _)| *bad).map(|(_, why)| why).collect();
    if wrong.is_empty() { Ok(()) } else { Err(NAMING.unfit(server, &wrong)) }
}

/// Makes a fresh storage in one transaction, and connects to it.
pub(super) fn create(place: &Place) -> Reply<(Client, String)> {
    let mut client = connect(place)?;
    let drawn = client
        .query_one("SELECT replace(gen_random_uuid()::text, '-', '')", &[])
        .map_err(|error| failed("the storage's name", &error))?;
    let name = NAMING.name(drawn.get(0))?;
    // Several statements in one message are one transaction.
    let statements = format!(
        "CREATE SCHEMA {name}; SET search_path = {name}; {SCHEMA}
         INSERT INTO storage VALUES (true, '{KIND}', {SCHEMA_VERSION}, '{name}')"
    );
    client.batch_execute(&statements).map_err(|error| failed("a fresh schema", &error))?;
    enter(&mut client, &name)?;
    // The same door for all: what was just made has to pass the checks of an attach.
    check(&mut client, &name)?;
    Ok((client, name))
}

/// Connects to a storage that is there, if it is one of ours.
pub(super) fn attach(place: &Place, name: &str) -> Reply<Client> {
    let mut client = connect(place)?;
    enter(&mut client, name)?;
    check(&mut client, name)?;
    Ok(client)
}

/// From here on the session means this schema, and bears its name in the server's list of sessions.
fn enter(client: &mut Client, name: &str) -> Reply<()> {
    client
        .batch_execute(&format!("SET search_path = {name}; SET application_name = {name}"))
        .map_err(|error| failed("the session", &error))
}

/// What makes a schema ours, or why it is none of ours.
fn check(client: &mut Client, name: &str) -> Reply<()> {
    match recognise(client, name)? {
        Found::Ours => Ok(()),
        Found::Nothing => Err(StoreError::Broken(format!("there is no schema {name}"))),
        Found::Other(why) => {
            Err(StoreError::Broken(format!("cannot use the schema {name}: {why}")))
        }
    }
}

enum Found {
    Ours,
    Nothing,
    Other(String),
}

fn recognise(client: &mut Client, name: &str) -> Reply<Found> {
    let found = client
        .query_one(
            "SELECT to_regnamespace($1) IS NULL, to_regclass($1 || '.storage') IS NULL",
            &[&name],
        )
        .map_err(|error| failed("the schema", &error))?;
    if found.get(0) {
        return Ok(Found::Nothing);
    }
    if found.get(1) {
        return Ok(Found::Other("it has no table of this store".to_owned()));
    }
    let marks = client
        .query("SELECT kind, version FROM storage WHERE name = $1", &[&name])
        .map_err(|error| failed("the schema's mark", &error))?;
    let Some(mark) = marks.first() else {
        return Ok(Found::Other("its mark is gone".to_owned()));
    };
    let read = |error: postgres::Error| failed("the schema's mark", &error);
    let kind: String = mark.try_get(0).map_err(read)?;
    let version: i32 = mark.try_get(1).map_err(read)?;
    Ok(match (kind.as_str(), version) {
        (KIND, SCHEMA_VERSION) => Found::Ours,
        (KIND, _) => {
            Found::Other(format!("its version is {version}, this build knows {SCHEMA_VERSION}"))
        }
        (_, _) => Found::Other(format!("it is a {kind:?}")),
    })
}

/// Removes the storage at `location`, if it really is one of ours and nothing else lies in it. One
/// that is gone already is fine.
pub(super) fn destroy(place: &Place, location: &Json) -> Reply<()> {
    let name = NAMING.named(location)?;
    let mut client = connect(place)?;
    enter(&mut client, &name)?;
    match recognise(&mut client, &name)? {
        Found::Nothing => return Ok(()),
        Found::Other(why) => return Err(NAMING.stranger(location, &why)),
        Found::Ours => {}
    }
    let removed = client.batch_execute(&format!("{REMOVAL} DROP SCHEMA {name} RESTRICT"));
    removed.map_err(|error| match error.code() {
        Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST) => {
            NAMING.stranger(location, &format!("more than a storage hangs on it: {}", told(&error)))
        }
        Some(_) | None => failed("the removal", &error),
    })
}

fn failed(what: &str, error: &postgres::Error) -> StoreError {
    StoreError::Broken(format!("PostgreSQL, {what}: {}", told(error)))
}

/// An error with its cause, which the crate keeps apart.
pub(super) fn told(error: &postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(db), _) => match db.detail() {
            Some(detail) => format!("{} ({detail})", db.message()),
            None => db.message().to_owned(),
        },
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
