"""tooz's lock on PostgreSQL: an advisory lock, by a digest of its name."""

from tooz import coordination


class OfTwoVolumes:
    """The locks of two volumes."""

    names = (b"volume-96", b"volume-270")

    def __init__(self, node, host, port):
        url = f"postgresql://postgres@{host}:{port}?dbname=postgres"
        self.coordinator = coordination.get_coordinator(url, node.encode())
        self.coordinator.start()
        self.held = {}

    def acquire(self, key):
        held = self.coordinator.get_lock(self.names[key == "k2"])
        granted = held.acquire(blocking=False)
        if granted:
            self.held[key] = held
        return granted

    def release(self, key):
        return self.held.pop(key).release()


class OfTwoOthers(OfTwoVolumes):
    names = (b"volume-96", b"volume-97")
