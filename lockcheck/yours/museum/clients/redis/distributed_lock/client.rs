//! distributed-lock-redis: its reader-writer lock, and as "Exclusive" its lock.

mod protocol;

use std::time::Duration;

use distributed_lock_core::traits::{
    DistributedLock, DistributedReaderWriterLock, LockHandle, LockProvider,
    ReaderWriterLockProvider,
};
use distributed_lock_redis::{
    RedisDistributedLock, RedisDistributedReaderWriterLock, RedisLockProvider,
};
use protocol::{serve, Asked, Failure, Library};
use tokio::runtime::Runtime;

struct Client {
    runtime: Runtime,
    provider: RedisLockProvider,
    exclusive: bool,
}

enum Hold {
    Read(<RedisDistributedReaderWriterLock as DistributedReaderWriterLock>::ReadHandle),
    Write(<RedisDistributedReaderWriterLock as DistributedReaderWriterLock>::WriteHandle),
    Lock(<RedisDistributedLock as DistributedLock>::Handle),
}

impl Library for Client {
    type Hold = Hold;

    fn connect(variant: &str, asked: &Asked) -> Result<Self, Failure> {
        let (runtime, ttl) = (Runtime::new()?, Duration::from_millis(asked.ttl_ms()));
        let provider = runtime.block_on(
            RedisLockProvider::builder()
                .url(format!("redis://{}", asked.servers()[0]))
                .expiry(ttl)
                .extension_cadence(ttl / 3)
                .min_validity(ttl / 10)
                .build(),
        )?;
        let exclusive = variant == "Exclusive";
        Ok(Client { runtime, provider, exclusive })
    }

    fn acquire(&mut self, asked: &Asked) -> Result<Hold, Failure> {
        let hold = self.runtime.block_on(async {
            if self.exclusive {
                let lock = self.provider.create_lock(asked.key());
                return Ok::<_, Failure>(lock.try_acquire().await?.map(Hold::Lock));
            }
            let lock = self.provider.create_reader_writer_lock(asked.key());
            Ok(match asked.is_shared() {
                true => lock.try_acquire_read().await?.map(Hold::Read),
                false => lock.try_acquire_write().await?.map(Hold::Write),
            })
        })?;
        hold.ok_or(Failure::Held)
    }

    fn release(&mut self, hold: Hold) -> Result<(), Failure> {
        Ok(self.runtime.block_on(async {
            match hold {
                Hold::Read(handle) => handle.release().await,
                Hold::Write(handle) => handle.release().await,
                Hold::Lock(handle) => handle.release().await,
            }
        })?)
    }
}

fn main() {
    serve::<Client>();
}
