"""Somebody's client program: what it says is understood, and whatever it does is outlived."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from lockcheck.backends.base import Grant, LockSettings
from lockcheck.backends.program import ClientProgram
from lockcheck.backends.program import lock as module
from lockcheck.backends.program.lock import ERRORS, ProgramLock
from lockcheck.backends.program.words import command_of, name_of, promises_of
from lockcheck.errors import InternalError, UserError
from lockcheck.history import EventType, F, Refusal
from lockcheck.nodes.node import children_of
from lockcheck.servers.wire import Refused, WireFailure, classify
from lockcheck.storage.base import Ask, Served
from tests.backends.claims import NotedClaim
from tests.waiting import wait_for

BEGINNING = """
import json, os, sys, time
def say(**body):
    sys.stdout.write(json.dumps({"body": body}) + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)["body"]
    n, kind = asked.get("msg_id"), asked["type"]
    if kind == "init":
        say(type="init_ok", in_reply_to=n)
        continue
"""
Make = Callable[..., ProgramLock]


class Mishaps(list[str]):
    def __call__(self, why: str, lived_ns: int) -> None:
        assert lived_ns <= time.monotonic_ns()
        self.append(why)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr(module, "SHORTEST_PATIENCE_S", 2.0)
    made: list[ProgramLock] = []

    def of(body: str, *promises: str) -> ProgramLock:
        """A lock whose program does that with each request but `init`."""
        script = tmp_path / f"client{len(made)}.py"
        script.write_text(BEGINNING + textwrap.indent(textwrap.dedent(body), "    "))
        program = ClientProgram(command=(sys.executable, str(script)), folder=str(tmp_path))
        settings = LockSettings("c1", 100, Random(1))
        servers = (("192.0.2.1", 6379),)
        lock = ProgramLock(servers, settings, program=program, promises=promises_of(promises))
        lock.mishap = Mishaps()
        made.append(lock)
        return lock

    before = set(children_of(os.getpid()))
    yield of
    for lock in made:
        lock.close()
    assert set(children_of(os.getpid())) <= before  # and it leaves nothing


def failure_of(call: Callable[[], object]) -> tuple[EventType, str, Refusal | None]:
    with pytest.raises((Refused, WireFailure)) as failed:
        call()
    assert isinstance(failed.value, Refused | WireFailure)
    return classify(ERRORS, failed.value)


def test_what_it_grants_and_what_it_is_asked(make: Make) -> None:
    lock = make(
        """
        if kind == "acquire":
            assert asked["ttl_ms"] == 100 and asked["mode"] == "exclusive", asked
            say(type="acquire_ok", in_reply_to=n, token=7, valid_ms=90.5)
            held = n
        if kind == "release":
            assert asked["acquire"] == held and asked["key"] == "k", asked
            say(type="release_ok", in_reply_to=n)
        """
    )
    grant = lock.acquire(NotedClaim())
    assert (grant.key, grant.token, grant.valid_ms) == ("k", 7, 90.5)
    assert lock.release(grant) is None


def test_what_it_holds_is_renewed_and_a_refusal_means_that_it_is_lost(make: Make) -> None:
    lock = make(
        """
        if kind == "acquire":
            say(type="acquire_ok", in_reply_to=n)
            held, renewed = n, 0
        if kind == "renew":
            assert asked["acquire"] == held and asked["ttl_ms"] == 100, asked
            renewed += 1
            if renewed == 1:
                say(type="renew_ok", in_reply_to=n, valid_ms=88)
            elif renewed == 2:
                say(type="error", in_reply_to=n, code=22, text="not any more")
            else:
                os._exit(5)
        """
    )
    grant = lock.acquire(NotedClaim())
    assert lock.renew(grant) == 88
    assert failure_of(lambda: lock.renew(grant))[2] is Refusal.NOT_OWNER
    assert failure_of(lambda: lock.renew(grant))[0] is EventType.INFO
    lock.acquire(NotedClaim())  # by another life of the program, which does not know the grant
    assert failure_of(lambda: lock.renew(grant))[0] is EventType.FAIL


def test_what_it_keeps_itself_is_read_and_written_by_it(make: Make) -> None:
    lock = make(
        """
        if kind == "acquire":
            say(type="acquire_ok", in_reply_to=n, token=5)
            held, data = n, None
        if kind == "read":
            assert asked["acquire"] == held and asked["key"] == "k", asked
            say(type="read_ok", in_reply_to=n, value=data)
        if kind == "write" and asked["value"] == "late":
            say(type="error", in_reply_to=n, code=22, text="fenced")
        elif kind == "write":
            assert asked["base"] == "a" and asked["token"] == 5, asked
            data = asked["value"]
            say(type="write_ok", in_reply_to=n)
        """
    )
    grant = lock.acquire(NotedClaim())
    assert lock.serve(grant, Ask(F.READ, "k", 1)) == Served(None, "", None)
    assert lock.serve(grant, Ask(F.WRITE, "k", 1, "b", "a", 5)) == Served(None, "", "b")
    assert lock.serve(grant, Ask(F.READ, "k", 1)).value == "b"
    assert lock.serve(grant, Ask(F.WRITE, "k", 1, "late", "a", 5)).refusal == "fenced"
    with pytest.raises(InternalError):
        lock.serve(grant, Ask(F.RUN, "k", 1))


def test_clients_without_a_reader_of_json_take_the_first_of_each_name(tmp_path: Path) -> None:
    script = BEGINNING.replace("    asked = ", '    open("asked", "w").write(line); asked = ')
    program = ClientProgram(
        command=(sys.executable, "-c", script),
        folder=str(tmp_path),
        options={"type": "leave", "msg_id": 9, "ttl_ms": 7},
    )
    settings = LockSettings("c1", 100, Random(1))
    ProgramLock((("192.0.2.1", 6379),), settings, program=program, promises=promises_of(())).close()
    body = json.loads((tmp_path / "asked").read_text())["body"]
    assert [*body][:2] == ["type", "msg_id"]
    assert [*body][-1] == "options"


@pytest.mark.parametrize(
    ("code", "outcome", "refused"),
    [
        (22, EventType.FAIL, Refusal.HELD),
        (11, EventType.FAIL, Refusal.UNAVAILABLE),
        (0, EventType.INFO, None),
        (13, EventType.INFO, None),
        (1000, EventType.INFO, None),  # when in doubt
    ],
)
def test_an_error_is_definite_by_its_code(
    make: Make, code: int, outcome: EventType, refused: Refusal | None
) -> None:
    lock = make(f"say(type='error', in_reply_to=n, code={code}, text='because')")
    failed = failure_of(lambda: lock.acquire(NotedClaim()))
    assert (failed[0], failed[2]) == (outcome, refused)
    assert "because" in failed[1]


def test_a_release_of_what_it_does_not_hold(make: Make) -> None:
    lock = make(
        """
        if kind == "acquire":
            say(type="acquire_ok", in_reply_to=n)
        else:
            say(type="error", in_reply_to=n, code=20)
        """
    )
    grant = lock.acquire(NotedClaim())
    assert failure_of(lambda: lock.release(grant))[2] is Refusal.NOT_OWNER


def test_what_it_says_unasked_is_about_one_acquire(make: Make) -> None:
    lock = make(
        """
        if kind == "acquire":
            say(type="queued", acquire=n)
            say(type="queued", acquire=n)
            say(type="queued", acquire=999)
            say(type="acquire_ok", in_reply_to=n)
            say(type="renewing", acquire=n, renewal=1)
            say(type="renewed", renewal=1, valid_ms=50)
            say(type="renewing", acquire=n, renewal=2)
            say(type="not_renewed", renewal=2, code=20, text="gone")
            say(type="renewed", renewal=2)
            say(type="lost", acquire=n, text="the session is over")
        """,
        "waits",
    )
    claim = NotedClaim()
    lock.acquire(claim)
    assert claim.lost_something.wait(30)
    assert claim.told == [
        *("queued", "renewing", "renewed", "renewing", "not renewed: gone"),
        "lost: the session is over",
    ]


class LateClaim(NotedClaim):
    """As that of a run, which has no place in a queue once it was answered."""

    def queued(self) -> None:
        raise InternalError("the claim is no longer under way")


def test_a_place_in_the_queue_that_it_reports_too_late_is_passed_over(make: Make) -> None:
    lock = make(
        """
        say(type="acquire_ok", in_reply_to=n, token=n)
        say(type="queued", acquire=n)
        """
    )
    assert [lock.acquire(LateClaim()).token for _ in range(3)] == [2, 3, 4]  # it still reads


def test_what_is_left_of_an_earlier_life_reaches_no_later_one(make: Make, tmp_path: Path) -> None:
    lock = make(
        f"""
        if kind == "leave":
            open({str(tmp_path / "left")!r}, "w").close()
        elif asked["key"] == "dies" and not os.path.exists("again"):
            open("again", "w").close()
            os._exit(3)
        else:
            say(type="acquire_ok", in_reply_to=n)
        """
    )
    before = lock.acquire(NotedClaim("kept"))
    failure_of(lambda: lock.acquire(NotedClaim("dies")))
    lock.acquire(NotedClaim("kept"))
    lock.leave(before)
    lock.acquire(NotedClaim("another"))  # after that, it would have read it
    assert not (tmp_path / "left").exists()


def test_what_comes_after_it_was_given_up_is_left(make: Make, tmp_path: Path) -> None:
    lock = make(
        f"""
        if kind == "acquire" and n == 2:
            time.sleep(3)
        if kind == "leave":
            open({str(tmp_path / "left")!r}, "a").write(str(asked["acquire"]))
        else:
            say(type="acquire_ok", in_reply_to=n)
        """
    )
    outcome, why, _ = failure_of(lambda: lock.acquire(NotedClaim()))
    assert (outcome, "did not answer in time" in why) == (EventType.INFO, True)
    assert lock.acquire(NotedClaim()).token is None
    left = tmp_path / "left"
    wait_for(lambda: left.exists() and left.read_text(), "it is left")
    assert left.read_text() == "2"


@pytest.mark.parametrize(
    "answer",
    [
        "say(type='acquire_ok', in_reply_to=n, token='many')",
        "say(type='acquire_ok', in_reply_to=n, token=10**30)",
        "say(type='acquire_ok', in_reply_to=n, valid_ms='long')",
        "say(type='acquire_ok', in_reply_to=n, valid_ms=-1)",
        "say(type='release_ok', in_reply_to=n)",
        "say(type='granted', in_reply_to=n)",
        "say(in_reply_to=n)",
    ],
)
def test_an_answer_without_sense_is_unknown(make: Make, answer: str) -> None:
    outcome, why, _ = failure_of(lambda: make(answer).acquire(NotedClaim()))
    assert (outcome, "no sense" in why) == (EventType.INFO, True)


DIES = {
    "os._exit(3)": "it ended with 3",
    "os.kill(os.getpid(), 9)": "it was killed by SIGKILL",
    "sys.stdout.write('x' * 70000); sys.stdout.flush(); time.sleep(60)": "without a newline",
    "while True: print('no message')": "lines in a second",
    "while True: say(type='queued', acquire=1)": "lines in a second",
    "os.close(1); time.sleep(60)": "it closed its output",
    "os.fork() or time.sleep(60); os._exit(4)": "it ended with 4",
    "os.fork() or (os.setsid(), time.sleep(60)); os._exit(4)": "it ended with 4",
}


@pytest.mark.parametrize("how", DIES)
def test_one_that_ends_is_begun_anew_and_loses_what_it_held(make: Make, how: str) -> None:
    lock = make(
        f"""
        if kind == "release" or os.path.exists("again"):
            say(type="acquire_ok", in_reply_to=n)
            continue
        if asked["key"] == "first":
            say(type="acquire_ok", in_reply_to=n)
            continue
        open("again", "w").close()
        {how}
        """
    )
    first = NotedClaim("first")
    grant = lock.acquire(first)
    outcome, why, _ = failure_of(lambda: lock.acquire(NotedClaim()))
    assert (outcome, "before it answered" in why) == (EventType.INFO, True)
    assert first.lost_something.wait(30)
    again = lock.acquire(NotedClaim())
    assert isinstance(again, Grant)
    mishaps = lock.mishap
    assert isinstance(mishaps, Mishaps)
    assert len(mishaps) == 1
    assert DIES[how] in mishaps[0]
    # What it held is nobody's to release.
    assert failure_of(lambda: lock.release(grant))[0] is EventType.FAIL


def test_one_that_hangs_is_begun_anew(make: Make) -> None:
    lock = make(
        """
        if os.path.exists("again"):
            say(type="acquire_ok", in_reply_to=n)
            continue
        open("again", "w").close()
        time.sleep(60)
        """
    )
    for _ in range(module.MOST_UNANSWERED):
        assert "did not answer" in failure_of(lambda: lock.acquire(NotedClaim()))[1]
    assert lock.acquire(NotedClaim()).key == "k"
    mishaps = lock.mishap
    assert isinstance(mishaps, Mishaps)
    assert [*mishaps] == ["it left 2 requests without an answer"]


def test_what_it_prints_is_bounded_and_no_message(
    make: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    lock = make(
        """
        print("INFO: connected")
        sys.stderr.write("e" * 3_000_000)
        say(type="acquire_ok", in_reply_to=n)
        """
    )
    lock.acquire(NotedClaim())
    seen: list[str] = []

    def enough() -> bool:
        seen.append(capfd.readouterr().err)
        return "the rest is dropped" in "".join(seen)

    wait_for(enough, "it stops passing it on")
    text = "".join(seen)
    assert "program: no message: INFO: connected" in text
    assert len(text) < 1_100_000


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("/no/such/program",), "No such file"),
        ((sys.executable, "-c", "import sys; sys.exit('no driver')"), "it ended with 1"),
        ((sys.executable, "-c", REFUSES := "print('{\"body\": {\"type\": \"error\", \"in_reply_to\""
          ": 1, \"code\": 11, \"text\": \"no broker here\"}}', flush=True); input()"),
         "no broker here"),
    ],
)  # fmt: skip
def test_one_that_does_not_begin_is_an_error_with_its_cause(
    command: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    program = ClientProgram(command=command, folder=str(tmp_path))
    with pytest.raises(UserError, match=why) as refused:
        ProgramLock(
            (), LockSettings("c1", 100, Random(1)), program=program, promises=promises_of(())
        )
    assert "lockcheck validate" in refused.value.cure


def test_a_claim_that_waits_may_wait(make: Make) -> None:
    lock = make("say(type='acquire_ok', in_reply_to=n, token=asked['wait_ms'])", "waits")
    assert 1000 < (lock.acquire(NotedClaim(patience_s=5)).token or 0) <= 5000
    patient = make("say(type='acquire_ok', in_reply_to=n, token=asked['wait_ms'])")
    assert patient.acquire(NotedClaim(patience_s=5)).token == 0


def test_messages_from_several_threads_are_whole_lines(make: Make) -> None:
    """A loss may come while an answer is awaited."""
    lock = make(
        """
        if kind == "acquire":
            say(type="acquire_ok", in_reply_to=n)
        else:
            say(type="lost", acquire=asked["acquire"])
            say(type="release_ok", in_reply_to=n)
        """
    )
    claims = [NotedClaim(str(number)) for number in range(50)]
    grants = [lock.acquire(claim) for claim in claims]
    assert all(lock.release(grant) is None for grant in grants)
    assert not any(claim.told for claim in claims)  # it was released already: nothing is lost
    assert threading.active_count() < 30


def test_a_client_in_python_may_be_a_file(tmp_path: Path) -> None:
    """In whichever folder: what stands beside it is imported."""
    folder = tmp_path / "my locks"
    folder.mkdir()
    (folder / "beside.py").write_text("TOKEN = 7\n")
    body = "import beside\nclass Lock:\n    def acquire(self, key):\n        return beside.TOKEN\n"
    (folder / "mylock.py").write_text(body)
    client = f"'{folder}/mylock.py:Lock'"
    program = ClientProgram(command=command_of(client), folder=str(tmp_path))
    settings = LockSettings("c1", 100, Random(1))
    lock = ProgramLock((), settings, program=program, promises=promises_of(()))
    try:
        assert lock.acquire(NotedClaim()).token == 7
    finally:
        lock.close()
    assert name_of(client) == "Lock"
