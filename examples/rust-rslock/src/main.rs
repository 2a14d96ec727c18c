//! rslock, a Redlock in Rust, as a client of lockcheck.

use std::{collections::HashMap, time::Duration};

use rslock::{Lock, LockManager};
use serde_json::{json, Value};
use tokio::io::{stdin, AsyncBufReadExt, BufReader};
use tokio::time::timeout;

const NOT_SUPPORTED: u32 = 10;
const UNKNOWN: u32 = 13;
const NOT_OWNER: u32 = 20;
const HELD: u32 = 22;
const PATIENCE: Duration = Duration::from_secs(2); // rslock itself waits for servers that are away

struct Client {
    manager: LockManager,
    ttl: Duration,
    held: HashMap<u64, Lock>, // by the numbers of their acquires
}

fn failed(code: u32, text: impl ToString) -> Value {
    json!({"type": "error", "code": code, "text": text.to_string()})
}

impl Client {
    fn new(asked: &Value) -> Self {
        let servers = asked["servers"].as_array().into_iter().flatten();
        let uris: Vec<String> = servers
            .filter_map(Value::as_str)
            .map(|server| format!("redis://{server}/"))
            .collect();
        let mut manager = LockManager::new(uris);
        manager.set_retry(1, Duration::from_millis(10));
        let ttl = Duration::from_millis(asked["ttl_ms"].as_u64().unwrap_or(0));
        Client {
            manager,
            ttl,
            held: HashMap::new(),
        }
    }

    async fn acquire(&mut self, asked: &Value) -> Value {
        let key = asked["key"].as_str().unwrap_or("");
        match timeout(PATIENCE, self.manager.lock(key.as_bytes(), self.ttl)).await {
            Ok(Ok(lock)) => {
                let valid_ms = lock.validity_time;
                self.held
                    .insert(asked["msg_id"].as_u64().unwrap_or(0), lock);
                json!({"type": "acquire_ok", "valid_ms": valid_ms})
            }
            // By then it has taken back what it was granted: it removed its keys, or tried to.
            Ok(Err(error)) => failed(HELD, error),
            Err(late) => failed(UNKNOWN, late),
        }
    }

    /// rslock does not say whether it was still held.
    async fn release(&mut self, asked: &Value) -> Value {
        let Some(lock) = self.held.remove(&asked["acquire"].as_u64().unwrap_or(0)) else {
            return failed(NOT_OWNER, "it was not acquired");
        };
        match timeout(PATIENCE, self.manager.unlock(&lock)).await {
            Ok(()) => json!({"type": "release_ok"}),
            Err(late) => failed(UNKNOWN, late),
        }
    }
}

async fn answer(client: &mut Option<Client>, asked: &Value) -> Value {
    match (asked["type"].as_str().unwrap_or(""), client) {
        ("describe", _) => json!({
            "type": "describe_ok", "name": "rslock", "servers": "redis*3",
            "promises": ["validity", "silent-release"],
        }),
        ("init", client) => {
            *client = Some(Client::new(asked));
            json!({"type": "init_ok"})
        }
        ("acquire", Some(client)) => client.acquire(asked).await,
        ("release", Some(client)) => client.release(asked).await,
        ("leave", Some(client)) => {
            client.held.remove(&asked["acquire"].as_u64().unwrap_or(0));
            Value::Null
        }
        (other, _) => failed(NOT_SUPPORTED, format!("unknown request: {other}")),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut client = None;
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).expect("JSON");
        let asked = &request["body"];
        let mut body = answer(&mut client, asked).await;
        if !asked["msg_id"].is_null() {
            body["in_reply_to"] = asked["msg_id"].clone();
            println!(
                "{}",
                json!({"src": "client", "dest": "lockcheck", "body": body})
            );
        }
    }
}
