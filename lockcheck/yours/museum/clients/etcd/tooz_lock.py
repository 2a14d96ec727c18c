"""tooz's lock on etcd, of a coordinator whose thread keeps it alive."""

from tooz import coordination


class Waiting:
    """It waits for its turn for as long as that takes."""

    def __init__(self, node, host, port, ttl):
        url = f"etcd3+http://{host}:{port}?lock_timeout={round(ttl)}&timeout=10"
        self.coordinator = coordination.get_coordinator(url, node.encode())
        self.coordinator.start(start_heart=True)
        self.held = {}

    def acquire(self, key, wait):
        held = self.coordinator.get_lock(key.encode())
        granted = self.asked(held, wait)
        if granted:
            self.held[key] = held
        return granted

    def asked(self, held, wait):
        return held.acquire(blocking=wait)

    def release(self, key):
        return self.held.pop(key).release()


class WithTimeout(Waiting):
    """ "timeout: Timeout to acquire a lock", as the docstring of `Lock.acquire` has it."""

    def asked(self, held, wait):
        return held.acquire(timeout=1)
