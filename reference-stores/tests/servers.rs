//! What only stores behind a server can get wrong: lost connections, settings, strangers in the same
//! database, and many clients at once.
#![cfg(all(feature = "postgres", feature = "redis"))]

mod common;

use common::{Fixture, Handle, NOW, at, breakdown, fixture, refusal};
use postgres::NoTls;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use storeproof_contract::mailbox::store::{Address, LeaseId, Seq};
use storeproof_contract::subject::StoreError;
use storeproof_reference_stores::{Place, bundled};

const SERVERS: &[&str] = &["postgres", "redis"];
/// Longer than a connection may rest before it is asked whether it stands.
const REST: Duration = Duration::from_millis(150);
/// How long a test waits for what has to come.
const DRAIN_MAX: Duration = Duration::from_secs(60);

fn url(name: &str) -> String {
    let variable = bundled(name).and_then(|store| store.url_variable).unwrap();
    std::env::var(variable).unwrap()
}

/// A client of our own, beside the store's.
fn psql() -> postgres::Client {
    postgres::Client::connect(&url("postgres"), NoTls).unwrap()
}

fn redis_cli() -> redis::Connection {
    redis::Client::open(url("redis")).unwrap().get_connection().unwrap()
}

/// The name of the fixture's storage.
fn name(f: &Fixture) -> String {
    let member = if f.location["store"] == "postgres" { "schema" } else { "storage" };
    f.location[member].as_str().unwrap().to_owned()
}

/// Runs a statement in the schema of a storage, behind the store's back.
fn meddle(schema: &str, statement: &str) {
    psql().batch_execute(&format!("SET search_path = {schema}; {statement}")).unwrap();
}

/// Has the server hang up on every handle of the storage.
fn hang_up(f: &Fixture) {
    if f.location["store"] == "postgres" {
        let statement = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
            WHERE application_name = $1";
        let ended: i64 = psql().query_one(statement, &[&name(f)]).unwrap().get(0);
        assert!(ended > 0);
        return;
    }
    let mut cli = redis_cli();
    let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut cli).unwrap();
    let named = format!(" name={} ", name(f));
    let ids = list
        .lines()
        .filter(|line| line.contains(&named))
        .map(|line| line.split(' ').find_map(|word| word.strip_prefix("id=")).unwrap().to_owned());
    let ids: Vec<String> = ids.collect();
    assert!(!ids.is_empty());
    for id in ids {
        redis::cmd("CLIENT").arg("KILL").arg("ID").arg(id).query::<()>(&mut cli).unwrap();
    }
}

#[test]
fn racing_appends_and_claims_lose_nothing_and_deliver_nothing_twice() {
    const CLIENTS: usize = 4;
    const APPENDS: usize = 40;
    for store in common::running(SERVERS) {
        let (mut f, mut first) = fixture(store);
        let mut handles: Vec<Handle> = (0..2 * CLIENTS).map(|_| f.attach()).collect();
        let (appenders, claimers) = handles.split_at_mut(CLIENTS);
        let acked = &AtomicUsize::new(0);
        let (sent, got) = std::thread::scope(|scope| {
            let appending: Vec<_> = appenders
                .iter_mut()
                .enumerate()
                .map(|(n, handle)| {
                    scope.spawn(move || {
                        let bodies = (0..APPENDS).map(|i| json!([n, i]));
                        bodies.map(|body| (handle.append("alpha", body.clone()), body)).collect()
                    })
                })
                .collect();
            let claiming: Vec<_> = claimers
                .iter_mut()
                .enumerate()
                .map(|(n, handle)| scope.spawn(move || drain(handle, n, acked, CLIENTS * APPENDS)))
                .collect();
            let sent: Vec<Vec<(u64, Value)>> =
                appending.into_iter().map(|thread| thread.join().unwrap()).collect();
            let got: Vec<Vec<(u64, Value)>> =
                claiming.into_iter().map(|thread| thread.join().unwrap()).collect();
            (sent, got)
        });
        for run in sent.iter().chain(&got) {
            assert!(run.is_sorted_by(|a, b| a.0 < b.0), "{store}: increasing for each client");
        }
        let sent: Vec<(u64, Value)> = sent.into_iter().flatten().collect();
        let receipts: BTreeMap<u64, Value> = sent.iter().cloned().collect();
        assert_eq!(receipts.len(), CLIENTS * APPENDS, "{store}: a seq was minted twice");
        let mut got: Vec<(u64, Value)> = got.into_iter().flatten().collect();
        got.sort_by_key(|(seq, _)| *seq);
        assert_eq!(got, receipts.into_iter().collect::<Vec<_>>(), "{store}");
        assert_eq!(first.peek("alpha"), vec![], "{store}");
    }
}

