//! Records to draw: a calm one, an empty one, and one in which every text is hostile.
#![allow(dead_code, reason = "each test binary uses its own part of this module")]

pub mod xml;

use serde_json::{Value, json};
use storeproof_reports::record::{
    Mount, Outcome, Record, Row, Run, SCHEMA, Step, Subject, Summary, Tier, Verdict,
};

/// Everything an adapter has been seen to print, and a few things it has not.
pub const HOSTILE: &str = "want 1\n\u{1b}[31mgot 2\u{1b}[0m \0 \u{FFFE}\u{FFFF} ]]> <![CDATA[x]]> \
    </script><script>alert(1)</script> --> <img src=x onerror=alert(1)> & \" ' ` \u{202e}desrever\u{202c} \
    👩\u{200d}👧 \u{1b}]0;title\u{7}\t\r\ndone\u{85}\u{7f}";

pub fn row(id: &str, suite: &str, outcome: Outcome, message: Option<&str>) -> Row {
    Row {
        id: id.into(),
        clause: id.split('/').take(3).collect::<Vec<_>>().join("/"),
        suite: suite.into(),
        tier: Tier::T1,
        outcome,
        ms: 3,
        message: message.map(str::to_owned),
        steps: None,
        lanes: None,
        replay: None,
        advisories: None,
    }
}

pub fn step(n: u32, call: &str, params: Value, answer: Value) -> Step {
    Step { n, process: None, call: call.into(), params, answer }
}

pub fn mount(suite: &str, verdict: Verdict, reason: Option<&str>, cases: usize) -> Mount {
    Mount { suite: suite.into(), face: None, verdict, reason: reason.map(str::to_owned), cases }
}

pub fn record(name: &str, mounts: Vec<Mount>, clauses: Vec<Row>) -> Record {
    Record {
        schema: SCHEMA.into(),
        kit: "1.0".into(),
        subject: Subject {
            name: name.into(),
            version: "0.3.1".into(),
            language: Some("rust".into()),
            capabilities: json!({"mailbox": true, "tenancy": true, "clock": "caller"}),
            limits: None,
        },
        run: Run {
            seed: 4_503_599_627_370_496,
            started: "2026-11-30T15:21:36Z".into(),
            duration_ms: 12_345,
            shard: None,
        },
        summary: Summary::of(&clauses),
        mounts,
        clauses,
    }
}

/// A run in which everything that was declared held.
pub fn calm() -> Record {
    let slugs = ["append-then-claim", "ack-is-final", "claims-in-order", "lease-expires"];
    let mut rows: Vec<Row> = slugs
        .iter()
        .map(|slug| row(&format!("mailbox/core/{slug}"), "mailbox/core", Outcome::Pass, None))
        .collect();
    rows.push(row(
        "mailbox/tombstone/dropped-stays-gone",
        "mailbox/tombstone",
        Outcome::NotDeclared,
        Some("the subject does not declare `tombstone`"),
    ));
    let mounts = vec![
        mount("mailbox/core", Verdict::Mounted, None, 4),
        mount(
            "mailbox/tombstone",
            Verdict::NotDeclared,
            Some("the subject does not declare `tombstone`"),
            1,
        ),
    ];
    record("memory", mounts, rows)
}

/// A run without a single case.
pub fn zero() -> Record {
    record("empty", vec![mount("mailbox/core", Verdict::Refused, Some(HOSTILE), 0)], Vec::new())
}

/// Every outcome, every optional member, and foreign text that fights back.
pub fn hostile() -> Record {
    let mut rows = core_rows();
    rows.extend(face_rows());
    rows.push(row(
        "mailbox/tenancy/scopes-apart",
        "mailbox/tenancy",
        Outcome::NotDeclared,
        Some("the subject does not declare `tenancy`"),
    ));
    rows.push(row(
        "mailbox/tombstone/gone",
        "mailbox/tombstone",
        Outcome::NotRun,
        Some("not in shard 1/2"),
    ));
    let mut faces = vec![
        mount("read-back-shape/faces", Verdict::Mounted, None, 4),
        mount("read-back-shape/faces", Verdict::Exempt, Some("rows are sealed by the vendor"), 1),
    ];
    faces[0].face = Some("notes/\u{202e}list".into());
    faces[1].face = Some("sealed".into());
    let mut mounts = vec![mount("mailbox/core", Verdict::Mounted, None, 6)];
    mounts.extend(faces);
    mounts.push(mount("mailbox/tenancy", Verdict::NotDeclared, None, 1));
    mounts.push(mount("mailbox/tombstone", Verdict::Mounted, Some(HOSTILE), 1));
    let mut record = record("odd.store/</script>\u{1b}[1m 日本", mounts, rows);
    record.subject.version = HOSTILE.into();
    record.subject.limits = Some(json!({"maxNameBytes": 64, "note": HOSTILE}));
    record.run.shard = Some("1/2".into());
    record
}

