"""The page: complete, small, and harmless whatever the history holds."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser

import msgspec
import pytest

import lockcheck
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.history import History
from lockcheck.results.report import render
from lockcheck.results.report.marks import KINDS
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.story.seen import counted
from lockcheck.runs.facts import RunFacts
from tests.results import story
from tests.results.test_story import Recording, judge, outlived_lease, simulate

ATTACK = "</script><img src=x onerror=alert(1)>"


def report(history: History, *, judgement: Judgement | None = None, **changes: object) -> str:
    facts = RunFacts(
        run_id="20251118-114302-a1b2c3",
        started_at="2025-11-18 11:43:02",
        plan=(("--backend", "redlock"), ("--workload", "register"), ("--nemesis", "pause:holder")),
        versions=(("Valkey", "9.1.0"),),
        rerun_command="lockcheck run --backend redlock --seed 7",
        check_command="lockcheck check results/20251118-114302-a1b2c3",
    )
    told = msgspec.structs.replace(facts, **changes)
    return render(Narrative(judgement or judge(history)), told)


def of_one_incident() -> History:
    run = Recording()
    outlived_lease(run)
    return run.history()


class _Page(HTMLParser):
    """What the browser would see: elements, their attributes, and the text between."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = "data" if dict(attrs).get("id") == "timeline-data" else tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data += data
        elif self._inside not in {"script", "style"}:
            self.text += data


def words(html: str) -> str:
    return re.sub(r"\s+", " ", _Page(html).text)


def test_the_verdict_comes_first_and_in_words() -> None:
    text = words(report(of_one_incident()))
    verdict = text.index("Violation")
    assert verdict < text.index("at 1.401 s. c2 slept through its lease on k1")
    assert verdict < text.index("Timeline") < text.index("What was found")


def test_the_story_is_told_with_blame_and_cure() -> None:
    text = words(report(of_one_incident()))
    steps = [
        "was granted k1",
        "pause began, confirmed",
        "still held it: two holders",
        "accepted as write 2: late",
        "refused: not-own",
    ]
    places = [text.index(step) for step in steps]
    assert places == sorted(places)
    assert "could not notice that its lease had run out" in text
    assert "a fencing token that it checks" in text


def test_no_value_is_broken_at_its_hyphen() -> None:
    assert 'wrote <span class="num">c4-100</span>;' in report(of_one_incident())


def test_plan_versions_and_commands_are_there() -> None:
    text = words(report(of_one_incident(), problem="the agent went away"))
    for part in (
        "pause:holder",
        "Valkey",
        "lockcheck run --backend redlock --seed 7",
        "lockcheck check results/20251118-114302-a1b2c3",
        "the agent went away",
        "What the words mean",
    ):
        assert part in text


def test_the_counts_are_there() -> None:
    history = of_one_incident()
    html = report(history)
    counts = re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", html[html.index('class="counts"') :])
    assert counts[: len(expected := list(counted(history, judge(history))))] == expected


def test_of_several_incidents_it_says_whose_fault_is_told() -> None:
    run = Recording(terms={"guard": "fence"})
    simulate(run, 8, trouble=4, guard=True)
    guarded = run.history()
    page = report(guarded, judgement=judge(guarded, Verdict.OK))
    assert "In full: whose fault, and what helps, in incident 1 of 2" in words(page)
    assert "Whose fault. No one's, it is the limit of leases" in words(report(of_one_incident()))


def test_the_help_speaks_only_of_lines_that_are_there() -> None:
    run = Recording(terms={"guard": "fence"})
    simulate(run, 8, trouble=4, guard=True)
    guarded = run.history()
    found, harmless = report(of_one_incident()), report(guarded, judgement=lockcheck.judge(guarded))
    nothing = report(History.of([]))
    buttons = '<div class="tool-group" hidden>'
    assert "and a red line where an incident began. " in words(found)
    assert "and a grey line where an incident began. " in words(harmless)
    assert "N and P go" in words(found)
    assert buttons not in found
    assert "line where" not in words(nothing)
    assert "N and P go" not in words(nothing)
    assert buttons in nothing


def test_doubts_are_listed() -> None:
    history = Recording().history()
    doubts = (Doubt(DoubtCode.LEDGER_MISSING), Doubt(DoubtCode.NEVER_SHARED))
    unknown = replace(judge(history), verdict=Verdict.UNKNOWN, doubts=doubts)
    text = words(report(history, judgement=unknown))
    assert "Unknown" in text
    assert "The storage's ledger is missing, so the fate of unanswered writes is unknown." in text
    assert "Clients asked for a lock that others may share, and no two ever shared it." in text


