"""Jepsen's histories: the meaning of their lines, in every notation."""

from __future__ import annotations

from io import BytesIO

import pytest

from lockcheck.formats import FORMATS, ReadOptions
from lockcheck.formats.source import Source
from tests.formats.texts import NAME, brief, error_in, events_of, history_of, place_and_reason

EDN = """
{:process 0, :type :invoke, :f :acquire, :value nil, :time 5, :index 0}
{:process :nemesis, :type :info, :f :start, :value [:isolated {"n1" #{"n2"}}], :time 6}
{:process 0, :type :ok, :f :acquire, :value {:fence 7}, :time 9, :index 1}
{:process 1, :type :invoke, :f :lock, :value nil, :time 10}
{:process 1, :type :info, :f :lock, :value :timed-out, :time 12}
{:process 0, :type :invoke, :f :unlock, :value nil, :time 13, :error nil}
{:process 0, :type :fail, :f :unlock, :time 14, :error [:not-owner "x"]}
"""
MEANT = [
    "5 0 invoke acquire",
    "6 nemesis info start =[':isolated', {'n1': ['n2']}]",
    "9 0 ok acquire token=7",
    "10 1 invoke acquire",
    "12 1 info acquire error=:timed-out",
    "13 0 invoke release",
    '14 0 fail release error=[":not-owner","x"]',
]


def test_edn() -> None:
    assert brief(events_of("edn", EDN)) == MEANT
    assert brief(events_of("edn", f"[{EDN}]")) == MEANT
    assert brief(events_of("edn", EDN.replace("{:process", "#jepsen.history.Op{:process"))) == MEANT


def test_the_nemesis_of_others_is_no_fault_of_ours() -> None:
    history = history_of("edn", EDN)
    assert not history.faults
    assert [(o.process, o.f, o.ok, o.unknown) for o in history.operations] == [
        (0, "acquire", True, False),
        (1, "acquire", False, True),
        (0, "release", False, False),
    ]
    assert history.holds[0].token == 7


TXT = """\
0\t:invoke\t:write\t1
:nemesis\t:info\t:start\t"Cut off {:n1 #{:n3}}"
1\t:invoke\t:cas\t[0 3]
0\t:ok\t:write\t1
1\t:fail\t:cas\t[0 3]\t:value-mismatch
2\t:invoke\t:read\tnil
2\t:ok\t:read\t1
3\t:invoke\t:write\t4
3\t:info\t:write\t:timed-out
"""
TXT_MEANT = [
    "0 0 invoke write =1",
    "1 nemesis info start =Cut off {:n1 #{:n3}}",
    "2 1 invoke cas =[0, 3]",
    "3 0 ok write",
    "4 1 fail cas error=:value-mismatch",
    "5 2 invoke read",
    "6 2 ok read =1",
    "7 3 invoke write =4",
    "8 3 info write error=:timed-out",
]


@pytest.mark.parametrize(
    "text",
    [TXT, TXT.replace("\n", "\r\n"), "\ufeff" + TXT, TXT + "\n  \n", TXT.rstrip("\n")],
    ids=["as it is", "of Windows", "with a mark", "with blanks", "without its last end"],
)
def test_txt(text: str) -> None:
    assert brief(events_of("txt", text)) == TXT_MEANT


def test_txt_with_blanks_instead_of_tabs() -> None:
    text = "0 :invoke :read nil\n0 :ok :read [1 2]\n"
    assert brief(events_of("txt", text)) == ["0 0 invoke read", "1 0 ok read =[1, 2]"]


@pytest.mark.parametrize(
    "before",
    ["INFO  jepsen.util - ", "INFO [2018-06-07 11:48:23,015] jepsen worker 3 - jepsen.util "],
)
def test_log(before: str) -> None:
    lines = "".join(before + line + "\n" for line in TXT.splitlines())
    noise = "INFO  jepsen.core - Run complete, writing\nINFO  jepsen.util - and now\n"
    assert brief(events_of("log", noise + lines + noise)) == TXT_MEANT


JSON = [
    '{"process": 0, "type": "invoke", "f": "read", "value": null, "time": 1, "index": 0}',
    '{"process": "nemesis", "type": "info", "f": "kill", "time": 2}',
    '{"process": 0, "type": "ok", "f": "read", "value": ":x", "time": 3, "error": null}',
]
JSON_MEANT = ["1 0 invoke read", "2 nemesis info kill", "3 0 ok read =:x"]


@pytest.mark.parametrize(
    "text",
    ["\n".join(JSON), "[" + ", ".join(JSON) + "]", "[\n" + ",\n".join(JSON) + "\n]\n"],
    ids=["lines", "an array", "an array of lines"],
)
def test_json(text: str) -> None:
    assert brief(events_of("jepsen-json", text)) == JSON_MEANT


