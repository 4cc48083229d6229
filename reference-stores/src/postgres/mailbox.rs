//! The mailbox of `postgres`: each operation is one call of a function of `schema.sql`.

use super::{LOCK_WAIT_MS_MAX, PostgresStore, schema};
use crate::arguments::{check_body, check_names, expiry, not_held, terms};
use crate::body::message;
use crate::server::{ANSWER_MS_MAX, unknown};
use postgres::error::{DbError, Severity, SqlState};
use postgres::types::{FromSql, ToSql, Type};
use postgres::{Client, Row};
use std::time::Duration;
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, SEQ_MAX, Seq, Tombstones,
};
use storeproof_contract::subject::{Reply, StoreError};

/// The reason code of an append to a tombstoned recipient.
const TOMBSTONED: &str = "recipient_deleted";

/// An argument of a statement. Its type is sent along, so that a call is one round trip.
enum Argument<'a> {
    Bytes(&'a [u8]),
    Number(i64),
}

impl<'a> Argument<'a> {
    fn text(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }

    /// What is above the server's greatest integer becomes that: for a lease this is the end of time,
    /// 292 million years from now.
    fn number(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Bytes(bytes) => (bytes, Type::BYTEA),
            Self::Number(number) => (number, Type::INT8),
        }
    }
}

impl MailboxStore for PostgresStore {
    fn append(&mut self, to: &Address, body: &Json, _now: Millis) -> Reply<Seq> {
        self.check(to)?;
        check_body(body)?;
        let body = body.to_string();
        let row = self.one(
            "SELECT append($1, $2, $3, $4)",
            &[scope(to), handle(to), Argument::text(&body), Argument::number(SEQ_MAX)],
        )?;
        match get::<Option<i64>>(&row, 0)? {
            Some(seq) => Ok(Seq(seq.cast_unsigned())),
            None => Err(StoreError::refused(TOMBSTONED, "the recipient is being deleted")),
        }
    }

    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.check(from)?;
        let terms = terms(ask, now)?;
        let most = i64::try_from(terms.most).unwrap_or(i64::MAX);
        let rows = self.call(
            "SELECT lease, seq, body FROM claim($1, $2, $3, $4, $5, $6)",
            &[
                scope(from),
                handle(from),
                Argument::text(&ask.owner),
                Argument::number(terms.expiry.0),
                Argument::Number(most),
                Argument::number(now.0),
            ],
        )?;
        let Some(first) = rows.first() else { return Ok(None) };
        let lease = LeaseId(get(first, 0)?);
        let messages = rows.iter().map(|row| read(from, row, 1)).collect::<Reply<_>>()?;
        Ok(Some(Delivery { lease, messages }))
    }

    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        self.check(of)?;
        let row = self.one(
            "SELECT ack($1, $2, $3, $4, $5, $6)",
            &[
                scope(of),
                handle(of),
                Argument::text(owner),
                Argument::text(&lease.0),
                Argument::number(up_to.0),
                Argument::number(now.0),
            ],
        )?;
        get::<Option<i64>>(&row, 0)?.map(i64::cast_unsigned).ok_or_else(not_held)
    }

    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.check(of)?;
        let row = self.one(
            "SELECT release($1, $2, $3, $4, $5)",
            &[
                scope(of),
                handle(of),
                Argument::text(owner),
                Argument::text(&lease.0),
                Argument::number(now.0),
            ],
        )?;
        if get(&row, 0)? { Ok(()) } else { Err(not_held()) }
    }

    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        self.check(of)?;
        // Whoever does not hold the lease is told that first, whatever the ttl.
        let expiry = expiry(now, ttl_ms);
        let moment = expiry.as_ref().map_or(0, |expiry| expiry.0);
        let row = self.one(
            "SELECT renew($1, $2, $3, $4, $5, $6)",
            &[
                scope(of),
                handle(of),
                Argument::text(owner),
                Argument::text(&lease.0),
                Argument::number(moment),
                Argument::number(now.0),
            ],
        )?;
        if get(&row, 0)? { expiry.map(|_| ()) } else { Err(not_held()) }
    }

    fn peek(&mut self, of: &Address, _now: Millis) -> Reply<Vec<Message>> {
        self.check(of)?;
        let rows = self.call("SELECT seq, body FROM peek($1, $2)", &[scope(of), handle(of)])?;
        rows.iter().map(|row| read(of, row, 0)).collect()
    }

    fn reap(&mut self, now: Millis) -> Reply<()> {
        // The rows of acked messages are the server's to clear away, and it does so by itself.
        self.one("SELECT reap($1)", &[Argument::number(now.0)]).map(|_| ())
    }

    fn drop_box(&mut self, of: &Address, _now: Millis) -> Reply<u64> {
        self.check(of)?;
        let row = self.one("SELECT drop_box($1, $2)", &[scope(of), handle(of)])?;
        get::<i64>(&row, 0).map(i64::cast_unsigned)
    }
}