/// Claims and acks until all clients together have acked `all` messages; what this client acked.
fn drain(handle: &mut Handle, n: usize, acked: &AtomicUsize, all: usize) -> Vec<(u64, Value)> {
    let (owner, began) = (format!("owner {n}"), Instant::now());
    let mut got = Vec::new();
    while acked.load(Ordering::Relaxed) < all {
        assert!(began.elapsed() < DRAIN_MAX, "{} of {all} came", acked.load(Ordering::Relaxed));
        let Some(delivery) = handle.claim("alpha", &owner) else { continue };
        let last = delivery.messages.last().unwrap().seq.0;
        let went = handle.ack("alpha", &owner, &delivery.lease, last);
        assert_eq!(went, delivery.messages.len() as u64);
        acked.fetch_add(delivery.messages.len(), Ordering::Relaxed);
        got.extend(common::pairs(delivery.messages));
    }
    got
}

#[test]
fn many_first_appends_to_one_box_make_one_box() {
    for store in common::running(SERVERS) {
        let (mut f, _first) = fixture(store);
        let mut handles: Vec<Handle> = (0..6).map(|_| f.attach()).collect();
        for round in 0..10 {
            let of = format!("box{round}");
            let mut seqs: Vec<u64> = std::thread::scope(|scope| {
                let threads: Vec<_> = handles
                    .iter_mut()
                    .map(|handle| scope.spawn(|| handle.append(&of, round)))
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            seqs.sort_unstable();
            assert_eq!(seqs, [1, 2, 3, 4, 5, 6], "{store}");
        }
    }
}

#[test]
fn names_owners_and_leases_may_hold_any_character() {
    for store in common::running(SERVERS) {
        let (_f, mut handle) = fixture(store);
        let (of, twin) = (Address::new("s\0", "\0h\0"), Address::new("s", "\0\0h\0"));
        let (mailbox, owner) = (handle.mailbox(), "o\0\u{2028}'\"");
        mailbox.append(&of, &json!("\0"), NOW).unwrap();
        let held = mailbox.claim(&of, &common::ask(owner), NOW).unwrap().unwrap();
        assert_eq!(common::pairs(held.messages), [(1, json!("\0"))]);
        assert_eq!(mailbox.claim(&twin, &common::ask(owner), NOW), Ok(None), "{store}");
        for stranger in ["", "\0", "' OR 1=1 --", &format!("{}\0", held.lease.0)] {
            let lease = LeaseId(stranger.to_owned());
            assert_eq!(refusal(mailbox.ack(&of, owner, &lease, Seq(1), NOW)), "lease_not_held");
            assert_eq!(refusal(mailbox.release(&of, owner, &lease, NOW)), "lease_not_held");
            assert_eq!(refusal(mailbox.renew(&of, owner, &lease, 1, NOW)), "lease_not_held");
        }
        assert_eq!(mailbox.ack(&of, owner, &held.lease, Seq(1), NOW), Ok(1), "{store}");
    }
}

#[test]
fn seqs_and_lease_counts_stay_exact_up_to_the_last_one() {
    const LAST: u64 = (1 << 53) - 1;
    for store in common::running(SERVERS) {
        let (f, mut handle) = fixture(store);
        handle.append("alpha", 1);
        handle.ack_all("alpha");
        let ours = name(&f);
        if store == "postgres" {
            meddle(&ours, &format!("UPDATE boxes SET last_seq = {}", LAST - 3));
        } else {
            let key = format!("{ours}:box:7:defaultalpha");
            let was = (LAST - 3).to_string();
            redis::cmd("HSET")
                .arg(key)
                .arg("last_seq")
                .arg(was)
                .query::<()>(&mut redis_cli())
                .unwrap();
        }
        let seqs: Vec<u64> = (0..3).map(|n| handle.append("alpha", n)).collect();
        assert_eq!(seqs, [LAST - 2, LAST - 1, LAST], "{store}");
        let held = handle.claim("alpha", "ann").unwrap();
        assert_eq!(held.messages.last().unwrap().seq.0, LAST);
        assert_eq!(handle.ack("alpha", "ann", &held.lease, LAST - 1), 2, "{store}");
        assert_eq!(handle.peek("alpha"), [(LAST, json!(2))], "{store}");
        let message = breakdown(handle.mailbox().append(&at("alpha"), &json!(3), NOW));
        assert!(message.contains("every seq there is"), "{message}");
    }
}

#[test]
fn a_connection_that_was_lost_is_made_again() {
    for store in common::running(SERVERS) {
        let (f, mut handle) = fixture(store);
        handle.append("alpha", 1);
        let held = handle.claim("alpha", "ann").unwrap();
        hang_up(&f);
        std::thread::sleep(REST);
        // After a rest it looks first, and no operation is lost.
        assert_eq!(handle.append("alpha", 2), 2, "{store}");
        hang_up(&f);
        // In full swing the operation itself finds out, and cannot know what became of it.
        match handle.mailbox().append(&at("alpha"), &json!(3), NOW) {
            Err(StoreError::Broken(message)) => assert!(message.contains("unknown"), "{message}"),
            Err(error) => panic!("{store}: {error}"),
            Ok(Seq(seq)) => assert_eq!(seq, 3),
        }
        assert_eq!(handle.ack("alpha", "ann", &held.lease, 1), 1, "{store}");
        hang_up(&f);
        handle.0.close().unwrap();
        assert_eq!(refusal(handle.mailbox().peek(&at("alpha"), NOW)), "closed");
    }
}

#[test]
fn a_destroyed_storage_answers_nothing_and_does_not_come_back() {
    for store in common::running(SERVERS) {
        let (mut f, mut handle) = fixture(store);
        let (_other, mut beside) = fixture(store);
        beside.append("alpha", "beside");
        for n in 0..5 {
            handle.append(&format!("box{n}"), n);
            handle.claim(&format!("box{n}"), "ann");
        }
        f.subject.destroy(&f.location).unwrap();
        breakdown(handle.mailbox().append(&at("alpha"), &json!(1), NOW));
        breakdown(handle.mailbox().claim(&at("box1"), &common::ask("bob"), NOW));
        breakdown(handle.mailbox().peek(&at("box1"), NOW));
        breakdown(handle.mailbox().reap(NOW));
        breakdown(f.try_attach().map(|_| ()));
        // Gone already is fine.
        f.subject.destroy(&f.location).unwrap();
        assert_eq!(left_of(&name(&f)), 0, "{store}");
        assert_eq!(beside.peek("alpha"), [(1, json!("beside"))], "{store}");
    }
}

/// How much of a storage its server still has.
fn left_of(storage: &str) -> usize {
    if let Some(name) = storage.strip_prefix("storeproof_") {
        let statement = "SELECT nspname FROM pg_namespace WHERE nspname LIKE '%' || $1";
        return psql().query(statement, &[&name]).unwrap().len();
    }
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("*{storage}*")).query(&mut redis_cli()).unwrap();
    keys.len()
}

#[test]
fn destroy_follows_no_hostile_location() {
    const DIGITS: &str = "00000000000000000000000000000000";
    for store in common::running(SERVERS) {
        let (mut f, mut handle) = fixture(store);
        handle.append("alpha", 1);
        let (ours, other) = (name(&f), if store == "redis" { "postgres" } else { "redis" });
        let at = |name: &str| json!({ "store": store, "schema": name, "storage": name });
        let mut hostile = vec![
            Value::Null,
            json!(ours),
            json!({ "schema": ours, "storage": ours }),
            json!({ "store": other, "schema": ours, "storage": ours }),
            json!({ "store": store, "schema": 1, "storage": 1 }),
        ];
        for name in ["", "*", "public", "pg_catalog", DIGITS, "storeproof_mailbox_*", &ours[..40]] {
            hostile.push(at(name));
        }
        for name in
            [format!("{ours}, public"), format!("{ours};"), format!(" {ours}"), format!("{ours}\0")]
        {
            hostile.push(at(&name));
        }
        for location in &hostile {
            assert_eq!(refusal(f.subject.destroy(location)), "invalid_location", "{location}");
            assert_eq!(refusal(f.subject.attach(location)), "invalid_location", "{location}");
        }
        assert_eq!(handle.peek("alpha"), [(1, json!(1))], "{store}");
    }
}

#[test]
fn a_schema_that_is_not_ours_alone_stays() {
    if !common::has_server("postgres") {
        return;
    }
    // It looks like one of ours, and is not.
    for (digit, contents) in [
        ("1", ""),
        ("2", "CREATE TABLE storage (precious text)"),
        ("3", "CREATE TABLE storage (kind text, version int, name text)"),
    ] {
        let stranger = format!("storeproof_mailbox_{}{}", digit.repeat(31), "f");
        let mut cli = psql();
        cli.batch_execute(&format!(
            "CREATE SCHEMA {stranger}; SET search_path = {stranger}; {contents}"
        ))
        .unwrap();
        let (mut f, _handle) = fixture("postgres");
        let location = json!({ "store": "postgres", "schema": stranger });
        let destroyed = f.subject.destroy(&location);
        let attached = f.subject.attach(&location);
        cli.batch_execute(&format!("DROP SCHEMA {stranger} CASCADE")).unwrap();
        assert!(destroyed.is_err(), "{contents}");
        breakdown(attached);
    }
    // It is ours, and somebody has put something into it.
    let (mut f, mut handle) = fixture("postgres");
    handle.append("alpha", 1);
    let ours = name(&f);
    meddle(&ours, "CREATE TABLE precious (word text)");
    assert_eq!(refusal(f.subject.destroy(&f.location)), "invalid_location");
    assert_eq!(handle.peek("alpha"), [(1, json!(1))]);
    meddle(&ours, "DROP TABLE precious; CREATE VIEW mine AS SELECT * FROM messages");
    assert_eq!(refusal(f.subject.destroy(&f.location)), "invalid_location");
    assert_eq!(handle.peek("alpha"), [(1, json!(1))]);
    meddle(&ours, "DROP VIEW mine");
    f.subject.destroy(&f.location).unwrap();
}

#[test]
fn a_storage_of_another_kind_is_refused_and_a_body_that_cannot_be_read_is_named() {
    for store in common::running(SERVERS) {
        let (mut f, mut handle) = fixture(store);
        handle.append("alpha", "one");
        let ours = name(&f);
        let (storage, pending) =
            (format!("{ours}:storage"), format!("{ours}:pending:7:defaultalpha"));
        let mut redis = (store == "redis").then(redis_cli);
        match &mut redis {
            Some(cli) => {
                redis::cmd("LSET").arg(pending).arg(0).arg("{\"torn").query::<()>(cli).unwrap();
            }
            None => meddle(&ours, "UPDATE messages SET body = '{\"torn'"),
        }
        let torn = breakdown(handle.mailbox().peek(&at("alpha"), NOW));
        assert!(torn.contains("message 1 of"), "{torn}");
        breakdown(handle.mailbox().claim(&at("alpha"), &common::ask("ann"), NOW));
        let mut set_kind = |kind: &str, version: u32| match &mut redis {
            Some(cli) => {
                let kind = format!("{kind}/{version}");
                redis::cmd("HSET").arg(&storage).arg("kind").arg(kind).query::<()>(cli).unwrap();
            }
            None => {
                meddle(&ours, &format!("UPDATE storage SET kind = '{kind}', version = {version}"))
            }
        };
        let kind = if store == "redis" { "storeproof-mailbox" } else { "storeproof mailbox" };
        for (kind, version) in [(kind, 2), ("something else", 1)] {
            set_kind(kind, version);
            breakdown(f.subject.attach(&f.location));
            assert_eq!(refusal(f.subject.destroy(&f.location)), "invalid_location", "{store}");
        }
        set_kind(kind, 1);
        f.attach();
    }
}

#[test]
fn a_row_that_is_locked_is_waited_for() {
    if !common::has_server("postgres") {
        return;
    }
    let (f, mut waiting) = fixture("postgres");
    waiting.append("alpha", 1);
    let mut holder = psql();
    holder
        .batch_execute(&format!(
            "SET search_path = {}; BEGIN; SELECT * FROM boxes FOR UPDATE",
            name(&f)
        ))
        .unwrap();
    let (answered, answer) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        assert_eq!(waiting.peek("alpha").len(), 1, "reading does not wait");
        waiting.reap();
        answered.send(waiting.append("alpha", 2)).unwrap();
    });
    assert!(answer.recv_timeout(Duration::from_millis(300)).is_err(), "it did not wait");
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(answer.recv(), Ok(2));
    waiter.join().unwrap();
}

