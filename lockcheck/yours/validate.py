"""Whether a client program keeps the contract, and what its lock promises: by asking it, on a real
cluster, and almost without faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lockcheck.backends.program import ClientProgram
from lockcheck.backends.program.messages import (
    NOT_SUPPORTED,
    REFUSALS,
    Failed,
    InitOk,
    ReleaseOk,
    RenewOk,
)
from lockcheck.backends.program.words import USUAL_SERVERS, promises_of, servers_of
from lockcheck.compose.choose import choose_runtime
from lockcheck.library.cluster import Cluster, cluster
from lockcheck.nodes.node import kinds_to_start
from lockcheck.run.orders import key_prefix
from lockcheck.yours.peer import Peer, Reply, freed_after

BEGIN_S = 30.0
AWAY_S = 15.0  # in which a client should notice that its servers do not answer
MORE_S = 3.0  # than so many leases is a lock waited for
LEASES = 4
OFF = 0.3  # how far a lease may be off, as a share of it


@dataclass(frozen=True, slots=True)
class Row:
    ok: bool
    what: str
    seen: str = ""


@dataclass
class Validation:
    """Yields a row for each thing that was tried; `promises` grow meanwhile."""

    program: Callable[[str], ClientProgram | None]  # by runtime
    servers: str
    ttl_ms: int
    runtime: str
    stated: Sequence[str] = ()  # what the client says of itself
    image: str = ""  # in docker: that its program is in, ...
    client_folder: str = ""  # ... or the folder
    promises: list[str] = field(default_factory=list)
    granted = False  # was it ever; else nothing is known of its promises

    def rows(self) -> Iterator[Row]:
        nodes = servers_of(self.servers or USUAL_SERVERS)
        there = any(node.elsewhere for node in nodes)
        wanted = "docker" if self.image else self.runtime
        runtime = choose_runtime(wanted, kinds_to_start(nodes))[0].name
        in_docker = runtime == "docker"
        with cluster(
            self.servers if there else str(nodes[0].kind),
            servers=len(nodes),
            clients=3,
            runtime=runtime,
            program_image=self.image,
            client_folder=self.client_folder if in_docker else "",
        ) as self._cluster:
            self._key = f"{key_prefix(self._cluster.folder.name)}k1" if there else "k1"
            yield from self._with(self._cluster)

    def _with(self, cluster: Cluster) -> Iterator[Row]:
        one, two, three = (self._peer(node) for node in cluster.clients)
        self._patience_s = max(5.0, LEASES * self._ttl_s)
        for peer in (one, two, three):
            begun = peer.init(BEGIN_S)
            ok = isinstance(begun.message, InitOk)
            if peer is one or not ok:
                yield Row(ok, "it begins", begun.words)
            if not ok:
                return
        first = one.acquire(self._patience_s)
        yield Row(first.granted, "a free lock is granted", first.words)
        self.granted = first.granted
        if not first.granted:
            return
        yield from self._taking_turns(first, one, two)
        yield from self._again(one)
        yield from self._waiting(one, two)
        yield from self._renewed(one, two)
        yield from self._its_end(one, two, three)
        yield from self._death(one, two)
        yield from self._servers_away(one)
        rubbish = [line for peer in (one, two, three) for line in peer.rubbish]
        yield Row(not rubbish, "it prints nothing but messages", (rubbish or [""])[0][:100])

    def _peer(self, node: str) -> Peer:
        program = self.program(self._cluster.runtime)
        command = program.command if program else ()
        if program and not self.image:  # an image's own folder is where it runs
            command = ("env", f"--chdir={program.folder}", *command)
        return Peer(self._cluster, node, command, self.ttl_ms, self._key)

    @property
    def _ttl_s(self) -> float:
        return self.ttl_ms / 1000

    # --- what is tried -----------------------------------------------------------------------

    def _taking_turns(self, first: Reply, one: Peer, two: Peer) -> Iterator[Row]:
        refused = two.acquire(self._patience_s)
        yield Row(_is_definite(refused), "a held lock is refused, for certain", refused.words)
        released = one.release(first.number, self._patience_s)
        yield Row(_is_released(released), "its holder releases it", released.words)
        second = two.acquire(self._patience_s)
        yield Row(second.granted, "then another client is granted it", second.words)
        if first.token is not None and second.token is not None:
            grows = second.token > first.token
            yield Row(grows, "with a higher token", f"{first.token}, then {second.token}")
            self.promises += ["token"] * grows
        two.release(second.number, self._patience_s)

    def _again(self, one: Peer) -> Iterator[Row]:
        first = one.acquire(self._patience_s)
        again = one.acquire(self._patience_s)
        if again.granted:
            self.promises.append("reentrant")
            yield Row(True, "its holder may acquire it again: it is reentrant", again.words)
            one.release(again.number, self._patience_s)
        else:
            yield Row(_is_definite(again), "its holder is refused, too", again.words)
        one.release(first.number, self._patience_s)

    def _waiting(self, one: Peer, two: Peer) -> Iterator[Row]:
        held = one.acquire(self._patience_s)
        wait_s = min(self._ttl_s / 2, 1.0)
        asked = two.acquire(self._patience_s, wait_ms=round(wait_s * 1000))
        waited = asked.took_s > wait_s * 0.8
        in_time = asked.took_s < wait_s + 1 and not asked.granted
        words = "it waits for its turn" if waited else "it does not wait: an acquire is an attempt"
        yield Row(in_time, words, f"{asked.took_s:.2f} s, allowed to wait for {wait_s:.2f} s")
        self.promises += ["waits"] * waited
        one.release(held.number, self._patience_s)
        if asked.granted:
            two.release(asked.number, self._patience_s)

    def _renewed(self, one: Peer, two: Peer) -> Iterator[Row]:
        """A lease that its client renews after half of it: is it as long again?"""
        held = one.acquire(self._patience_s)
        one.listen(self._ttl_s / 2)
        renewed = one.renew(held.number, self._patience_s)
        if isinstance(renewed.message, Failed) and renewed.message.code == NOT_SUPPORTED:
            one.release(held.number, self._patience_s)
            return
        yield Row(isinstance(renewed.message, RenewOk), "its client may renew it", renewed.words)
        freed = freed_after(two, LEASES * self._ttl_s + MORE_S, self._patience_s)
        kept_s = freed[0] if freed else None
        ok = kept_s is None or kept_s > self._ttl_s * (1 - OFF)
        seen = f"free {kept_s:.2f} s later" if kept_s is not None else "it is held on"
        yield Row(ok, "then it is as long again", seen)
        self.promises += ["extends"] * ok
        for peer, number in ((one, held.number), (two, freed[1].number if freed else None)):
            if number is not None:
                peer.release(number, self._patience_s)

    def _its_end(self, one: Peer, two: Peer, three: Peer) -> Iterator[Row]:
        """Of a hold that is not released."""
        held = one.acquire(self._patience_s)
        freed = freed_after(two, LEASES * self._ttl_s + MORE_S, self._patience_s)
        if freed is None:
            yield Row(True, "it is kept alive: not released, it is held on", "")
            yield from self._kept_alive(one, two, held)
            return
        after_s, taken = freed
        exact = abs(after_s - self._ttl_s) <= OFF * self._ttl_s + 0.1
        yield Row(exact, f"it is a lease, of {after_s:.2f} s", f"the TTL is {self._ttl_s:g} s")
        late = one.release(held.number, self._patience_s)
        yield self._late(late)
        third = three.acquire(self._patience_s)
        yield Row(not third.granted, "and takes away no other client's lock", third.words)
        if third.granted:
            self.promises.append("blind-release")
            three.release(third.number, self._patience_s)
        two.release(taken.number, self._patience_s)

    def _kept_alive(self, one: Peer, two: Peer, held: Reply) -> Iterator[Row]:
        most_s = LEASES * self._ttl_s + MORE_S
        with self._cluster.fault("pause", one.node):
            freed = freed_after(two, most_s, self._patience_s)
        one.listen(1.0)
        if freed is None:
            yield Row(False, f"its holder stands still, and it is not free after {most_s:.1f} s")
            one.release(held.number, self._patience_s)
            return
        after_s, taken = freed
        yield Row(
            True, f"free {after_s:.2f} s after its holder stands still", "a session, or renewed"
        )
        self.promises.append("session")
        lapses = after_s / self._ttl_s
        if lapses > 1 + OFF:
            self.promises.append(f"lapses={lapses + 0.2:.1f}")
        noticed = held.number in one.lost
        yield Row(
            noticed, "then its holder learns that it lost it", "" if noticed else "within 1 s: not"
        )
        late = one.release(held.number, self._patience_s)
        yield self._late(late)
        two.release(taken.number, self._patience_s)

    def _late(self, release: Reply) -> Row:
        silent = _is_released(release)
        self.promises += ["silent-release"] * silent
        if silent and not promises_of(self.stated).tells_release:
            return Row(True, "a release that comes too late does not say so", "as it states")
        return Row(not silent, "a release that comes too late says so", release.words)

    def _death(self, one: Peer, two: Peer) -> Iterator[Row]:
        held = one.acquire(self._patience_s)
        if not held.granted:
            yield Row(False, "it can be acquired again after all that", held.words)
            return
        most_s = LEASES * self._ttl_s + MORE_S
        with self._cluster.fault("kill", one.node):  # and all that it started
            freed = freed_after(two, most_s, self._patience_s)
        if freed is None:
            yield Row(False, f"its holder was killed, and it is not free after {most_s:.1f} s")
        else:
            after_s, taken = freed
            yield Row(True, f"free {after_s:.2f} s after its holder was killed")
            if "session" in self.promises and after_s < self._ttl_s / 3:
                self.promises.append("ends-with=connection")
            two.release(taken.number, self._patience_s)
        one.begin()
        begun = one.init(BEGIN_S)
        yield Row(isinstance(begun.message, InitOk), "it can be begun anew", begun.words)

    def _servers_away(self, one: Peer) -> Iterator[Row]:
        with self._cluster.fault("partition", one.node):
            asked = one.acquire(AWAY_S)
        known = asked.message is not None and not asked.granted
        seen = f"{asked.words}, after {asked.took_s:.1f} s" if known else asked.words
        yield Row(known, "cut off from its servers, it says so", seen)
        back = freed_after(one, LEASES * self._ttl_s + MORE_S, self._patience_s)
        what = "and once they are back, it is granted the lock"
        yield Row(back is not None, what, f"after {back[0]:.2f} s" if back else "")
        if back:
            one.release(back[1].number, self._patience_s)


def _is_definite(reply: Reply) -> bool:
    return isinstance(reply.message, Failed) and reply.message.code in REFUSALS


def _is_released(reply: Reply) -> bool:
    return isinstance(reply.message, ReleaseOk)
