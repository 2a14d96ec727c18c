"""A lock's client for lockcheck, in Python: one file, without dependencies, for Python 3.8 on.

    python lockcheck_client.py my_package.locks:MyLock      or locks/mylock.py:MyLock

What is named is one of these; its parameters are filled in by their names.

- A class or function that makes a lock for one key: it has `key` or `name` among its parameters.
  The lock has `acquire` and `release`, or works in `with`. It is made anew for each acquire.
- A class without them: one object for all keys, with `acquire(key)` and `release(key)`.

    servers (a list of (host, port)), host, port, url (redis://host:port), ttl (seconds), ttl_ms,
    key, name, node (this client's name), lost (call it when the lock is lost), options

`acquire` gets what it has parameters for: key, ttl, ttl_ms, wait (seconds), wait_ms, mode, timeout
or blocking_timeout (seconds), blocking. It is granted if it returns; a number is its fencing token,
and False means that the lock is held. A `release` that returns False was not the owner's any more.
What renews a lease (`renew`, `extend` or `reacquire`) gets key, ttl, ttl_ms, expire or
additional_time (seconds) and replace_ttl; False means that it was not the owner's any more. Where
it promises `stores`, `read` (key) and `write` (key, value, base, token) are its own, too; a write
that returns False was refused.
An exception means that it may have happened, unless it is one of `refusals`, an attribute of the
lock, of its class or of its module. All of it may be asynchronous. `servers` ("redis*3") and
`promises` (["token"]) are attributes of the same, as --servers and --promises take them, and so are
`version` (text, for the report) and `ttl_ms`, if it has one of its own.
"""

import asyncio
import importlib
import inspect
import json
import os
import signal
import sys
import threading

UNKNOWN, NOT_SUPPORTED, NOT_OWNER, HELD = 13, 10, 20, 22
FILLED_IN = ["servers", "host", "port", "url", "ttl", "ttl_ms"]
FILLED_IN += ["key", "name", "node", "lost", "options"]
ABOUT = {"servers": str, "promises": (str, list, tuple), "version": str, "ttl_ms": int}
REQUESTS = ["acquire", "renew", "read", "write", "release"]  # of one who has begun
_writing = threading.Lock()
_out = None


class Refused(Exception):
    """It certainly did not happen."""


def say(body):
    line = json.dumps({"src": "client", "dest": "lockcheck", "body": body}).encode() + b"\n"
    with _writing:
        _out.write(line)


class Loop:
    """Runs coroutines, between requests, too: keepers of asynchronous locks need it."""

    def __init__(self):
        self._loop = None

    def done(self, result):
        if not inspect.isawaitable(result):
            return result
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True).start()

        async def wait():
            return await result

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result()

    def call(self, what, *arguments, **more):
        """Calls it on the loop's thread if it has to be awaited: it may look for the loop."""
        if not inspect.iscoroutinefunction(what):
            return self.done(what(*arguments, **more))

        async def call():
            return await what(*arguments, **more)

        return self.done(call())


def accepted(what, given):
    """Those of the values that it has parameters for."""
    try:
        parameters = inspect.signature(what).parameters.values()
    except (TypeError, ValueError):  # it is written in C
        return {}
    taken = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return {name: value for name, value in given.items() if name in taken}


def lacking(what, given):  # the parameters that nothing is known for
    parameters = inspect.signature(what).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]
    return [name for name in needed if name not in given]


def first_with(lock, names):
    found = (getattr(lock, name, None) for name in names)
    return next((method for method in found if callable(method)), None)