#[test]
#[ignore = "it waits out the whole 6 s; run it with --include-ignored"]
fn a_row_that_stays_locked_is_a_breakdown_in_time() {
    if !common::has_server("postgres") {
        return;
    }
    let (f, mut handle) = fixture("postgres");
    handle.append("alpha", 1);
    let mut holder = psql();
    holder
        .batch_execute(&format!(
            "SET search_path = {}; BEGIN; SELECT * FROM boxes FOR UPDATE",
            name(&f)
        ))
        .unwrap();
    let began = Instant::now();
    let message = breakdown(handle.mailbox().append(&at("alpha"), &json!(2), NOW));
    let waited = began.elapsed().as_millis();
    assert!(message.contains("another transaction held the box"), "{message}");
    assert!((5_900..9_000).contains(&waited), "waited {waited} ms");
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(handle.append("alpha", 2), 2);
}

#[test]
fn a_server_that_is_not_there_is_told_without_the_password() {
    for store in SERVERS {
        let bundled = bundled(store).unwrap();
        let variable = bundled.url_variable.unwrap();
        let place = |url: Option<String>| Place { base: std::env::temp_dir(), url };
        let none = breakdown((bundled.check)(&place(None)));
        assert!(none.contains(variable) && none.contains("scripts/services"), "{none}");
        breakdown((bundled.make)(&place(None)).open());
        // Port 1 answers to nobody; the others are no URLs.
        let absent =
            breakdown((bundled.check)(&place(Some(format!("{store}://u:secret@127.0.0.1:1/")))));
        assert!(absent.contains("127.0.0.1:1") && !absent.contains("secret"), "{absent}");
        assert!(absent.contains(variable) && absent.contains("scripts/services"), "{absent}");
        for bad in
            ["secret", "secret=secret", &format!("{store}://u:sec ret@@[secret:secret/secret")]
        {
            let told = breakdown((bundled.check)(&place(Some(bad.to_owned()))));
            assert!(told.contains(variable) && !told.contains("secret"), "{told}");
        }
    }
}

