"""The mailbox methods of the protocol: how their params are read and how the author's answers are
written. What only the bench may judge (a seq that goes back, a lease used twice) passes through.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from .mailbox import Json
from .subject import Params
from .wire import INVALID_PARAMS, RpcError


class BadAnswer(Exception):
    """The author's method returned something that has no form on the wire. A fault."""


class Op(NamedTuple):
    """A mailbox method: the author's function, the wire's fields in the function's order, how its
    answer is written, and the capability it hangs on."""

    function: str
    fields: str
    answer: Callable[[Any], Json]
    capability: str | None = None


def argument(method_name: str, params: Params, field: str) -> Json:
    """One param, or error -32602. `ttlMs` and `max` pass as sent: refusing those is the store's."""
    optional = field.endswith("?")
    field = field.rstrip("?")
    if field not in params and not optional:
        raise RpcError(INVALID_PARAMS, f"{method_name} needs `{field}`")
    value = params.get(field)
    if field in ("store", "scope", "handle", "owner", "lease") and not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"`{field}` is a string, not {kind_of(value)}")
    if field == "now" and type(value) is not int:
        raise RpcError(INVALID_PARAMS, f"`now` is an integer, not {kind_of(value)}")
    if field == "upTo" and type(value) not in (int, str):
        raise RpcError(INVALID_PARAMS, f"`upTo` is a seq, not {kind_of(value)}")
    return value


def _seq(value: Any) -> Json:
    if type(value) not in (int, str):
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
    written = _messages("claim")(messages)
    if not written["messages"]:
        raise BadAnswer("claim returned no messages: return None when there is nothing to hand out")
    return {"lease": lease, **written}


def _messages(function: str) -> Callable[[Any], dict[str, Json]]:
    def write(value: Any) -> dict[str, Json]:
        if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
            raise BadAnswer(f"{function} hands out a list of Message, not {kind_of(value)}")
        written = []
        for message in value:
            if not isinstance(message, tuple) or len(message) != 2:
                raise BadAnswer(f"{function} hands out Message(seq, body), not {kind_of(message)}")
            if type(message[0]) not in (int, str):
                raise BadAnswer(f"{function}: a seq is an int, not {kind_of(message[0])}")
            written.append({"seq": message[0], "body": message[1]})
        return {"messages": written}

    return write


def _count(function: str, member: str) -> Callable[[Any], Json]:
    def write(value: Any) -> Json:
        if type(value) is not int:
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
    """The result of a method that the author registered."""
    if not isinstance(value, dict):
        raise BadAnswer(f"{name} returns its result as a dict, not {kind_of(value)}")
    return value


def kind_of(value: object) -> str:
    """The value's type in a sentence."""
    return "None" if value is None else type(value).__name__


OPS: dict[str, Op] = {
    "mailbox/append": Op("append", "scope handle body now", _seq),
    "mailbox/claim": Op("claim", "scope handle owner ttlMs max? now", _claim),
    "mailbox/ack": Op("ack", "scope handle owner lease upTo now", _count("ack", "acked")),
    "mailbox/release": Op("release", "scope handle owner lease now", nothing("release"), "release"),
    "mailbox/renew": Op("renew", "scope handle owner lease ttlMs now", nothing("renew"), "renew"),
    "mailbox/peek": Op("peek", "scope handle now", _messages("peek"), "peek"),
    "mailbox/reap": Op("reap", "now", nothing("reap")),
    "mailbox/drop": Op("drop", "scope handle now", _count("drop", "dropped")),
    "recipient/tombstone": Op("tombstone", "scope handle now", nothing("tombstone"), "tombstone"),
}