def test_without_times_the_order_is_the_time_and_no_lease_can_be_judged() -> None:
    assert error_in("txt", TXT, ReadOptions(ttl_ms=1000)) is not None
    assert history_of("txt", TXT, ReadOptions(model="cas-register")).terms.model == "cas-register"


def test_times_may_go_back_between_threads() -> None:
    lines = [
        "{:process 0 :type :invoke :f :acquire :time 5}",
        "{:process 1 :type :invoke :f :acquire :time 3}",
        "{:process 0 :type :ok :f :acquire :time 5}",
        "{:process 0 :type :invoke :f :release :time 5}",
    ]
    assert brief(events_of("edn", "\n".join(lines))) == [
        "3 1 invoke acquire",
        "5 0 invoke acquire",
        "5 0 ok acquire",
        "5 0 invoke release",
    ]


def ops(*lines: str) -> str:
    """`0 invoke read [1 nil]` and so on, as EDN."""
    written = []
    for line in lines:
        process, kind, f, value = line.split(maxsplit=3)
        written.append(f"{{:process {process} :type :{kind} :f :{f} :value {value}}}")
    return "\n".join(written)


def keys_in(*lines: str) -> list[str | None]:
    events = events_of("edn", ops(*lines))
    return [event.key for event in events if event.type == "invoke"]


KEYED = {
    "reads": (["0 invoke read [1 nil]", "0 ok read [1 5]", "1 invoke write [2 6]"], ["1", "2"]),
    "a cas": (["0 invoke cas [1 [3 4]]", "1 invoke write [1 2]"], ["1", "1"]),
    "locks": (["0 invoke acquire [:a nil]", "1 invoke release [:b nil]"], [":a", ":b"]),
    "a pair by its tag": (["0 invoke write #jepsen.independent.Tuple [1 2]"], ["1"]),
    "no pairs": (["0 invoke read nil", "0 ok read [1 5]", "1 invoke write [2 6]"], [None, None]),
    "writes alone": (["0 invoke write [1 2]", "1 invoke write [1 3]"], [None, None]),
    "another key in the answer": (["0 invoke read [1 nil]", "0 ok read [2 5]"], [None]),
    "an answer that is none": (["0 invoke read [1 nil]", "0 ok read 5"], [None]),
    "a cas of one register": (["0 invoke cas [1 2]", "1 invoke read nil"], [None, None]),
    "names of locks": (
        ["0 invoke acquire :a", "1 invoke acquire :b", "0 ok acquire :a", "0 invoke release :b"],
        [":a", ":b", ":b"],
    ),
    "names of clients": (["0 invoke acquire 7", "1 invoke acquire 8"], [None, None]),
}


@pytest.mark.parametrize(("lines", "keys"), KEYED.values(), ids=KEYED)
def test_which_operations_belong_to_the_same_object(
    lines: list[str], keys: list[str | None]
) -> None:
    assert keys_in(*lines) == keys


def test_values_of_pairs() -> None:
    lines = ["0 invoke read [1 nil]", "0 ok read [1 5]", "1 invoke cas [1 [5 6]]"]
    events = events_of("edn", ops(*lines, "1 info cas :timed-out"))
    assert [(e.key, e.value) for e in events] == [
        ("1", None),
        ("1", 5),
        ("1", [5, 6]),
        ("1", None),
    ]


def test_a_key_of_its_own() -> None:
    text = '{:process 0 :type :invoke :f :get :key "7" :value nil}'
    assert brief(events_of("edn", text)) == ["0 0 invoke read 7"]


def tokens_in(*lines: str) -> list[int | None]:
    events = events_of("edn", ops(*lines))
    return [event.token for event in events if event.type == "ok"]


TOKENS = {
    "a number": (["0 invoke acquire nil", "0 ok acquire 3"], [3]),
    "a fence": (["0 invoke acquire nil", "0 ok acquire {:fence 3 :client 9}"], [3]),
    "a token": (["0 invoke acquire nil", '0 ok acquire {"token" 3}'], [3]),
    "the fence that is none": (["0 invoke acquire nil", "0 ok acquire {:fence 0}"], [None]),
    "what was asked": (["0 invoke acquire 3", "0 ok acquire 3"], [None]),
    "of a pair": (["0 invoke acquire [1 nil]", "0 ok acquire [1 {:fence 4}]"], [4]),
    "no number": (["0 invoke acquire nil", "0 ok acquire :yes"], [None]),
    "a release": (["0 invoke release nil", "0 ok release 3"], [None]),
    "names of clients": (
        [
            "0 invoke acquire nil",
            "0 ok acquire 7",
            "0 invoke acquire nil",
            "0 ok acquire 7",
            "1 invoke acquire nil",
            "1 ok acquire 8",
        ],
        [None, None, None],
    ),
    "a token given twice": (
        ["0 invoke acquire nil", "0 ok acquire 7", "1 invoke acquire nil", "1 ok acquire 7"],
        [7, 7],
    ),
}


