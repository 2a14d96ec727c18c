"""What `--nemesis` takes, and how it points at the word that is wrong."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.config import RunConfig
from lockcheck.durations import DurationRange
from lockcheck.errors import UserError
from lockcheck.nemesis import FAULTS, nemesis_choices, parse_nemesis, step_of
from lockcheck.nemesis.base import Step, StepOrders
from lockcheck.nemesis.grammar import Sequence, parse, sequence_words
from lockcheck.nemesis.parameters import ParameterValue
from lockcheck.run.resolve import resolve
from tests.nemesis.made_up import PaperKind

CLOCK = PaperKind().kind("clock")
KINDS = {**FAULTS, "clock": CLOCK}


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("none", "none"),
        ("pause", "pause:holder"),
        ("pause:holder", "pause:holder"),
        ("pause:server,for=2s", "pause:server,for=2s"),
        ("pause:for=2s", "pause:holder,for=2s"),
        ("pause:for=2000ms,server", "pause:server,for=2s"),
        ("partition", "partition:holder"),
        ("partition:leader", "partition:leader"),
        ("partition:primary", "partition:leader"),
        ("pause:for=2s@primary", "pause:leader,for=2s"),
        ("partition:majorities-ring,from=servers", "partition:majorities-ring,from=servers"),
        ("partition:one-way=in,from=all@halves", "partition:halves,from=all,one-way=in"),
        ("swizzle", "swizzle:halves"),
        ("swizzle:leader,every=1s,from=servers", "swizzle:leader,from=servers,every=1s"),
        ("slow", "slow:holder"),
        ("slow:rate=8000bit", "slow:holder,rate=8kbit"),
        ("slow:rate=1500kbit@leader", "slow:leader,rate=1500kbit"),
        ("slow:primary,loss=30", "slow:leader,loss=30.0"),
        ("slow:delay=0.2s@server", "slow:server,delay=200ms"),
        ("slow:delay=0.2s..1s@server", "slow:server,delay=200ms..1s"),
        ("pause:for=1..3", "pause:holder,for=1s..3s"),
        ("pause:for=1s..1000ms,gap=1s .. 2.5s", "pause:holder,for=1s,gap=1s..2.5s"),
        ("kill:restart=1s..3s", "kill:server,restart=1s..3s"),
        ("kill", "kill:server"),
        ("kill:server,restart=2s", "kill:server,restart=2s"),
        ("kill:server,restart=2s,no-data", "kill:server,restart=2s,no-data"),
        ("kill:no-data,restart=never", "kill:server,restart=never,no-data"),
        ("clock:jump=+30s,smooth@leader", "clock:leader,jump=+30s,smooth"),
        ("clock:jump=-500ms@client", "clock:client,jump=-500ms"),
        ("clock:@client", "clock:client"),
        ("clock:rate=0.5,ramp=never,clock=wall", "clock:server,rate=0.5,clock=wall,ramp=never"),
        (
            "partition:holder,for=3s,gap=1s then kill:leader",
            "partition:holder,for=3s,gap=1s then kill:leader",
        ),
        (" pause : server , for = 1.5s   then  kill ", "pause:server,for=1.5s then kill:server"),
    ],
)
def test_what_is_taken(text: str, canonical: str) -> None:
    assert sequence_words(parse(text, KINDS)) == canonical
    assert parse(canonical, KINDS) == parse(text, KINDS)


@pytest.mark.parametrize(
    ("text", "wrong", "words"),
    [
        ("", "", ["a fault is missing", "pause", "kill", "none"]),
        ("paus", "paus", ["unknown fault 'paus'", "pause:server"]),
        (":holder", "", ["a fault is missing"]),
        ("none:holder", "none", ["'none' cannot be combined or aimed"]),
        ("pause then none", "none", ["'none' cannot be combined or aimed"]),
        ("pause then", "", ["a fault is missing"]),
        ("then pause", "then pause", ["unknown fault"]),
        ("pause:", "", ["a parameter of pause is missing"]),
        ("pause:holder,", "", ["a parameter of pause is missing"]),
        ("pause:everybody", "everybody", ["does not take 'everybody'", "pause:holder", "majority"]),
        ("pause:holder:x", "holder:x", ["does not take 'holder:x'"]),
        ("pause:halves", "halves", ["pause does not take 'halves'"]),
        ("pause:jump=+30s", "jump", ["pause does not take 'jump'", "for=DURATION"]),
        ("pause:holder,server", "server", ["two aims"]),
        ("pause:holder@server", "server", ["two aims"]),
        ("pause:for=1s@", "", ["a parameter of pause is missing"]),
        ("pause:@nobody", "nobody", ["pause does not take 'nobody'"]),
        ("pause:for", "for", ["for needs a value", "for=DURATION"]),
        ("pause:for=", "", ["for cannot be ''", "500ms"]),
        ("pause:for=soon", "soon", ["for cannot be 'soon'", "500ms"]),
        ("pause:for=0s", "0s", ["above zero"]),
        ("pause:for=1s,for=2s", "for", ["twice"]),
        ("pause:for=3s..1s", "3s..1s", ["for cannot be '3s..1s'", "first: 1s..3s"]),
        ("pause:for=0s..1s", "0s..1s", ["above zero"]),
        ("pause:for=1s..", "1s..", ["500ms"]),
        ("kill:no-data=yes", "yes", ["no-data takes no value"]),
        ("kill:restart=always", "always", ["restart cannot be 'always'"]),
        ("partition:from=moon", "moon", ["lock, servers, clients, storage, all"]),
        ("pause then clock:jump=30s", "30s", ["with its sign", "+30s"]),
        ("clock:jump=+x", "+x", ["500ms"]),
        ("clock:rate=fast", "fast", ["a number from 0 to 10"]),
        ("clock:rate=11", "11", ["from 0 to 10"]),
        ("clock:rate=nan", "nan", ["from 0 to 10"]),
    ],
)
def test_what_is_refused_and_where_it_points(text: str, wrong: str, words: list[str]) -> None:
    with pytest.raises(UserError, match="unknown nemesis") as caught:
        parse(text, KINDS)
    message = str(caught.value)
    assert all(word in message for word in words)
    _, shown, under, *_ = caught.value.message.split("\n")
    assert shown == f"    {text}"
    start = under.index("^")
    assert set(under[start:]) == {"^"}
    assert shown[start:].startswith(wrong)
    assert under.count("^") == max(1, len(wrong))
    assert wrong or start == len(shown) or shown[start] in ":@, "


def test_what_cannot_be_shown_is_not() -> None:
    with pytest.raises(UserError) as caught:
        parse("pau\x1b[31mse", KINDS)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("text", nemesis_choices())
def test_what_is_offered_is_taken(text: str) -> None:
    assert bool(parse_nemesis(text)) == (text != "none")


DURATIONS = st.integers(1, 10**7)
RANGES = st.builds(lambda low, more: DurationRange(low, low + more), DURATIONS, DURATIONS)


def settings_of_the_clock() -> st.SearchStrategy[dict[str, ParameterValue]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "jump": DURATIONS | DURATIONS.map(lambda ms: -ms),
            "rate": st.floats(0, 10),
            "clock": st.sampled_from(["wall", "monotonic"]),
            "ramp": DURATIONS | st.just("never"),
            "smooth": st.just(True),
            "for": DURATIONS | RANGES,
            "gap": DURATIONS | RANGES,
        },
    )


def steps() -> st.SearchStrategy[Step]:
    order = [p.name for p in CLOCK.all_parameters]
    return st.builds(
        lambda aim, given: Step(CLOCK, aim, tuple((n, given[n]) for n in order if n in given)),
        st.sampled_from(CLOCK.aims),
        settings_of_the_clock(),
    )


@given(st.lists(steps(), min_size=1, max_size=3).map(tuple))
def test_the_canonical_text_reads_back_as_itself(sequence: Sequence) -> None:
    assert parse(sequence_words(sequence), KINDS) == sequence


@given(st.text("pauseholdrkicgt:,=@ -+0123msn", max_size=40))
def test_nothing_but_a_user_error(text: str) -> None:
    try:
        sequence = parse(text, KINDS)
    except UserError:
        return
    assert parse(sequence_words(sequence), KINDS) == sequence


def test_no_word_means_two_things() -> None:
    for kind in KINDS.values():
        names = [aim.name for aim in kind.aims] + [p.name for p in kind.all_parameters]
        assert len(names) == len(set(names))


def test_what_the_history_is_told_to_expect() -> None:
    texts = ("pause", "kill:server then partition:holder,for=2s", "none")
    terms = resolve(RunConfig(backend="redis", seed=1, nemesis=texts)).terms
    assert terms.faults == ("pause:holder", "kill:server", "partition:holder,for=2s")
    assert terms.at_holders == ("pause:holder", "partition:holder,for=2s")


def test_the_agent_is_given_the_same_steps_and_parses_no_text() -> None:
    words = ("restart=never", "one-way=in", "rate=8kbit", "loss=2.5", "drift=1.0", "no-data")
    plain = [text for text in nemesis_choices() if text != "none"]
    able = [f"{kind}:{word}" for kind in FAULTS for word in words if _is_known(kind, word)]
    for text in (*plain, *able, "pause:for=3s,gap=1ms,when=write", "pause:for=3s..4s"):
        (step,) = parse_nemesis(text)
        sent = msgspec.json.encode(step.orders())
        assert step_of(msgspec.json.decode(sent, type=StepOrders)) == step


def _is_known(kind: str, word: str) -> bool:
    return word.partition("=")[0] in {each.name for each in FAULTS[kind].all_parameters}


def test_parameters_say_how_they_are_written() -> None:
    assert ", ".join(each.words() for each in CLOCK.all_parameters) == (
        "jump=±DURATION, rate=NUMBER (1.0), clock=wall|monotonic (wall), "
        "ramp=DURATION|never, smooth, for=DURATION, gap=DURATION, "
        "when=schedule|acquire|write|release|expiry"
    )
