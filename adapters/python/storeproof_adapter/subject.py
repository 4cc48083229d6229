"""What an author declares: the subject's name, its capabilities, and how its stores are opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, TypedDict, TypeVar

from .mailbox import Json, NotWritten
from .wire import INVALID_PARAMS, RpcError

Params = dict[str, Json]
Handler = Callable[[Params], Json]


@dataclass(frozen=True)
class Capabilities:
    """What the store promises, said once. The bench holds it to every promise made here and skips
    nothing that was promised; what is not named here is not declared.

    `queue` may be a mapping (`{"ids": "string", "redelivery": "never"}`); `memory`, `bundle` and
    `site_rules` may be a list of full method names (`["bundle/hash"]`) when only those are served.
    """

    mailbox: bool = False
    queue: bool | Mapping[str, str] = False
    durable: bool = False
    tenancy: bool = False
    cross_process_safe: bool = False
    tombstone: bool = False
    peek: bool = False
    release: bool = False
    renew: bool = False
    concurrent: bool = False
    clock: str = "wall"
    memory: bool | Sequence[str] = False
    bundle: bool | Sequence[str] = False
    site_rules: bool | Sequence[str] = False

    def __post_init__(self) -> None:
        if self.clock not in ("caller", "wall"):
            raise ValueError(f'clock is "caller" or "wall", not {self.clock!r}')
        if self.mailbox and self.queue:
            raise ValueError("declare mailbox or queue, never both: a store keeps one of the two")

    def to_wire(self) -> Json:
        """The declaration in the protocol's names; what is absent counts as false."""
        names = {"cross_process_safe": "crossProcessSafe", "site_rules": "siteRules"}
        declared: dict[str, Json] = {}
        for name, value in vars(self).items():
            if value:
                plain = value if isinstance(value, (bool, str)) else _plain(value)
                declared[names.get(name, name)] = plain
        return declared


@dataclass(frozen=True)
class Limits:
    """Bounds the store has by design. Bytes are UTF-8 bytes; the granularity is how coarse lease
    expiry is, in milliseconds (1 when not given)."""

    max_name_bytes: int | None = None
    max_body_bytes: int | None = None
    lease_granularity_ms: int | None = None

    def to_wire(self) -> Json:
        """The limits that were given, in the protocol's names."""
        wire = {
            "maxNameBytes": self.max_name_bytes,
            "maxBodyBytes": self.max_body_bytes,
            "leaseGranularityMs": self.lease_granularity_ms,
        }
        return {name: value for name, value in wire.items() if value is not None}


class _FaceNamed(TypedDict):
    name: str
    kind: str


class Face(_FaceNamed, total=False):
    """One read face of the store, as the protocol writes it: `kind` is `get` or `list`."""

    shape: str
    storage: bool
    reopen: bool
    unplantable: str
    tolerances: Sequence[Mapping[str, Json]]


class Server(TypedDict):
    """The server behind the store: the command that restarts it."""

    restart: str


@dataclass(frozen=True)
class Opened:
    """A store that was just opened, with what lets others find it again.

    `location`: any JSON that `attach` understands, also in another process. `root`: the absolute
    folder that holds all of the store's bytes.
    """

    store: object
    location: Json = None
    root: str | None = None


class Subject:
    """The thing that is certified: it opens stores. Subclass it and set the attributes."""

    name: str = ""
    version: str = ""
    homepage: str | None = None
    capabilities: Capabilities = Capabilities()
    limits: Limits | None = None
    faces: Sequence[Face] = ()
    server: Server | None = None

    _find: Callable[[str], object]  # The session's own, set by `serve`.

    def open(self) -> object:
        """Open a FRESH, EMPTY store: return it (a `Mailbox`), or an `Opened` around it."""
        raise NotWritten

    def attach(self, location: Json) -> object:
        """Open the storage at `location` again and return the store. Others may have it open."""
        raise NotWritten

    def destroy(self, location: Json) -> None:
        """Remove the storage at `location` for good."""
        raise NotWritten

    def shutdown(self) -> None:
        """Called once before the process ends, after the stores still open were closed."""

    def store(self, params: Params) -> Any:
        """For methods registered with `@method`: the store that `params["store"]` names, also once
        it is closed. Refuses `closed` when there is none."""
        store_id = params.get("store")
        if not isinstance(store_id, str):
            raise RpcError(INVALID_PARAMS, "`store` is a string")
        return self._find(store_id)


_Method = TypeVar("_Method", bound=Callable[..., Json])
_MARK = "_storeproof_methods"


def method(*names: str) -> Callable[[_Method], _Method]:
    """Serve further methods of the protocol by their full names.

    The decorated method of a `Subject` gets the params as a dict and returns the result as a dict::

        @method("bundle/hash")
        def hash(self, params):
            return {"hash": my_hash(params["sectionHashes"])}
    """

    def mark(function: _Method) -> _Method:
        setattr(function, _MARK, names)
        return function

    return mark


def registered_methods(subject: Subject) -> dict[str, Handler]:
    """Every method the author registered with `@method`, by its full name."""
    handlers: dict[str, Handler] = {}
    for attribute in dir(type(subject)):
        names: tuple[str, ...] = getattr(getattr(type(subject), attribute), _MARK, ())
        for name in names:
            if name in handlers:
                raise ValueError(f"{name} is registered twice")
            handlers[name] = getattr(subject, attribute)
    return handlers


def _plain(value: Mapping[str, str] | Sequence[str]) -> Json:
    return dict(value) if isinstance(value, Mapping) else list(value)
