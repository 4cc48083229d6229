"""The mailbox methods of the protocol: how their params are read and how the author's answers are
written.

Only forms are checked. A seq of 0, an empty lease or an empty delivery breaks the contract and goes
out as it is, for the bench to say so: a check that made it a fault would hide the bug it found.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, NamedTuple

from .mailbox import Json
from .subject import Params
from .wire import INVALID_PARAMS, RpcError


class BadAnswer(Exception):
    """The author's method returned something that has no form on the wire. A fault."""


class Op(NamedTuple):
    """A mailbox method: the author's function, the wire's fields in the function's order behind the
    store, how its answer is written, and the capability it hangs on."""

    function: str
    fields: tuple[str, ...]
    answer: Callable[[Any], Json]
    capability: str | None = None


_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("store", "scope", "handle", "owner", "lease"), (str,)),
    "now": (int,),
    "upTo": (int, float, str),
}
_FORMS = {"now": "an integer", "upTo": "a seq"}
_OPTIONAL = frozenset({"max"})


def arguments(method_name: str, params: Params, fields: tuple[str, ...]) -> list[Json]:
    """The params of these names, or error -32602. A field without a type here (`ttlMs`, `max`)
    passes as sent: refusing it is the store's."""
    values = []
    for field in fields:
        value = params.get(field)
        if value is None and field not in params and field not in _OPTIONAL:
            raise RpcError(INVALID_PARAMS, f"{method_name} needs `{field}`")
        types = _TYPES.get(field)
        # type() and not isinstance(): bool is an int in Python, and no number here.
        if types is not None and type(value) not in types:
            form = _FORMS.get(field, "a string")
            raise RpcError(INVALID_PARAMS, f"`{field}` is {form}, not {kind_of(value)}")
        values.append(value)
    return values


def _seq(value: Any) -> Json:
    if type(value) not in (int, float, str):
        raise BadAnswer(f"append returns the seq of the new message, not {kind_of(value)}")
    return {"seq": value}


def _claim(value: Any) -> Json:
    if value is None:
        return None
    if not isinstance(value, tuple) or len(value) != 2:
        raise BadAnswer(f"claim returns None or Claim(lease, messages), not {kind_of(value)}")
    lease, messages = value
    if not isinstance(lease, str):
        raise BadAnswer(f"a lease is a str, not {kind_of(lease)}")
    delivered = _list_of("claim", messages)
    if not delivered:
        _note("claim returned no messages: return None when there is nothing to hand out")
    return {"lease": lease, "messages": delivered}


def _peek(value: Any) -> Json:
    return {"messages": _list_of("peek", value)}


def _list_of(function: str, value: Any) -> list[Json]:
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
        raise BadAnswer(f"{function} hands out a list of Message, not {kind_of(value)}")
    written = []
    for message in value:
        if not isinstance(message, tuple) or len(message) != 2:
            raise BadAnswer(f"{function} hands out Message(seq, body), not {kind_of(message)}")
        seq, body = message
        if type(seq) not in (int, float, str):
            raise BadAnswer(f"{function}: a seq is an int, not {kind_of(seq)}")
        written.append({"seq": seq, "body": body})
    return written


@functools.cache  # Once for each text: a store may do it in every claim.
def _note(text: str) -> None:
    print(f"storeproof: {text}", file=sys.stderr)


def _count(function: str, member: str) -> Callable[[Any], Json]:
    def write(value: Any) -> Json:
        if type(value) not in (int, float):
            raise BadAnswer(f"{function} returns a count of messages, not {kind_of(value)}")
        return {member: value}

    return write


def nothing(function: str) -> Callable[[Any], Json]:
    """For functions without an answer; False or "no" must not pass for a yes."""

    def write(value: Any) -> Json:
        if value is not None:
            raise BadAnswer(
                f"{function} returns None, not {kind_of(value)}: to say no, raise Refused(reason)"
            )
        return {}

    return write


def an_object(name: str, value: Any) -> Json:
    """The result of a method that the author registered; None stands for `{}`."""
    if value is None and name != "face/read":
        return {}
    if not isinstance(value, dict):
        raise BadAnswer(f"{name} returns its result as a dict, not {kind_of(value)}")
    if name == "face/read" and "answer" not in value:
        raise BadAnswer('face/read returns {"answer": ...}; None in it is "nothing there"')
    return value


def kind_of(value: object) -> str:
    """The value's type in a sentence."""
    return "None" if value is None else type(value).__name__


def _op(
    function: str, fields: str, answer: Callable[[Any], Json], capability: str | None = None
) -> Op:
    return Op(function, ("store", *fields.split()), answer, capability)


OPS: dict[str, Op] = {
    "mailbox/append": _op("append", "scope handle body now", _seq),
    "mailbox/claim": _op("claim", "scope handle owner ttlMs max now", _claim),
    "mailbox/ack": _op("ack", "scope handle owner lease upTo now", _count("ack", "acked")),
    "mailbox/release": _op(
        "release", "scope handle owner lease now", nothing("release"), "release"
    ),
    "mailbox/renew": _op("renew", "scope handle owner lease ttlMs now", nothing("renew"), "renew"),
    "mailbox/peek": _op("peek", "scope handle now", _peek, "peek"),
    "mailbox/reap": _op("reap", "now", nothing("reap")),
    "mailbox/drop": _op("drop", "scope handle now", _count("drop", "dropped")),
    "recipient/tombstone": _op("tombstone", "scope handle now", nothing("tombstone"), "tombstone"),
}