def test_refused_writes_are_listed_behind_a_guard() -> None:
    run = Recording(terms={"guard": "fence"})
    simulate(run, 8, trouble=4, guard=True)
    history = run.history()
    html = report(history, judgement=judge(history, Verdict.OK))
    text = words(html)
    assert "What the storage refused" in text
    assert "refused 2 writes" in text
    for write in story.refused_writes(history):
        assert write.reason in text
    table = html[html.index("What the storage refused") :].partition("</table>")[0]
    heads = re.findall(r'<th scope="col">([^<]*)', table)
    assert (
        re.findall(r'data-of="([^"]*)"', table) == heads * 2
    )  # on a phone each cell tells its own
    assert "What the storage refused" not in words(report(of_one_incident()))


def of_an_attacker() -> History:
    run = Recording(terms={"backend": ATTACK, "faults": [ATTACK], "guard": "fence"})
    run.acquire(1, 2, ATTACK)
    run.read(3, 2, ATTACK, ATTACK)
    run.write(5, 2, ATTACK, "\u2028\u2029\x1b[2J", key=ATTACK)
    run.add(6, "nemesis", "invoke", ATTACK, node=ATTACK, fault=1)
    run.add(7, "nemesis", "ok", ATTACK, node=ATTACK, fault=1, value=ATTACK)
    run.refused(8, 2, ATTACK, ATTACK, token=3, error=ATTACK)
    run.acquire(1010, 4, ATTACK)
    run.write(1015, 4, "x", ATTACK, key=ATTACK)
    run.release(1100, 2, ATTACK)
    run.release(1200, 4, ATTACK)
    return run.history()


def test_nothing_from_a_history_becomes_markup() -> None:
    history = of_an_attacker()
    doubtful = replace(judge(history), doubts=(Doubt(DoubtCode.UNDECIDED, ATTACK, reason=ATTACK),))
    pairs = ((ATTACK, ATTACK),)
    attacked = report(
        history, judgement=doubtful, run_id=ATTACK, started_at=ATTACK, plan=pairs, versions=pairs,
        rerun_command=ATTACK, check_command=ATTACK, problem=ATTACK,
    )  # fmt: skip
    assert ATTACK not in attacked
    assert "<img" not in attacked
    assert "\u2028" not in attacked
    assert "\x1b" not in attacked
    page = _Page(attacked)
    tags = {tag for tag, _ in page.elements}
    assert tags == {tag for tag, _ in _Page(report(history)).elements} | {"li", "section"}
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)
    assert ATTACK in json.loads(page.data)["keys"]  # as data it arrives unharmed


def test_the_glossary_goes_only_where_the_page_has_a_place_for_it() -> None:
    html = report(of_one_incident(), problem="<!--words below-->")
    assert html.count('<dl class="glossary">') == 1
    assert "<!--words" not in html
    assert "&lt;!--words below--&gt;" in html


def test_half_a_character_does_not_stop_the_report() -> None:
    report(of_one_incident(), problem="\ud800").encode()