fn core_rows() -> Vec<Row> {
    let suite = "mailbox/core";
    let mut passed = row("mailbox/core/append-then-claim", suite, Outcome::Pass, None);
    passed.advisories = Some(vec![format!("the answer took 9 s of 10 s; {HOSTILE}")]);
    let promised = "promised: messages come in the order of their seq\n\
                    seen:     seq 2 came before seq 1";
    let mut failed = row("mailbox/core/claims-in-order", suite, Outcome::Fail, Some(promised));
    failed.ms = 1_234;
    failed.steps = Some(claim_steps());
    failed.replay = Some(
        "storeproof certify --clause mailbox/core/claims-in-order --seed 4503599627370496 -- python3 store.py"
            .into(),
    );
    failed.advisories = Some(vec!["a line of stdout without an id was ignored".into()]);
    let stderr: String = (1..=60).map(|n| format!("  File \"store.py\", line {n}\n")).collect();
    let died = format!("the child died: exit status 3\nits stderr ends:\n{stderr}{HOSTILE}");
    let mut error = row("mailbox/core/lease-expires", suite, Outcome::Error, Some(&died));
    error.replay = Some("storeproof certify --clause mailbox/core/lease-expires -- ./store".into());
    let huge = format!("START {HOSTILE} {} END", "0123456789abcdef".repeat(12_800));
    let mut big = row("mailbox/core/body-fidelity", suite, Outcome::Fail, Some(&huge));
    big.steps = Some(vec![step(
        1,
        "mailbox/append",
        json!({"store": "s", "scope": "default", "handle": "a\u{202e}b", "body": HOSTILE, "now": 1}),
        json!({"fault": HOSTILE}),
    )]);
    big.replay = Some(format!("storeproof replay '{HOSTILE}'"));
    vec![
        passed,
        failed,
        error,
        big,
        row(
            "mailbox/core/ack-is-final",
            suite,
            Outcome::ExpectedFail,
            Some("vendor issue 12: acks twice"),
        ),
        row("mailbox/core/peek-is-pure", suite, Outcome::UnexpectedPass, None),
    ]
}

fn claim_steps() -> Vec<Step> {
    let call = |body: &str| json!({"store": "s1", "scope": "default", "handle": "alpha", "body": body, "now": 1000});
    let claim = json!({"store": "s1", "scope": "default", "handle": "alpha", "owner": "w1", "ttlMs": 30000, "now": 1000});
    let messages = json!([{"seq": 2, "body": "m2"}, {"seq": 1, "body": "m1"}]);
    vec![
        step(1, "store/open", json!({}), json!({"result": {"store": "s1"}})),
        step(2, "mailbox/append", call("m1"), json!({"result": {"seq": 1}})),
        step(3, "mailbox/append", call(&"m2 ".repeat(2_000)), json!({"result": {"seq": 2}})),
        step(4, "mailbox/claim", claim, json!({"result": {"lease": "l-1", "messages": messages}})),
        step(
            5,
            "mailbox/renew",
            json!({"store": "s1", "lease": "l-0"}),
            json!({"error": {"code": -32001, "message": "no such lease", "data": {"reason": "lost_lease"}}}),
        ),
    ]
}

fn face_rows() -> Vec<Row> {
    let suite = "read-back-shape/faces";
    let face = "notes%2F\u{202e}list";
    let id = |clause: &str, rest: &str| format!("read-back-shape/faces/{clause}/{rest}");
    vec![
        row(&id("torn-row", &format!("{face}/json/utf-8%0Abom")), suite, Outcome::Pass, None),
        row(
            &id("null-row", &format!("{face}/json/<b>\"'&amp;")),
            suite,
            Outcome::Tolerated,
            Some(HOSTILE),
        ),
        row(&id("empty-row", &format!("{face}/json/🙂 two  words")), suite, Outcome::Fail, None),
        row(&id("other-row", &format!("{face}/json/default")), suite, Outcome::Pass, None),
        row(&id("torn-row", "sealed"), suite, Outcome::Exempt, None),
    ]
}