@pytest.mark.parametrize(("lines", "tokens"), TOKENS.values(), ids=TOKENS)
def test_tokens(lines: list[str], tokens: list[int | None]) -> None:
    assert tokens_in(*lines) == tokens


def test_names_that_mean_something_else_to_us() -> None:
    text = ops("0 invoke stall nil", "0 ok stall 1", "1 invoke terms 5", "1 info terms 5")
    history = history_of("edn", text)
    assert [o.f for o in history.operations] == ["stall operation", "terms operation"]


OPEN = "{:process 3 :type :invoke :f :read :value nil :time 5}\n"
NAMED = {
    "edn": (
        '{:process "c3" :type :invoke :f :write :value 1}{:process "c3" :type :ok :f :write}',
        ["c3"],
    ),
    "edn, a symbol": ("{:process c3 :type :invoke :f :write :value 1}", ["c3"]),
    "edn, digits": ('{:process "7" :type :invoke :f :write :value 1}', [7]),
    "edn, odd digits": ('{:process "007" :type :invoke :f :write :value 1}', ["007"]),
    "edn, many digits": (f'{{:process "{10**20}" :type :invoke :f :read}}', [str(10**20)]),
    "edn, 18 digits": (f'{{:process "{10**17}" :type :invoke :f :read}}', [10**17]),
    "edn, 19 digits": (f"{{:process {10**18} :type :invoke :f :read}}", [10**18]),
    "edn, a name of ours": ('{:process "storage" :type :invoke :f :read}', ["client storage"]),
    "json": ('{"process": "c3", "type": "invoke", "f": "read"}', ["c3"]),
    "txt": ("c3\t:invoke\t:read\tnil\nc3\t:ok\t:read\t1\n", ["c3"]),
    "txt, in quotes": ('"c 3"\t:invoke\t:read\tnil\n', ["c 3"]),
    "log": ("INFO  jepsen.util - c3\t:invoke\t:read\tnil\n", ["c3"]),
    "log, in quotes": ('INFO  jepsen.util - "c3"\t:invoke\t:read\tnil\n', ["c3"]),
}


@pytest.mark.parametrize("name", NAMED)
def test_clients_with_names(name: str) -> None:
    text, clients = NAMED[name]
    form = name.partition(",")[0].replace("json", "jepsen-json")
    assert [o.process for o in history_of(form, text).operations] == clients


def test_what_two_clients_with_names_did_is_judged() -> None:
    lines = ['"a" invoke acquire nil', '"a" ok acquire nil', '"b" invoke acquire nil']
    history = history_of("edn", ops(*lines, '"b" ok acquire nil'))
    assert [hold.process for hold in history.holds] == ["a", "b"]


CLIENT = {
    "edn": "{:process 1 :type :invoke :f :read}",
    "jepsen-json": '{"process": 1, "type": "invoke", "f": "read"}',
    "txt": "1\t:invoke\t:read\tnil",
    "log": "INFO  jepsen.util - 1\t:invoke\t:read\tnil",
}
STRANGER = {
    "edn": "{:process %s :type :info :f :x}",
    "jepsen-json": '{"process": "%s", "type": "info", "f": "x"}',
    "txt": "%s\t:info\t:x\tnil",
    "log": "INFO  jepsen.util - %s\t:info\t:x\tnil",
}


@pytest.mark.parametrize("form", CLIENT)
def test_the_user_is_warned_of_processes_that_are_no_clients(form: str) -> None:
    def notes(*processes: str) -> list[str]:
        source = Source(NAME)
        text = "\n".join([CLIENT[form], *(STRANGER[form] % process for process in processes)])
        events = list(FORMATS[form].read(BytesIO(text.encode()), source))
        assert {event.process for event in events[1:]} <= {"nemesis"}
        return [note for note in source.notes if "ignored" in note]

    assert notes(":nemesis", ":nemesis") == []
    (note,) = notes(":nemesis", ":a")
    assert note == (
        "1 operation was ignored, of processes that are neither clients nor the nemesis: "
        ":a (a client is a number or a string)"
    )
    (note,) = notes(":b", ":a", ":c", ":d", ":a")
    assert note.startswith("5 operations were ignored")
    assert ":a, :b, :c, ... (" in note


