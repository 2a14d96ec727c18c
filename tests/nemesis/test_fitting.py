"""What cannot be, or cannot fit into the run, is refused before the start, with the cure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockcheck.errors import UserError
from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.fitting import longest_ms
from lockcheck.servers.kind import Kind
from tests.nemesis.plans import check_nemesis, plan

REDIS = plan("redis", 1, stores=True, writes=True)
REDLOCK = plan("redlock", 5, independent=True)
ETCD = plan("etcd", 3, ttl_ms=2000, stores=True, leads=True, kinds=(Kind("etcd"),))
LONG_LEASE = plan("redis", 1, ttl_ms=10_000)
REPLICATED = plan(
    "redis-failover", 6, leads=True, kinds=(Kind("redis-replicated"), Kind("redis-sentinel"))
)
REPLICATED_LONG = replace(REPLICATED, ttl_ms=5001)
NOTHING = plan("file", 0, clients=1)
ALONE = plan("redis", 1, clients=1)


@pytest.mark.parametrize(
    ("plan", "text", "reason", "cure"),
    [
        (LONG_LEASE, "pause", "15.8s", "--time-limit 32s"),
        (REDIS, "pause:for=15s", "the run ends after 15s", "shorter for="),
        (REDIS, "pause:for=1s,gap=14500ms", "15.5s", "--time-limit"),
        (REDIS, "pause:for=8s then pause:server,for=8s", "16.6s", "--time-limit"),
        (REDIS, "kill:restart=1m", "60.3s", "--time-limit"),
        (REDIS, "pause:leader", "redis has no leader", "aim at server"),
        (REDLOCK, "partition:leader", "redlock has no leader", "aim at server"),
        (REDIS, "partition:minority", "redis has 1 of the 3 servers", "aim at server"),
        (ALONE, "partition:halves", "cannot be halved", "aim at client"),
        (NOTHING, "pause:server", "file has no servers", "aim at client"),
        (NOTHING, "pause:majority", "file has no servers", "aim at client"),
        (REDLOCK, "partition:from=storage", "no separate storage", "leave out from=storage"),
        (REDIS, "partition:client,from=clients", "do not talk", "leave out from=clients"),
        (REDIS, "partition:bridge", "redis has 1 of the 3 servers", "aim at client"),
        (REDIS, "partition:majorities-ring", "redis has 1 of the 3 servers", "aim at client"),
        (ETCD, "partition:majorities-ring,from=storage", "has no sides", "from=servers"),
        (ETCD, "partition:majorities-ring,one-way=in", "has no sides", "both ways"),
        (ETCD, "partition:node,from=clients", "no other node there", "leave out from=clients"),
        (REDIS, "partition:server,from=servers", "one server only", "leave out from=servers"),
        (REDLOCK, "partition:minority,from=servers", "do not talk", "leave out from=servers"),
        (REDLOCK, "swizzle:majorities-ring,from=servers", "do not talk", "leave out from=servers"),
        (REDIS, "kill:restart=1s,for=1s", "mean the same", "leave out for"),
        (REDIS, "kill:restart=never,no-data", "never restarts", "leave out no-data"),
        (REDIS, "kill:rolling", "server is a single node", "majority, minority, all"),
        (
            REDLOCK,
            "kill:all,rolling,restart=never",
            "before stopping the next",
            "leave out restart",
        ),
        (REDLOCK, "kill:all,rolling,for=1s", "until the last server is up", "restart="),
        (REDLOCK, "kill:all,rolling,restart=4s", "too long", "a shorter restart="),
        (ETCD, "kill:all,rolling,no-data", "etcd that has lost its data", "leave out no-data"),
        (ETCD, "kill:no-data", "etcd that has lost its data", "leave out no-data"),
        (REDIS, "disk", "servers of redis keep no data", "such as kill"),
        (ETCD, "failover", "etcd has no primary with replicas", "or kill:leader"),
        (REPLICATED_LONG, "failover", "has to expire before", "--ttl 5s"),
        (REDIS, "pause:holder,when=schedule", "a schedule does not know", "when=acquire"),
        (REDLOCK, "kill:server,when=write", "clients write nothing", "when=acquire"),
        (REDIS, "pause then kill:leader", "kill:leader is not possible", "aim at server"),
        (ETCD, "swizzle:every=1s", "72 links", "every=138ms"),
        (ETCD, "swizzle:majorities-ring,one-way=in", "has no sides", "both ways"),
        (REDIS, "slow:rate=4kbit,loss=3", "rate and loss are different", "one of them"),
        (REDIS, "slow:delay=11s", "as good as cut off", "partition"),
        (REDIS, "slow:rate=8", "cannot be '8'", "8kbit"),
        (REDIS, "slow:rate=1bit", "cannot be", "from 4kbit to 10mbit"),
        (REDIS, "slow:rate=kbit", "cannot be", "8kbit"),
        (REDIS, "slow:loss=100", "cannot be", "from 2 to 95"),
        (REDIS, "paus", "unknown nemesis", "choose from"),
    ],
)
def test_refused(plan: Plan, text: str, reason: str, cure: str) -> None:
    with pytest.raises(UserError) as caught:
        check_nemesis(["none", text], plan)
    assert reason in caught.value.message
    assert cure in caught.value.cure


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (REDIS, "none"),
        (REDIS, "pause"),
        (REDIS, "pause:for=14s"),
        (REDIS, "kill:server,when=write"),
        (REDIS, "pause:for=14500ms,gap=500ms"),
        (REDIS, "pause:majority"),
        (REDIS, "partition:from=storage"),
        (REDIS, "partition:halves"),
        (REDIS, "kill:restart=never"),
        (REDLOCK, "kill:majority,rolling,no-data"),
        (ETCD, "disk:leader then disk:all,read-only"),
        (REPLICATED, "failover then failover:by=sentinel,cut=one"),
        (ETCD, "kill:all,rolling,restart=1s"),
        (ETCD, "kill:holder,no-data"),
        (ETCD, "partition:minority,from=servers"),
        (ETCD, "partition:majorities-ring,from=servers"),
        (REDLOCK, "partition:bridge,from=servers"),
        (ETCD, "partition:bridge,from=all,one-way=out"),
        (ETCD, "partition:node,from=all"),
        (ETCD, "swizzle:leader,every=138ms"),
        (REDIS, "slow"),
        (ETCD, "slow:leader,loss=2"),
        (ETCD, "partition:leader then kill:leader"),
        (NOTHING, "pause:client"),
    ],
)
def test_taken(plan: Plan, text: str) -> None:
    check_nemesis([text], plan)


def test_a_range_has_to_fit_with_its_longest() -> None:
    plan = replace(LONG_LEASE, time_limit_ms=6_000)
    check_nemesis(["pause:for=1s..5s"], plan)
    with pytest.raises(UserError, match=r"it takes 7\.3s with the pause before it"):
        check_nemesis(["pause:for=1s..7s"], plan)


def test_the_cure_for_what_takes_too_long_cures() -> None:
    with pytest.raises(UserError) as caught:
        check_nemesis(["pause"], LONG_LEASE)
    seconds = int(caught.value.cure.split()[1].rstrip("s,"))
    check_nemesis(["pause"], replace(LONG_LEASE, time_limit_ms=seconds * 1000))


@pytest.mark.parametrize(
    ("texts", "longest"),
    [
        ((), 0),
        (("none",), 0),
        (("pause",), 2000),
        (("pause:for=1s..9s",), 9000),
        (("pause:for=3s", "kill:restart=5s then pause"), 5000),
        (("kill:restart=never",), 0),
    ],
)
def test_how_long_a_fault_may_last_beyond_the_run(texts: tuple[str, ...], longest: int) -> None:
    assert longest_ms(map(parse_nemesis, texts), REDIS) == longest


@pytest.mark.parametrize("ttl_ms", [50, 1000, 60_000])
@pytest.mark.parametrize("text", ["pause", "partition", "kill"])
def test_by_default_a_fault_outlasts_the_lease(ttl_ms: int, text: str) -> None:
    long = plan("b", 1, ttl_ms=ttl_ms, time_limit_ms=10**7)
    assert longest_ms([parse_nemesis(text)], long) > ttl_ms
