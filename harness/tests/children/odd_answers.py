"""A mailbox that nobody writes to, with one oddity: deep, long, twice-at-the-end, chatty, granularity,
tombstone-alone."""
import json
import os
import sys

MODE = sys.argv[1]


def send(message):
    sys.stdout.write(message + "\n")
    sys.stdout.flush()


def reply(request, result):
    send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))


for line in sys.stdin:
    request = json.loads(line)
    method = request["method"]
    if MODE == "chatty":
        for _ in range(50):
            send('{"jsonrpc":"2.0","method":"log","params":"hello"}')
    if method == "initialize":
        manifest = {
            "protocol": "1", "kit": "1.0", "subject": {"name": "odd", "version": "1"},
            "pid": os.getpid(), "capabilities": {"mailbox": True, "clock": "caller"},
        }
        if MODE == "granularity":
            manifest["limits"] = {"leaseGranularityMs": 2**53}
        if MODE == "tombstone-alone":
            manifest["capabilities"]["tombstone"] = True
        reply(request, manifest)
    elif method == "store/open":
        reply(request, {"store": "s1"})
    elif method == "mailbox/claim" and MODE == "deep":
        send('{"jsonrpc":"2.0","id":%d,"result":%s}' % (request["id"], "[" * 1000 + "]" * 1000))
    elif method == "mailbox/claim" and MODE == "long":
        reply(request, {"lease": "x" * 3_000_000})
    elif method == "mailbox/claim" and MODE == "twice-at-the-end":
        reply(request, None)
        if request["params"]["owner"] == "cid":
            reply(request, None)
    elif method == "mailbox/claim":
        reply(request, None)
    elif method == "shutdown":
        reply(request, {})
        break
    else:
        reply(request, {})
