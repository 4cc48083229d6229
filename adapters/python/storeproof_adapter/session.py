"""One conversation: which request reaches which of the author's methods, and what is answered."""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from collections import deque
from typing import Callable, NamedTuple

from .mailbox import Json, NotWritten, Refused
from .methods import OPS, BadAnswer, Op, an_object, arguments, nothing
from .subject import Handler, Opened, Params, Subject, registered_methods
from .wire import (
    FAULT,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NO_SUCH_METHOD,
    PARSE_ERROR,
    REFUSED,
    BadText,
    RpcError,
    decode,
    encode,
)

PROTOCOL = "1"
KIT = "1.0"

_CLOSED_STORES_KEPT_MAX = 64
_MESSAGE_CHARS_MAX = 4_000

# Here the author's exception is an answer ("throwing is an answer"), not a fault.
_THROWING_ANSWERS = frozenset({"face/read", "face/reopen", "face/seed"})


class Request(NamedTuple):
    """One line as it was read. `problem` is the answer to a line that is no proper request."""

    id: Json
    method: str
    params: Params
    notification: bool = False
    problem: RpcError | None = None


def read_request(line: bytes) -> Request:
    """Read a line. Never raises: a bad line is a request whose answer is an error."""
    try:
        value = decode(line)
    except BadText as why:
        return Request(None, "", {}, problem=RpcError(PARSE_ERROR, str(why)))
    if not isinstance(value, dict):
        return _not_a_request(None, "a request is one JSON object; batches are not served")
    request_id = value.get("id")
    if type(request_id) is not int and "id" in value:
        return _not_a_request(None, "`id` is an integer")
    method = value.get("method")
    if not isinstance(method, str) or value.get("jsonrpc") != "2.0":
        return _not_a_request(request_id, 'a request has `jsonrpc: "2.0"` and a string `method`')
    params = value.get("params", {})
    if not isinstance(params, dict):
        problem = RpcError(INVALID_PARAMS, "`params` is an object")
        return Request(request_id, method, {}, "id" not in value, problem)
    return Request(request_id, method, params, "id" not in value)


def _not_a_request(request_id: Json, message: str) -> Request:
    return Request(request_id, "", {}, problem=RpcError(INVALID_REQUEST, message))


