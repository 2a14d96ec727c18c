//! dist_lock, with its driver for ZooKeeper.

mod protocol;

use std::time::Duration;

use dist_lock::core::{DistLock, LockConfig};
use dist_lock::provider::zookeeper::ZookeeperDriver;
use protocol::{serve, Asked, Failure, Library};
use zookeeper::{WatchedEvent, Watcher, ZooKeeper};

const SESSION: Duration = Duration::from_secs(2);

struct Client {
    zookeeper: &'static ZooKeeper,
    at_most_ms: i64,
}

struct Unheard;

impl Watcher for Unheard {
    fn handle(&self, _: WatchedEvent) {}
}

impl Library for Client {
    type Hold = DistLock<ZookeeperDriver<'static>>;

    fn connect(_variant: &str, asked: &Asked) -> Result<Self, Failure> {
        let client = ZooKeeper::connect(&asked.servers().join(","), SESSION, Unheard)?;
        let zookeeper = Box::leak(Box::new(client));
        Ok(Client { zookeeper, at_most_ms: asked.ttl_ms() as i64 })
    }

    fn acquire(&mut self, asked: &Asked) -> Result<Self::Hold, Failure> {
        let config = LockConfig::from_mills(asked.key().to_string(), 0, self.at_most_ms);
        let lock = DistLock::new(config, ZookeeperDriver::new(None, self.zookeeper)?);
        let granted = lock.acquire()?;
        granted.then_some(lock).ok_or(Failure::Held)
    }

    fn release(&mut self, lock: Self::Hold) -> Result<(), Failure> {
        Ok(lock.release()?)
    }
}

fn main() {
    serve::<Client>();
}
