"""The lock of kazoo, on ZooKeeper, as a client of lockcheck."""

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.protocol.states import KazooState

ATTEMPT_S = 0.5  # without a time to wait for, kazoo tries for as long as its servers are away


class Locks:
    servers = "zookeeper"
    promises = ("session", "waits", "fair", "silent-release")
    refusals = LockTimeout

    def __init__(self, servers, ttl, lost):
        self.held, self.lost = {}, lost
        hosts = ",".join(f"{host}:{port}" for host, port in servers)
        self.client = KazooClient(hosts, timeout=ttl)
        self.client.add_listener(self.changed)
        self.client.start()

    def changed(self, state):
        if state != KazooState.CONNECTED:
            for key in list(self.held):
                self.lost(key, state)

    def acquire(self, key, wait):
        lock = self.client.Lock(f"/locks/{key}")
        granted = lock.acquire(timeout=max(wait, ATTEMPT_S))
        if granted:
            self.held[key] = lock
        return granted

    def release(self, key):
        return self.held.pop(key).release()
