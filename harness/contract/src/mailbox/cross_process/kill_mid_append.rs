//! A process that is killed while it appends takes no receipt with it.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::delivery::{Sent, seq_of};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::MET_BY_HISTORIES;
use crate::mailbox::store::{Address, MailboxStore, Millis, Seq};
use crate::mailbox::wire::AppendResult;
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// The most whole appends before each kill.
const APPENDS_MAX: u32 = 4;
/// How long a body is, in characters: long enough to be cut in half, short enough for every store.
const BODY_CHARS: usize = 900;
/// How far beyond the usual time of a call a kill may come, as a share of it.
const BEYOND: f64 = 1.2;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "kill-mid-append",
    at: file!(),
    statement: "Every receipt that a process reported before it was killed in its append loop is found by another one, and no half message is.",
    why: "A receipt is a promise. If it can die with the process that gave it, every sender has to send twice, and nobody knows what arrived.",
    steps: &[
        "in each round: the peer appends a few messages to alpha, and is killed (SIGKILL) at a random point inside one more append",
        "this process claims and acks until null: every receipt of the round, once, in order, whole; the message of the killed append may be there too, whole, after them",
        "a new peer attaches and the next round begins; 20 rounds unless --kill-rounds says otherwise",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "receipt-before-commit",
            fault: "answers the receipt first and writes the message with the next operation",
            make: shared::<WritesLater>,
        },
        Mutant {
            name: "half-a-message-written",
            fault: "writes a message in two parts, and takes the first for the whole where the second is missing",
            make: shared::<InTwoParts>,
        },
        Mutant {
            name: "unfinished-append-takes-the-last-along",
            fault: "moves the last message aside while it appends, and does not bring it back where it is killed",
            make: shared::<MovesAside>,
        },
    ],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let mut pair = t.pair()?;
    let alpha = at("alpha");
    for round in 1..=t.kill_rounds() {
        let mut sent = Vec::new();
        for i in 1..=t.rng().u32(1..=APPENDS_MAX) {
            let body = body(round, i);
            sent.push(Sent { seq: t.append(&pair.b, &alpha, body.clone())?, body });
        }
        let cut = body(round, 0);
        let params = t.append_params(&pair.b, &alpha, &cut);
        let moment = t.rng().f64() * BEYOND;
        let answer = t.call_and_kill(pair.b.side, "mailbox/append", params, moment)?;
        let is_answered = answer.is_some();
        if let Some(answer) = answer {
            match t.read::<AppendResult>("mailbox/append", answer, false)? {
                Ok(AppendResult { seq }) => {
                    sent.push(Sent { seq: seq_of(&seq)?, body: cut.clone() });
                }
                Err(refusal) => {
                    return broken(
                        format!("append takes a harmless body for {alpha}"),
                        format!("append was {refusal}"),
                    );
                }
            }
        }
        t.survivor_answers(&pair.a)?;
        let maybe = (!is_answered).then_some(&cut);
        let promised =
            "every receipt of a process that was killed is found by another, and no half message";
        t.accounts_for(&pair.a, &alpha, &sent, maybe, promised)?;
        t.new_peer(&mut pair)?;
    }
    Ok(())
}

fn body(round: u32, i: u32) -> Json {
    let mut text = format!("{round}.{i} ");
    while text.len() < BODY_CHARS {
        text.push(char::from(b'a' + u8::try_from(text.len() % 26).unwrap_or(0)));
    }
    Json::from(text)
}

altered!(WritesLater remembers Option<(Address, Seq, Json)> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.write_out();
        let seq = self.0.append(to, body, now)?;
        self.0.with_box(to, |b| b.messages.retain(|m| m.seq != seq));
        self.1 = Some((to.clone(), seq, body.clone()));
        Ok(seq)
    }
    fn claim(
        &mut self,
        from: &Address,
        ask: &crate::mailbox::store::ClaimAsk,
        now: Millis,
    ) -> Reply<Option<crate::mailbox::store::Delivery>> {
        self.write_out();
        self.0.claim(from, ask, now)
    }
    fn close(&mut self) -> Reply<()> {
        self.write_out();
        self.0.close();
        Ok(())
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<crate::mailbox::store::Message>> {
        self.write_out();
        self.0.peek(of, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.write_out();
        self.0.drop_box(of, now)
    }
});

impl WritesLater {
    fn write_out(&mut self) {
        if let Some((to, seq, body)) = self.1.take() {
            self.0.with_box(&to, |b| {
                b.messages.push(crate::mailbox::store::Message { seq, body });
                b.messages.sort_by_key(|m| m.seq);
            });
        }
    }
}

altered!(InTwoParts {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let Json::String(text) = body else { return self.0.append(to, body, now) };
        let half: String = text.chars().take(text.chars().count() / 2).collect();
        let seq = self.0.append(to, &Json::from(half), now)?;
        self.0.gap()?;
        self.0.with_box(to, |b| {
            if let Some(message) = b.messages.iter_mut().find(|m| m.seq == seq) {
                message.body = body.clone();
            }
        });
        Ok(seq)
    }
});

altered!(MovesAside {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let aside = self.0.with_box(to, |b| b.messages.pop());
        self.0.gap()?;
        self.0.with_box(to, |b| {
            b.messages.extend(aside);
            b.messages.sort_by_key(|m| m.seq);
        });
        self.0.append(to, body, now)
    }
});
