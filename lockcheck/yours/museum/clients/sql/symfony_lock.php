<?php
// symfony/lock, with its PdoStore on PostgreSQL.

require __DIR__.'/protocol.php';
require '/usr/share/php/Symfony/Component/Lock/autoload.php';

use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\PdoStore;

final class PdoLock implements Library
{
    private LockFactory $factory;

    public function __construct(string $server, private float $ttl)
    {
        [$host, $port] = explode(':', $server);
        $store = new PdoStore("pgsql:host=$host;port=$port;dbname=postgres;user=postgres");
        try {
            $store->createTable();
        } catch (PDOException) {
            // another client was faster
        }
        $this->factory = new LockFactory($store);
    }

    public function acquire(string $key): ?object
    {
        $lock = $this->factory->createLock($key, $this->ttl, false);

        return $lock->acquire() ? $lock : null;
    }

    public function release(object $lock): void
    {
        $lock->release();
    }
}

// Whole seconds, as it asks for.
serve(fn (array $asked) => new PdoLock(
    $asked['servers'][0],
    intdiv($asked['ttl_ms'], 1000) + ('OneMore' === $argv[1] ? 1 : 0),
));
