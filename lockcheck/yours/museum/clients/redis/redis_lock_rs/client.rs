//! redis-lock's MultiResourceLock, of one resource.

mod protocol;

use std::time::Duration;

use protocol::{serve, Asked, Failure, Library};
use redis_lock::{setup, MultiResourceLock};
use tokio::runtime::Runtime;

struct Client {
    runtime: Runtime,
    lock: MultiResourceLock,
    expiration: Duration,
}

impl Library for Client {
    type Hold = String;

    fn connect(variant: &str, asked: &Asked) -> Result<Self, Failure> {
        let runtime = Runtime::new()?;
        let client = redis::Client::open(format!("redis://{}", asked.servers()[0]))?;
        let prepared = runtime.block_on(setup(&client));
        prepared.map_err(|error| Failure::Unknown(error.to_string()))?;
        let expiration = match variant {
            "Thousandth" => Duration::from_micros(asked.ttl_ms()),
            _ => Duration::from_millis(asked.ttl_ms()),
        };
        let lock = MultiResourceLock::new(client)?;
        Ok(Client { runtime, lock, expiration })
    }

    fn acquire(&mut self, asked: &Asked) -> Result<String, Failure> {
        let resources = [asked.key().to_string()];
        let granted = self.lock.try_acquire(&resources, self.expiration);
        self.runtime.block_on(granted)?.ok_or(Failure::Held)
    }

    fn release(&mut self, id: String) -> Result<(), Failure> {
        self.runtime.block_on(self.lock.release(&id))?;
        Ok(())
    }
}

fn main() {
    serve::<Client>();
}
