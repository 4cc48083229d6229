//! The mailbox of `redis`: each operation is one script, which the server knows by its digest.

use super::{RedisStore, keys, server};
use crate::arguments::{check_body, check_names, expiry, not_held, terms};
use crate::body::message;
use crate::server::unknown;
use redis::{Connection, ErrorKind, FromRedisValue, RedisError, Script, ScriptInvocation, cmd};
use std::sync::LazyLock;
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, SEQ_MAX, Seq,
};
use storeproof_contract::subject::{Reply, StoreError};

/// How many expired leases one script clears away: the server does nothing else meanwhile.
const REAPED_MAX: usize = 1_000;

/// A script behind the common beginning.
macro_rules! script {
    ($file:literal) => {
        LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!($file))))
    };
}

static APPEND: LazyLock<Script> = script!("append.lua");
static CLAIM: LazyLock<Script> = script!("claim.lua");
static ACK: LazyLock<Script> = script!("ack.lua");
static RELEASE: LazyLock<Script> = script!("release.lua");
static RENEW: LazyLock<Script> = script!("renew.lua");
static PEEK: LazyLock<Script> = script!("peek.lua");
static REAP: LazyLock<Script> = script!("reap.lua");
static DROP: LazyLock<Script> = script!("drop.lua");

/// The seq of the first body, and the bodies behind each other.
type Run = (u64, Vec<Vec<u8>>);

impl MailboxStore for RedisStore {
    fn append(&mut self, to: &Address, body: &Json, _now: Millis) -> Reply<Seq> {
        let mut script = self.on(&APPEND, to)?;
        check_body(body)?;
        script.arg(body.to_string()).arg(SEQ_MAX);
        self.call(&script).map(Seq)
    }

    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let mut script = self.on(&CLAIM, from)?;
        let terms = terms(ask, now)?;
        script.arg(&ask.owner).arg(terms.expiry.0).arg(terms.most).arg(now.0).arg(&self.name);
        let Some((lease, first, bodies)) = self.call::<Option<(String, u64, _)>>(&script)? else {
            return Ok(None);
        };
        let messages = read(from, (first, bodies))?;
        Ok(Some(Delivery { lease: LeaseId(lease), messages }))
    }

    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let mut script = self.on(&ACK, of)?;
        script.arg(owner).arg(&lease.0).arg(up_to.0).arg(now.0);
        self.call::<Option<u64>>(&script)?.ok_or_else(not_held)
    }

    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let mut script = self.on(&RELEASE, of)?;
        script.arg(owner).arg(&lease.0).arg(now.0);
        self.call::<Option<u64>>(&script)?.map(|_| ()).ok_or_else(not_held)
    }

    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        let mut script = self.on(&RENEW, of)?;
        // Whoever does not hold the lease is told that first, whatever the ttl.
        let expiry = expiry(now, ttl_ms);
        let moment = expiry.as_ref().map_or(0, |expiry| expiry.0);
        script.arg(owner).arg(&lease.0).arg(moment).arg(now.0);
        let held = self.call::<Option<u64>>(&script)?;
        held.ok_or_else(not_held).and_then(|_| expiry.map(|_| ()))
    }

    fn peek(&mut self, of: &Address, _now: Millis) -> Reply<Vec<Message>> {
        let script = self.on(&PEEK, of)?;
        let run = self.call(&script)?;
        read(of, run)
    }

    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.link.check_open()?;
        let mut script = REAP.key(keys::storage(&self.name));
        script.key(keys::expiries(&self.name)).arg(now.0).arg(REAPED_MAX);
        // Each round clears away what it counts, so the rounds end.
        while self.call::<usize>(&script)? == REAPED_MAX {}
        Ok(())
    }

    fn drop_box(&mut self, of: &Address, _now: Millis) -> Reply<u64> {
        let script = self.on(&DROP, of)?;
        self.call(&script)
    }
}

impl RedisStore {
    /// The call of a script on the box of `of`.
    fn on(&self, script: &'static Script, of: &Address) -> Reply<ScriptInvocation<'static>> {
        self.link.check_open()?;
        check_names(of)?;
        let name = &self.name;
        let mut call = script.key(keys::storage(name));
        call.key(keys::expiries(name)).key(keys::of_box(name, of)).key(keys::pending(name, of));
        Ok(call)
    }

    /// Has one script carried out, once: where the server does not know it yet, it says so before it has
    /// done anything, and is told.
    fn call<T: FromRedisValue>(&mut self, script: &ScriptInvocation<'_>) -> Reply<T> {
        let (place, name) = (&self.place, &self.name);
        let stands = |connection: &mut Connection| cmd("PING").query::<()>(connection).is_ok();
        let connection = self.link.ready(stands, || server::attach(place, name))?;
        script.invoke(connection).map_err(|error| self.failed(&error))
    }

    fn failed(&mut self, error: &RedisError) -> StoreError {
        if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) {
            // The server answered: a script that fails does so before its first write.
            return StoreError::Broken(format!("Redis: {error}"));
        }
        self.link.lose();
        unknown("Redis", &error.to_string())
    }
}

fn read(of: &Address, (first, bodies): Run) -> Reply<Vec<Message>> {
    (first..).zip(&bodies).map(|(seq, body)| message(of, seq, body)).collect()
}
