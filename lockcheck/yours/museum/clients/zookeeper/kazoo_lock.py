"""kazoo's lock on ZooKeeper."""

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.protocol.states import KazooState


class Unheard:
    """As in its docstring: no listener hears to what becomes of the session."""

    refusals = LockTimeout

    def __init__(self, servers, ttl, lost):
        hosts = ",".join(f"{host}:{port}" for host, port in servers)
        self.zk = KazooClient(hosts, timeout=ttl)
        self.zk.start(timeout=20)
        self.held = {}

    def acquire(self, key, wait):
        held = self.zk.Lock("/locks/" + key)
        held.acquire(timeout=wait)
        self.held[key] = held

    def release(self, key):
        return self.held.pop(key).release()


class Heard(Unheard):
    """With the listener that its documentation recommends."""

    def __init__(self, servers, ttl, lost):
        super().__init__(servers, ttl, lost)
        self.lost = lost
        self.zk.add_listener(self.changed)

    def changed(self, state):
        if state != KazooState.CONNECTED:
            for key in list(self.held):
                self.lost(key, state)
