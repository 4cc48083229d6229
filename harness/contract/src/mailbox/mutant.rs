//! Wrong stores, written as what they change: every method of [`Altered`] is the model's own until a
//! mutant says otherwise.

use super::model::{Model, State};
use super::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq, Tombstones,
};
use crate::backend::{Capabilities, Clock, Identity, Limits, Manifest};
use crate::json::Json;
use crate::subject::{Opened, Reply, Store, StoreError, Subject};
use crate::world::{Clockwork, World};
use crate::{KIT, PROTOCOL};
use std::sync::{Arc, Mutex, PoisonError};

/// A store that differs from the model in what it overrides.
#[expect(
    missing_docs,
    reason = "the methods are those of `MailboxStore`, `Tombstones` and `Store`"
)]
pub trait Altered: Send + 'static {
    /// The mutant over one model handle.
    fn over(model: Model) -> Self
    where
        Self: Sized;
    /// The model it wraps.
    fn model(&mut self) -> &mut Model;

    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.model().append(to, body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.model().claim(from, ask, now)
    }
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        self.model().ack(of, owner, lease, up_to, now)
    }
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.model().release(of, owner, lease, now)
    }
    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        self.model().renew(of, owner, lease, ttl_ms, now)
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        self.model().peek(of, now)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.model().reap(now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.model().drop_box(of, now)
    }
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()> {
        self.model().tombstone(of, now)
    }
    fn close(&mut self) -> Reply<()> {
        self.model().close();
        Ok(())
    }
    /// What happens to the storage when a handle is attached to it.
    fn reopened(state: &mut State)
    where
        Self: Sized,
    {
        let _ = state;
    }
    /// Names by which appends left the store's root.
    fn escaped(state: &State) -> Vec<String>
    where
        Self: Sized,
    {
        let _ = state;
        Vec::new()
    }
}

/// The model itself: a mutant that changes nothing.
pub struct Unaltered(Model);

impl Altered for Unaltered {
    fn over(model: Model) -> Self {
        Self(model)
    }
    fn model(&mut self) -> &mut Model {
        &mut self.0
    }
}

/// Defines a mutant: a model handle (`self.0`) with some methods overridden, and, where it
/// `remembers` something of its own between calls, that memory (`self.1`).
macro_rules! altered {
    ($name:ident { $($body:tt)* }) => {
        altered!($name remembers () { $($body)* });
    };
    ($name:ident remembers $memory:ty { $($body:tt)* }) => {
        struct $name($crate::mailbox::model::Model, #[allow(dead_code, reason = "most remember nothing")] $memory);

        impl $crate::mailbox::mutant::Altered for $name {
            fn over(model: $crate::mailbox::model::Model) -> Self {
                Self(model, Default::default())
            }
            fn model(&mut self) -> &mut $crate::mailbox::model::Model {
                &mut self.0
            }
            $($body)*
        }
    };
}
pub(crate) use altered;

/// A subject of mutants of one kind, for one process at a time: it does not declare crossProcessSafe.
#[must_use]
pub fn subject<A: Altered>(world: World) -> Box<dyn Subject> {
    kind::<A>(world, false)
}

/// The same for several processes at once.
#[must_use]
pub fn shared<A: Altered>(world: World) -> Box<dyn Subject> {
    kind::<A>(world, true)
}

/// The model as a subject.
#[must_use]
pub fn model(world: World) -> Box<dyn Subject> {
    shared::<Unaltered>(world)
}

fn kind<A: Altered>(world: World, is_shared: bool) -> Box<dyn Subject> {
    let over = |model| Box::new(A::over(model)) as Box<dyn Altered>;
    let process = world.new_process();
    Box::new(Kind { world, process, is_shared, over, reopened: A::reopened, escaped: A::escaped })
}

/// One process of a subject. Not generic over its kind of mutant: there are hundreds of them, and all
/// that is generic is compiled for each.
struct Kind {
    world: World,
    process: u64,
    is_shared: bool,
    over: fn(Model) -> Box<dyn Altered>,
    reopened: fn(&mut State),
    escaped: fn(&State) -> Vec<String>,
}

impl Kind {
    fn handle(&self, storage: &Arc<Mutex<State>>) -> Box<dyn Store> {
        let model = Model::new(Arc::clone(storage), self.world.clone(), self.process);
        Box::new(Handle((self.over)(model)))
    }
}

impl Subject for Kind {
    fn manifest(&self) -> Manifest {
        let clock = match self.world.clock {
            Clockwork::Caller => Clock::Caller,
            Clockwork::Wall(_) => Clock::Wall,
        };
        Manifest {
            protocol: PROTOCOL.to_owned(),
            kit: KIT.to_owned(),
            subject: Identity {
                name: "model".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                language: Some("rust".to_owned()),
                homepage: None,
            },
            pid: None,
            capabilities: Capabilities {
                mailbox: true,
                durable: true,
                tenancy: true,
                cross_process_safe: self.is_shared,
                tombstone: true,
                peek: true,
                release: true,
                renew: true,
                clock,
                ..Capabilities::default()
            },
            faces: Vec::new(),
            limits: Limits::default(),
            server: None,
        }
    }

    fn open(&mut self) -> Reply<Opened> {
        let (location, storage) = self.world.add(State::default());
        let store = self.handle(&storage);
        Ok(Opened { store, location: Some(Json::String(location)), root: None })
    }

    fn attach(&mut self, location: &Json) -> Reply<Box<dyn Store>> {
        let storage = location
            .as_str()
            .and_then(|location| self.world.find::<State>(location))
            .ok_or_else(|| StoreError::Broken(format!("no storage {location}")))?;
        (self.reopened)(&mut storage.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(self.handle(&storage))
    }

    fn destroy(&mut self, location: &Json) -> Reply<()> {
        if let Some(location) = location.as_str() {
            self.world.remove(location);
        }
        Ok(())
    }

    fn escaped(&self) -> Vec<String> {
        let of = |storage: &Mutex<State>| {
            (self.escaped)(&storage.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.world.all::<State>().iter().flat_map(|(_, storage)| of(storage)).collect()
    }
}

struct Handle(Box<dyn Altered>);

impl Store for Handle {
    fn mailbox(&mut self) -> Option<&mut dyn MailboxStore> {
        Some(self)
    }
    fn tombstones(&mut self) -> Option<&mut dyn Tombstones> {
        Some(self)
    }
    fn close(&mut self) -> Reply<()> {
        self.0.close()
    }
}

impl MailboxStore for Handle {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.0.append(to, body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(from, ask, now)
    }
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        self.0.ack(of, owner, lease, up_to, now)
    }
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.0.release(of, owner, lease, now)
    }
    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        self.0.renew(of, owner, lease, ttl_ms, now)
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        self.0.peek(of, now)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.0.drop_box(of, now)
    }
}

impl Tombstones for Handle {
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()> {
        self.0.tombstone(of, now)
    }
}