class Client:
    def __init__(self, make, module, asked):
        self._make, self._module, self._loop = make, module, Loop()
        servers = [address.rpartition(":") for address in asked["servers"]]
        self._servers = [(host, int(port)) for host, _, port in servers]
        host, port = self._servers[0] if self._servers else ("", 0)
        self._ttl_ms = asked["ttl_ms"]
        self._known = {
            "servers": self._servers,
            "host": host,
            "port": port,
            "url": f"redis://{host}:{port}",
            "ttl": self._ttl_ms / 1000,
            "ttl_ms": self._ttl_ms,
            "node": asked["node_id"],
            "options": asked.get("options", {}),
        }
        per_key = {"key": "", "name": "", "lost": None}
        if unknown := lacking(make, {**self._known, **per_key}):
            raise Refused(
                "{} needs {!r}, and what is known is {}".format(
                    make.__name__, unknown[0], ", ".join(FILLED_IN)
                )
            )
        self._per_key = bool(accepted(make, {"key": "", "name": ""}))
        self._one = None if self._per_key else self._made({"lost": self._lost_by_key})
        self._held = {}  # by the numbers of their acquires: the lock, and its key

    def _made(self, more):
        return self._loop.call(self._make, **accepted(self._make, {**self._known, **more}))

    def _lost_by_key(self, key, why=""):
        for number, (_, held) in list(self._held.items()):
            if held == key:
                say({"type": "lost", "acquire": number, "text": str(why)})

    def acquire(self, asked):
        key, wait_ms, number = asked["key"], asked["wait_ms"], asked["msg_id"]

        def lost(why=""):
            say({"type": "lost", "acquire": number, "text": str(why)})

        lock = self._made({"key": key, "name": key, "lost": lost}) if self._per_key else self._one
        given = {
            "key": key,
            "ttl": self._ttl_ms / 1000,
            "ttl_ms": self._ttl_ms,
            "wait": wait_ms / 1000,
            "wait_ms": wait_ms,
            "mode": asked.get("mode"),
            "timeout": wait_ms / 1000,
            "blocking_timeout": wait_ms / 1000,
            "blocking": wait_ms > 0,
        }
        enter = first_with(lock, ["acquire", "lock", "__enter__", "__aenter__"])
        if enter is None:
            raise Refused(f"{lock!r} has no acquire, and does not work in `with`")
        result = self._called(lock, enter, accepted(enter, given))
        if result is False:
            return {"type": "error", "code": HELD, "text": "held"}
        self._held[number] = lock, key
        if isinstance(result, dict):
            return {"type": "acquire_ok", **result}
        is_token = isinstance(result, int) and not isinstance(result, bool)
        return {"type": "acquire_ok", **({"token": result} if is_token else {})}

    def renew(self, asked):
        lock, key = self._held[asked["acquire"]]
        renew = first_with(lock, ["renew", "extend", "reacquire"])
        if renew is None:
            return {"type": "error", "code": NOT_SUPPORTED, "text": "it has no renew"}
        ttl = self._ttl_ms / 1000
        given = {"key": key, "ttl": ttl, "ttl_ms": self._ttl_ms, "expire": ttl}
        given.update(additional_time=ttl, replace_ttl=True)
        result = self._called(lock, renew, accepted(renew, given))
        if result is False:
            return {"type": "error", "code": NOT_OWNER, "text": "it was not held any more"}
        return {"type": "renew_ok"}

    def read(self, asked):
        lock, key = self._held[asked["acquire"]]
        value = self._called(lock, lock.read, accepted(lock.read, {"key": key}))
        return {"type": "read_ok", "value": getattr(value, "decode", lambda: value)()}

    def write(self, asked):
        lock, key = self._held[asked["acquire"]]
        given = {name: asked.get(name) for name in ("value", "base", "token")}
        if self._called(lock, lock.write, accepted(lock.write, {"key": key, **given})) is False:
            return {"type": "error", "code": HELD, "text": "its storage refused it"}
        return {"type": "write_ok"}

    def release(self, asked):
        lock, key = self._held.pop(asked["acquire"])
        leave = first_with(lock, ["release", "unlock"])
        if leave is not None:
            result = self._called(lock, leave, accepted(leave, {"key": key}))
        else:
            leave = first_with(lock, ["__exit__", "__aexit__"])
            self._called(lock, leave, {}, None, None, None)
            result = None
        if result is False:
            return {"type": "error", "code": NOT_OWNER, "text": "it was not held any more"}
        return {"type": "release_ok"}

    def leave(self, asked):
        """It will not be released: what keeps it alive has to end."""
        lock, key = self._held.pop(asked["acquire"], (None, ""))
        leave = first_with(lock, ["leave", "release", "unlock"])
        if leave is not None:
            self._called(lock, leave, accepted(leave, {"key": key}))

    def _called(self, lock, what, named, *arguments):
        places = (lock, type(lock), self._make, self._module)
        refusals = next((p.refusals for p in places if hasattr(p, "refusals")), ())
        try:
            return self._loop.call(what, *arguments, **named)
        except refusals as error:
            raise Refused(f"{type(error).__name__}: {error}") from error


def answer(asked, what):
    """What came of it. Whatever a library raises, and did not call a refusal, may have happened."""
    try:
        said = what(asked)
    except Refused as error:
        code = HELD if asked["type"] == "acquire" else NOT_OWNER
        said = {"type": "error", "code": code, "text": str(error)}
    except Exception as error:
        said = {
            "type": "error",
            "code": UNKNOWN,
            "text": f"{type(error).__name__}: {error}",
        }
    say({**said, "in_reply_to": asked["msg_id"]})


def named(what):
    module_name, _, path = what.rpartition(":")
    if module_name.endswith(".py"):
        folder, file = os.path.split(os.path.abspath(module_name))
        sys.path.insert(0, folder)
        module_name = file[: -len(".py")]
    module = found = importlib.import_module(module_name)
    for name in path.split("."):
        found = getattr(found, name)
    return found, module


def begin(what, module, asked):
    try:
        client = Client(what, module, asked)
    except Refused as error:
        return None, {"type": "error", "code": 12, "text": str(error)}
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return None, {"type": "error", "code": 11, "text": text}
    return client, {"type": "init_ok"}


def serve(what, module=None):
    """Answers requests until there are no more. Prints of a library go to standard error."""
    global _out
    _out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end of the input is the end
    client, module = None, module or sys.modules[what.__module__]
    for line in sys.stdin:
        asked = json.loads(line)["body"]
        kind = asked["type"]
        if kind == "init":
            client, said = begin(what, module, asked)
            say({**said, "in_reply_to": asked["msg_id"]})
        elif kind == "describe":
            about = {name: getattr(what, name, getattr(module, name, None)) for name in ABOUT}
            said = {name: value for name, value in about.items() if isinstance(value, ABOUT[name])}
            if isinstance(said.get("promises"), str):
                said["promises"] = [said["promises"]]
            say({"type": "describe_ok", **said, "in_reply_to": asked["msg_id"]})
        elif kind in REQUESTS and client is not None:
            answer(asked, getattr(client, kind))
        elif kind == "leave":
            try:
                client.leave(asked)
            except Exception as error:
                print(f"leave: {type(error).__name__}: {error}", file=sys.stderr)
        elif "msg_id" in asked:
            said = {"type": "error", "code": NOT_SUPPORTED, "text": "unknown: " + kind}
            say({**said, "in_reply_to": asked["msg_id"]})
    os._exit(0)  # whatever threads a library has left


if __name__ == "__main__":
    sys.modules["lockcheck_client"] = sys.modules["__main__"]  # for those who import `Refused`
    sys.path.insert(0, os.getcwd())
    serve(*named(sys.argv[1]))