impl Tombstones for PostgresStore {
    fn tombstone(&mut self, of: &Address, _now: Millis) -> Reply<()> {
        self.check(of)?;
        self.one("SELECT tombstone($1, $2)", &[scope(of), handle(of)]).map(|_| ())
    }
}

impl PostgresStore {
    fn check(&self, of: &Address) -> Reply<()> {
        self.link.check_open()?;
        check_names(of)
    }

    /// Sends one statement, once; every row of its answer.
    fn call(&mut self, statement: &str, arguments: &[Argument<'_>]) -> Reply<Vec<Row>> {
        let (place, name) = (&self.place, &self.name);
        let stands =
            |client: &mut Client| client.is_valid(Duration::from_millis(ANSWER_MS_MAX)).is_ok();
        let client = self.link.ready(stands, || schema::attach(place, name))?;
        let arguments: Vec<_> = arguments.iter().map(Argument::typed).collect();
        client.query_typed(statement, &arguments).map_err(|error| self.failed(&error))
    }

    /// The same for a statement that answers one row.
    fn one(&mut self, statement: &str, arguments: &[Argument<'_>]) -> Reply<Row> {
        let row = self.call(statement, arguments)?.into_iter().next();
        row.ok_or_else(|| StoreError::Broken(format!("PostgreSQL answered no row to {statement}")))
    }

    fn failed(&mut self, error: &postgres::Error) -> StoreError {
        let told = schema::told(error);
        let severity = error.as_db_error().and_then(DbError::parsed_severity);
        match (severity, error.code()) {
            (Some(Severity::Error), Some(&SqlState::LOCK_NOT_AVAILABLE)) => {
                StoreError::Broken(format!(
                    "PostgreSQL: another transaction held the box for {LOCK_WAIT_MS_MAX} ms; nothing \
                     was changed ({told})"
                ))
            }
            // The statement failed, and the server took back what it had changed.
            (Some(Severity::Error), Some(code)) => {
                StoreError::Broken(format!("PostgreSQL: {told} ({})", code.code()))
            }
            // The session ended, perhaps between the commit and its answer.
            (_, _) => {
                self.link.lose();
                unknown("PostgreSQL", &told)
            }
        }
    }
}

fn scope(of: &Address) -> Argument<'_> {
    Argument::text(&of.scope.0)
}

fn handle(of: &Address) -> Argument<'_> {
    Argument::text(&of.handle.0)
}

/// The message whose seq stands in column `at` and whose body in the next.
fn read(of: &Address, row: &Row, at: usize) -> Reply<Message> {
    let seq: i64 = get(row, at)?;
    message(of, seq.cast_unsigned(), get(row, at + 1)?)
}

/// A column's value; a row of another form is a breakdown.
fn get<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> Reply<T> {
    row.try_get(at)
        .map_err(|error| StoreError::Broken(format!("PostgreSQL: {}", schema::told(&error))))
}
