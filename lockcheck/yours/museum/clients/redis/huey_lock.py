"""huey's lock of a task."""

from huey import RedisExpireHuey
from huey.exceptions import TaskLockedException


class OfATask:
    """`huey.lock_task(name)`, around what a task does."""

    refusals = TaskLockedException

    def __init__(self, key, host, port, ttl):
        huey = RedisExpireHuey("lockcheck", host=host, port=port)
        self.inner = huey.lock_task(key, ttl=round(ttl))

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, *error):
        return self.inner.__exit__(*error)