NO_PROCESSES = {
    "true": ("edn", "{:process true :type :ok :f :read}", "neither a number nor a name: true"),
    "nil": ("edn", "{:process nil :type :ok :f :read}", "neither a number nor a name: null"),
    "a fraction": ("edn", "{:process 1.5 :type :ok :f :read}", "neither a number nor a name: 1.5"),
    "huge": ("edn", f"{{:process {1 << 63} :type :ok :f :read}}", "a process beyond 64 bits: 922"),
    "no name": ("edn", '{:process "" :type :ok :f :read}', "its :process has no name"),
    "json true": ("jepsen-json", '{"process": true, "type": "ok", "f": "read"}', "name: true"),
    "json huge": ("jepsen-json", f'{{"process": {1 << 63}, "type": "ok", "f": "r"}}', "64 bits"),
}


@pytest.mark.parametrize(("form", "text", "reason"), NO_PROCESSES.values(), ids=NO_PROCESSES)
def test_what_can_be_no_client_is_refused(form: str, text: str, reason: str) -> None:
    line, column, why = place_and_reason(error_in(form, f"{CLIENT[form]}\n  {text}"))
    assert (line, column) == (2, 3)
    assert reason in why


DAMAGED = {
    "nothing": ("edn", "", 0, None, "it contains no operations"),
    "no map": ("edn", OPEN + " [1]", 2, 2, "an operation is a map"),
    "no type": ("edn", OPEN + "{:process 1 :f :read}", 2, 1, "an operation without its :type"),
    "no process": ("edn", "{:type :ok :f :read}", 1, 1, "an operation without its :process"),
    "another type": (
        "edn",
        "{:process 1 :type :maybe :f :read}",
        1,
        1,
        "its :type is none of invoke, ok, fail, info: maybe",
    ),
    "no time": ("edn", OPEN + "{:process 1 :type :ok :f :read}", 2, 1, "some operations have a"),
    "a time that is none": (
        "edn",
        "{:process 1 :type :ok :f :read :time 1.5}",
        1,
        1,
        "its :time is not a number of nanoseconds: 1.5",
    ),
    "busy": ("edn", OPEN + OPEN, 2, 1, "process 3 has an open operation already"),
    "never asked": (
        "edn",
        OPEN + "{:process 3 :type :ok :f :write :time 6}",
        2,
        1,
        "process 3 has an answer to a write that it never invoked",
    ),
    "back in time": (
        "edn",
        OPEN + "{:process 3 :type :ok :f :read :time 4}",
        2,
        1,
        "its time is before that of process 3's line above",
    ),
    "half a cas": (
        "edn",
        "{:process 1 :type :invoke :f :cas :value 3}",
        1,
        1,
        "a cas without its pair of expected and new value",
    ),
    "a token beyond all bounds": (
        "edn",
        f"{{:process 1 :type :invoke :f :lock}}{{:process 1 :type :ok :f :lock :value {1 << 70}}}",
        1,
        36,
        f"a token beyond 64 bits: {1 << 70}",
    ),
    "no columns": ("txt", TXT + "once upon a time", 10, 1, "not an operation: process, type,"),
    "a value without end": (
        "txt",
        "3\t:invoke\t:write\t[1 2\n",
        1,
        22,
        "the file ends inside a `[",
    ),
    "two values": ("txt", "3 :invoke :write 1 2\n", 1, 18, "not one value"),
    "a damaged log": (
        "log",
        "INFO  jepsen.util - 3\t:invoked\t:write\t1\n",
        1,
        21,
        "not an operation: process, type,",
    ),
    "an empty log": ("log", "INFO  jepsen.core - hello\n", 0, None, "it contains no operations"),
    "json without end": ("jepsen-json", f"[{JSON[0]}", 1, 85, "the file ends inside an object"),
    "no json": ("jepsen-json", f'{JSON[0]}\n{{"process": x}}', 2, 13, "JSON is malformed: invalid"),
    "no object": ("jepsen-json", f"{JSON[0]}\n7", 2, 1, "expected an object here"),
    "json after its end": ("jepsen-json", f"[{JSON[0]}] [", 1, 87, "expected an object here"),
}


@pytest.mark.parametrize(
    ("form", "text", "line", "column", "reason"), DAMAGED.values(), ids=DAMAGED
)
def test_damage_is_named_with_its_place(
    form: str, text: str, line: int, column: int | None, reason: str
) -> None:
    found = place_and_reason(error_in(form, text))
    assert found[:2] == (line, column)
    assert found[2].startswith(reason)