/// Every setting of Redis that the store asks about, wrong at once and right again, on a server of its
/// own.
#[test]
fn a_redis_that_may_forget_is_refused() {
    let Some(server) = OwnRedis::start() else { return };
    let redis = bundled("redis").unwrap();
    let place = Place { base: std::env::temp_dir(), url: Some(server.url.clone()) };
    let told = breakdown((redis.check)(&place));
    for setting in
        ["appendonly yes", "appendfsync always", "no-appendfsync-on-rewrite no", "maxmemory-policy"]
    {
        assert!(told.contains(&format!("set {setting}")), "{told}");
    }
    breakdown((redis.make)(&place).open());
    let mut cli = redis::Client::open(&*server.url).unwrap().get_connection().unwrap();
    for (setting, value) in [
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("no-appendfsync-on-rewrite", "no"),
        ("maxmemory-policy", "volatile-lru"),
    ] {
        breakdown((redis.check)(&place));
        redis::cmd("CONFIG").arg("SET").arg(setting).arg(value).query::<()>(&mut cli).unwrap();
    }
    (redis.check)(&place).unwrap();
    let mut handle = Handle((redis.make)(&place).open().unwrap().store);
    assert_eq!(handle.append("alpha", 1), 1);
    // A full server refuses writes as a whole.
    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(1).query::<()>(&mut cli).unwrap();
    breakdown(handle.mailbox().append(&at("alpha"), &json!(2), NOW));
    breakdown(handle.mailbox().claim(&at("alpha"), &common::ask("ann"), NOW));
    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(0).query::<()>(&mut cli).unwrap();
    assert_eq!(handle.peek("alpha"), [(1, json!(1))]);
    assert_eq!(handle.append("alpha", 2), 2);
}

/// A Redis that promises nothing, for one test.
struct OwnRedis {
    child: std::process::Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl OwnRedis {
    #[expect(clippy::disallowed_methods, reason = "the test starts a server with wrong settings")]
    fn start() -> Option<Self> {
        if !common::has_server("redis") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let child = std::process::Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--appendfsync", "everysec", "--no-appendfsync-on-rewrite", "yes"])
            .args(["--maxmemory-policy", "allkeys-lru", "--logfile", "log"])
            .args(["--unixsocket".as_ref(), socket.as_os_str()])
            .current_dir(folder.path())
            .spawn()
            .expect("redis-server, which scripts/services installs");
        let began = Instant::now();
        while !socket.exists() {
            assert!(began.elapsed() < DRAIN_MAX, "redis-server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = format!("redis+unix://{}", socket.display());
        Some(Self { child, url, _folder: folder })
    }
}

impl Drop for OwnRedis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