class Session:
    """The subject, its open stores, and the answer to each request."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.ended = False
        self._ids = itertools.count(1)
        self._open: dict[str, object] = {}
        # A closed store is still asked: if it answers as if it were open, the bench must see that.
        # Only the newest are kept; of an older one the id alone remains, and the SDK refuses.
        self._closed: dict[str, object | None] = {}
        self._closed_kept: deque[str] = deque()
        subject._find = self._find
        self._own: dict[str, Handler] = {
            "initialize": self._initialize,
            "store/open": self._store_open,
            "store/attach": self._store_attach,
            "store/close": self._store_close,
            "store/destroy": self._store_destroy,
            "shutdown": self._shutdown,
        }
        self._registered = registered_methods(subject)
        for method in self._registered:
            if method in self._own or method in OPS:
                raise ValueError(f"{method} cannot be registered: override the method of that name")

    def answer(self, request: Request) -> bytes:
        """The answer's line. Never raises: what the author raised is part of the answer."""
        try:
            if request.problem is not None:
                raise request.problem
            result = self._call(request.method, request.params)
            return encode({"jsonrpc": "2.0", "id": request.id, "result": result})
        except RpcError as error:
            return _error(request.id, error.code, str(error))
        except Refused as no:
            return _error(request.id, REFUSED, no.message, {**no.data, "reason": no.reason})
        except BaseException as fault:  # Even sys.exit: the bench is owed an answer to each call.
            traceback.print_exc(file=sys.stderr)
            # What cannot be written is no answer. Where any error is one, only this code is none.
            code = PARSE_ERROR if request.method in _THROWING_ANSWERS else FAULT
            return _error(request.id, code, f"{request.method}: {_told(fault)}")

    def end(self) -> None:
        """Close what is still open, once. What cannot close tells its author so on stderr."""
        if self.ended:
            return
        self.ended = True
        for store in list(self._open.values()):
            _quietly(getattr(store, "close", None))
        self._open.clear()
        _quietly(self.subject.shutdown)

    def _call(self, method: str, params: Params) -> Json:
        if method in self._own:
            return self._own[method](params)
        if method in OPS:
            return self._mailbox(method, OPS[method], params)
        if method not in self._registered:
            raise _not_served(method, f"{type(self.subject).__name__} registered no such method")
        if not _declared(self.subject, method):
            raise _not_served(method, "its capability is not declared")
        try:
            answer = self._asked(method, params.get("store"), self._registered[method], params)
        except (Refused, RpcError):
            raise
        except BaseException as why:
            if method not in _THROWING_ANSWERS:
                raise
            raise Refused("threw", _told(why)) from why
        return an_object(method, answer)

    def _mailbox(self, method: str, op: Op, params: Params) -> Json:
        declared = self.subject.capabilities
        if not declared.mailbox and not declared.queue:
            raise _not_served(method, "neither mailbox nor queue is declared")
        if op.capability is not None and not getattr(declared, op.capability):
            raise _not_served(method, f"{op.capability} is not declared")
        store_id, *rest = arguments(method, params, op.fields)
        function = getattr(self._find(store_id), op.function, _not_written)
        return op.answer(self._asked(method, store_id, function, *rest))

    def _asked(
        self, method: str, store_id: Json, function: Callable[..., object], *given: Json
    ) -> object:
        """Run the author's code. On a closed store whatever it raises is the refusal `closed`."""
        try:
            return function(*given)
        except NotWritten:
            raise _not_served(method, "the author's class has no such method") from None
        except (Refused, RpcError):
            raise
        except Exception as why:
            if not isinstance(store_id, str) or store_id not in self._closed:
                raise
            raise Refused("closed", f"the store is closed ({_told(why)})") from why

    def _find(self, store_id: str) -> object:
        for stores in (self._open, self._closed):
            store = stores.get(store_id)
            if store is not None:
                return store
        raise Refused("closed", f"no store is open under the id {store_id}")

    def _initialize(self, params: Params) -> Json:
        # Another protocol version is answered all the same: the bench compares, and names both.
        subject = self.subject
        if not subject.name or not subject.version:
            raise BadAnswer(f"{type(subject).__name__} needs a name and a version")
        about = {"name": subject.name, "version": subject.version, "language": "python"}
        if subject.homepage is not None:
            about["homepage"] = subject.homepage
        answer: dict[str, Json] = {
            "protocol": PROTOCOL,
            "kit": KIT,
            "subject": about,
            "pid": os.getpid(),
            "capabilities": subject.capabilities.to_wire(),
        }
        if subject.faces:
            answer["faces"] = list(subject.faces)
        if subject.limits is not None:
            answer["limits"] = subject.limits.to_wire()
        if subject.server is not None:
            answer["server"] = subject.server
        return answer

    def _store_open(self, params: Params) -> Json:
        opened = self._asked("store/open", None, self.subject.open)
        if not isinstance(opened, Opened):
            opened = Opened(opened)
        if opened.root is not None and not os.path.isabs(opened.root):
            raise BadAnswer(f"Opened.root is an absolute folder, not {opened.root!r}")
        answer = self._keep("open", opened.store)
        if opened.location is not None:
            answer["location"] = opened.location
        if opened.root is not None:
            answer["root"] = opened.root
        return answer

    def _store_attach(self, params: Params) -> Json:
        (location,) = arguments("store/attach", params, ("location",))
        store = self._asked("store/attach", None, self.subject.attach, location)
        return self._keep("attach", store)

    def _store_close(self, params: Params) -> Json:
        (store_id,) = arguments("store/close", params, ("store",))
        if store_id in self._closed and self._closed[store_id] is None:
            return {}
        store = self._find(store_id)
        close = getattr(store, "close", _not_written)
        nothing("close")(self._asked("store/close", store_id, close))
        if self._open.pop(store_id, None) is not None:
            self._closed[store_id] = store
            self._closed_kept.append(store_id)
        while len(self._closed_kept) > _CLOSED_STORES_KEPT_MAX:
            self._closed[self._closed_kept.popleft()] = None
        return {}

    def _store_destroy(self, params: Params) -> Json:
        (location,) = arguments("store/destroy", params, ("location",))
        answer = self._asked("store/destroy", None, self.subject.destroy, location)
        return nothing("destroy")(answer)

    def _shutdown(self, params: Params) -> Json:
        self.end()
        return {}

    def _keep(self, function: str, store: object) -> dict[str, Json]:
        if store is None or isinstance(store, Opened):
            raise BadAnswer(f"{function} returns the open store, not {type(store).__name__}")
        store_id = f"store-{next(self._ids)}"
        self._open[store_id] = store
        return {"store": store_id}


def _declared(subject: Subject, method: str) -> bool:
    family = method.split("/")[0]
    if family == "face":
        return bool(subject.faces)
    if family not in ("memory", "bundle", "rules"):
        return True
    served = getattr(subject.capabilities, "site_rules" if family == "rules" else family)
    return served if isinstance(served, bool) else method in served


def _not_written(*_: Json) -> None:
    raise NotWritten


def _not_served(method: str, why: str) -> RpcError:
    return RpcError(NO_SUCH_METHOD, f"{method} is not served: {why}")


def _error(request_id: Json, code: int, message: str, data: Json | None = None) -> bytes:
    error: dict[str, Json] = {"code": code, "message": _sendable(message)}
    if data is not None:
        error["data"] = data
    try:
        return encode({"jsonrpc": "2.0", "id": request_id, "error": error})
    except (ValueError, TypeError, RecursionError) as why:
        return _error(request_id, FAULT, f"JSON cannot carry this refusal ({why}): {message}")


def _told(why: BaseException) -> str:
    if isinstance(why, UnicodeEncodeError) and why.reason == "surrogates not allowed":
        return "a lone surrogate in a text: UTF-8 cannot carry it"
    try:
        return f"{type(why).__name__}: {why}"
    except Exception:
        return type(why).__name__  # Its __str__ raises too: the type is all there is.


def _sendable(message: str) -> str:
    # The message may quote anything, a lone surrogate or a megabyte included.
    return message[:_MESSAGE_CHARS_MAX].encode("utf-8", "backslashreplace").decode("utf-8")


def _quietly(function: Callable[[], object] | None) -> None:
    try:
        if function is not None:
            function()
    except NotWritten:
        pass
    except Exception:
        traceback.print_exc(file=sys.stderr)
