"""celery-singleton's lock of a task: what it does when the task is called, and when it ends."""

from celery import Celery
from celery_singleton import Singleton


class OfATask:
    def __init__(self, key, url, ttl):
        app = Celery(broker="memory://")
        app.conf.singleton_backend_url = url
        app.conf.singleton_lock_expiry = round(ttl)

        @app.task(base=Singleton, name=key)
        def task():
            """What it does is the work under the lock."""

        self.task = task
        self.name = task.generate_lock(key)

    def acquire(self):
        return self.task.aquire_lock(self.name, "a task's id")

    def release(self):
        self.task.on_success(None, "a task's id", [], {})
