"""Which operations run while a search is at a return; moves from one return to the next."""

from __future__ import annotations

from bisect import bisect_left, insort

from lockcheck.checker.linearizability.search.plan import SearchPlan


class Running:
    def __init__(self, plan: SearchPlan) -> None:
        self.writers: list[int] = []  # running ones that may change the state, by their returns
        self.lookers: list[int] = []  # running ones that only look
        self.maybes: list[int] = []  # classes of unconfirmed operations that were called
        self.maybe_kind: list[int] = plan.maybe.tolist()  # by class: its kind
        self._calls: list[int] = plan.calls.tolist()
        self._called: list[int] = plan.called.tolist()
        self._looks = plan.looks[plan.kind].tolist()
        self._place = 0
        self._when = [0] * len(self._looks)  # by operation: its place among the calls
        self._bits: list[list[int]] = [[] for _ in self.maybe_kind]  # by class: its operations
        self._until: list[list[int]] = [[] for _ in self.maybe_kind]  # and their places
        self._class_bits = [0] * len(self.maybe_kind)
        self._number_calls()
        self._call(0, self._called[0] if self._called else 0)

    def _number_calls(self) -> None:
        unconfirmed = 0
        for when, name in enumerate(self._calls):
            if name >= 0:
                self._when[name] = when
                continue
            self._bits[-1 - name].append(1 << unconfirmed)
            self._until[-1 - name].append(when)
            self._class_bits[-1 - name] |= 1 << unconfirmed
            unconfirmed += 1

    def is_called(self, name: int) -> bool:
        return self._when[name] < self._called[self._place]

    def use_one_more(self, number: int, used: int) -> int | None:
        """`used` with the next operation of the class; None if all called ones are in it."""
        count = (used & self._class_bits[number]).bit_count()
        called = self._until[number]
        if count == len(called) or called[count] >= self._called[self._place]:
            return None
        return used | self._bits[number][count]

    def move(self, place: int) -> None:
        while self._place < place:
            self._forward()
        while self._place > place:
            self._backward()

    def _forward(self) -> None:
        before = self._place
        self._list(before).remove(before)  # it comes first among the writers
        self._place += 1
        self._call(self._called[before], self._called[self._place])

    def _backward(self) -> None:
        before = self._place - 1
        for when in reversed(range(self._called[before], self._called[self._place])):
            self._uncall(when)
        self._place = before
        insort(self._list(before), before)

    def _list(self, name: int) -> list[int]:
        return self.lookers if self._looks[name] else self.writers

    def _call(self, since: int, until: int) -> None:
        for when in range(since, until):
            name = self._calls[when]
            if name >= 0:
                insort(self._list(name), name)
            elif self._until[-1 - name][0] == when:
                self.maybes.append(-1 - name)

    def _uncall(self, when: int) -> None:
        name = self._calls[when]
        if name >= 0:
            names = self._list(name)
            del names[bisect_left(names, name)]
        elif self._until[-1 - name][0] == when:
            self.maybes.pop()