def test_the_page_loads_nothing() -> None:
    html = report(of_one_incident())
    page = _Page(html)
    policies = [
        attrs["content"] or ""
        for tag, attrs in page.elements
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policies[0]
    loading = {"src", "srcset", "data", "action", "background", "poster", "style"}
    for tag, attrs in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        assert not loading & set(attrs)
        assert (attrs.get("href") or "#").startswith("#")
    assert not re.search(r"https?://|url\(|@import|innerHTML|fetch\(|XMLHttp|eval\(", html)


@pytest.mark.parametrize("trouble", [0, 6])
def test_ten_thousand_operations_are_small_and_quick(trouble: int) -> None:
    run = Recording()
    simulate(run, 2000 if trouble == 0 else 1800, trouble=trouble)
    history = run.history()
    assert len(history.operations) >= 10_000
    judgement = judge(history)
    start = time.process_time()
    html = report(history, judgement=judgement)
    assert time.process_time() - start < 1.0
    assert len(html.encode()) < 1_000_000


def test_many_incidents_are_told_in_part_and_listed_in_part() -> None:
    run = Recording()
    simulate(run, 300, trouble=1)
    text = words(report(run.history()))
    assert "And 280 more" in text
    assert "80 further ones are in the stored history" in text


def test_numbers_beyond_reason_are_no_trouble() -> None:
    run = Recording()
    run.acquire(1, 2, token=10**30)
    run.write(3, 2, "x" * 100_000, 10**30, token=10**30)
    run.add(1e20, 2, "invoke", "release", key="k1", node="c2")
    page = _Page(report(run.history()))
    assert max(json.loads(page.data)["holds"]["token"]) == 2**53 - 1
    assert len(page.data) < 5000


def test_an_empty_history_has_a_report() -> None:
    assert "What was found Nothing." in words(report(History.of([])))


def test_what_a_fault_waited_for_and_whether_anybody_felt_it() -> None:
    run = Recording()
    outlived_lease(run)
    run.add(8000, "nemesis", "invoke", "partition", nodes=("r1", "r2"), fault=7, value="on write")
    run.add(8001, "nemesis", "ok", "partition", nodes=("r1", "r2"), fault=7, value="all silent")
    run.add(8500, "nemesis", "invoke", "heal", nodes=("r1", "r2"), fault=7)
    run.add(8501, "nemesis", "ok", "heal", nodes=("r1", "r2"), fault=7)
    run.add(9000, "nemesis", "invoke", "quiet")
    history = run.history()
    html = report(history, judgement=lockcheck.judge(history))
    drawn = json.loads(_Page(html).data)
    felt, idle = drawn["faults"]
    assert (felt["felt"], idle["felt"]) == (True, False)
    assert (idle["when"], len(idle["lanes"])) == ("on write", 2)
    assert [idle[name] for name in ("start", "since", "proven", "healed")] == [
        *(8_000_000, 8_000_000, 8_001_000, 8_501_000)
    ]
    assert drawn["quiet"] == 9_000_000
    assert "partition of r1 and r2 at 8.000 s: meanwhile nobody" in words(html)


def crowd(clients: int) -> History:
    """All come in turn; the last two of them meet."""
    run = Recording()
    for client in range(1, clients + 1):
        run.acquire(client * 10, client)
        run.release(client * 10 + 5, client)
    outlived_lease(run, 1000, clients - 1, clients)
    return run.history()


@pytest.mark.parametrize(("clients", "unfolded"), [(12, 12), (13, 12), (60, 12)])
def test_of_many_clients_the_actors_come_first_and_the_rest_is_folded(
    clients: int, unfolded: int
) -> None:
    data = json.loads(_Page(report(crowd(clients))).data)
    names = [lane["name"] for lane in data["lanes"] if lane["client"]]
    assert data["unfolded"] == unfolded
    first = ["c1", "c2"] if clients <= 12 else [f"c{clients - 1}", f"c{clients}"]
    assert names[:2] == first


def test_what_was_lost_and_what_overwrote_it_are_marked() -> None:
    run = Recording()
    outlived_lease(run)
    history = run.history()
    html = report(history)
    data = json.loads(_Page(html).data)
    assert [KINDS[state] for state in data["marks"]["state"]] == ["read", "read", "lost", "stale"]
    assert [number for number in data["marks"]["number"] if number > 0] == [1, 2]
    assert "write accepted, then lost" in words(html)
    assert data["findings"][0]["at"] == 1_111_200


def test_behind_a_guard_nothing_is_red_but_what_was_refused_is_told() -> None:
    run = Recording(terms={"guard": "fence"})
    simulate(run, 8, trouble=4, guard=True)
    history = run.history()
    html = report(history, judgement=judge(history, Verdict.OK))
    assert "guard stopped it" in html
    assert html.count('class="step step-harm"') == 0
    assert html.count('class="step step-refused"') == 2
    assert "line above the lanes: two holders at once, no violation" in html
    assert html.count(" open>") == 1


def test_one_client_is_told_once_with_the_command_that_mends_it() -> None:
    run = Recording(
        terms={"clients": 1, "faults": ["pause:holder"], "at-holders": ["pause:holder"]}
    )
    for number in range(20):
        run.acquire(100 * number, 1)
        run.release(100 * number + 50, 1)
    run.pause(60, 1, 90)
    history = run.history()
    judged = lockcheck.judge(history)
    assert judged.verdict is Verdict.UNKNOWN
    assert len(judged.doubts) == 1
    text = words(
        report(history, judgement=judged, rerun_command="lockcheck run --clients 1 --ttl 2s")
    )
    assert text.count("There was only one client") == 1
    assert "Run it again, with more clientslockcheck run --clients 5 --ttl 2s" in text
    assert "The command at the top runs it again, with more clients." in text


def test_its_words_are_explained_once_and_not_before_the_picture() -> None:
    text = words(report(of_one_incident()))
    assert text.count("A write from a client whose lock") == 1
    assert text.index("Timeline") < text.index("What the words mean")
    assert text.index("What the words mean") < text.index("A write from a client whose lock")
    assert text.index("What the words mean") < text.index("The time in which a client believes")
    for name in ("Backend", "Workload", "Register", "c2", "k1"):
        assert f">{name}</dt>" in report(of_one_incident())
    assert ">r9</dt>" not in report(of_one_incident(), plan=(("results", "a/r9"),))
