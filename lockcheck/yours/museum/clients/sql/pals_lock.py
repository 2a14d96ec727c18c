"""PALs' lock: an advisory lock of PostgreSQL."""

import pals


class Waiting:
    def __init__(self, host, port):
        url = f"postgresql+psycopg2://postgres@{host}:{port}/postgres"
        self.locker = pals.Locker("lockcheck", url)
        self.held = {}

    def acquire(self, key, wait):
        held = self.locker.lock(key)
        granted = held.acquire(acquire_timeout=round(wait * 1000))
        if granted:
            self.held[key] = held
        return granted

    def release(self, key):
        return bool(self.held.pop(key).release())
