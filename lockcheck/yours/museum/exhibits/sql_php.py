"""Locks on databases whose clients are in PHP."""

from __future__ import annotations

from lockcheck.checker.finding import Code
from lockcheck.yours.museum.exhibit import Exhibit, Whose

EXHIBITS = {
    "symfony-lock": Exhibit(
        library="symfony-lock 5.4.53 (PHP)",
        shows="PdoStore's lease on PostgreSQL is up to a second shorter than its TTL",
        settings={
            "client": "sql/symfony_lock.php:Whole",
            "servers": "postgres",
            "promises": ("silent-release",),
            "ttl_ms": 2000,
            "think_ms": 1200,
            "time_limit_ms": 15_000,
        },
        control={"client": "sql/symfony_lock.php:OneMore"},
        controls="the same work, and it asks for a lease that is a second longer",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="Symfony/Component/Lock/Store/PdoStore.php",
        line="return 'CAST(EXTRACT(epoch FROM NOW()) AS INT)';",
        why="times are whole seconds, rounded: a lease of 2 s that begins at 10.49 ends at 11.5. "
        "`getRemainingLifetime` and `isExpired` go by the whole TTL",
        word="of a flaky test, [#29726](https://github.com/symfony/symfony/pull/29726): "
        '"the expiration of some store (PDO and Memcached) have a precision of 1 second"',
        debs={"php-symfony-lock": "5.4.53", "php-pgsql": ""},
    ),
}
