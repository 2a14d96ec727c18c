"""celery-once's lock of a task: what it does when the task is called, and when it ends."""

from celery import Celery
from celery_once import QueueOnce
from celery_once.tasks import AlreadyQueued


class OfATask:
    refusals = AlreadyQueued

    def __init__(self, key, url, ttl):
        app = Celery(broker="memory://")
        settings = {"url": url, "default_timeout": round(ttl)}
        app.conf.ONCE = {"backend": "celery_once.backends.Redis", "settings": settings}

        @app.task(base=QueueOnce, name=key)
        def task():
            """What it does is the work under the lock."""

        self.task = task

    def acquire(self):
        self.task.apply_async()

    def release(self):
        self.task.after_return("SUCCESS", None, "a task's id", [], {}, None)
