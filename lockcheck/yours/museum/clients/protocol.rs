//! What the clients in Rust share: the protocol of docs/protocol.md.

use std::io::{self, BufRead};

use serde_json::{json, Value};

const NOT_SUPPORTED: u32 = 10;
const UNAVAILABLE: u32 = 11;
const UNKNOWN: u32 = 13;
const NOT_OWNER: u32 = 20;
const HELD: u32 = 22;

pub enum Failure {
    /// The lock was certainly not granted.
    Held,
    /// It may have happened.
    Unknown(String),
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Unknown(error.to_string())
    }
}

pub struct Asked<'a>(&'a Value);

impl Asked<'_> {
    pub fn servers(&self) -> Vec<String> {
        let servers = self.0["servers"].as_array().into_iter().flatten();
        servers.filter_map(Value::as_str).map(String::from).collect()
    }

    pub fn ttl_ms(&self) -> u64 {
        self.0["ttl_ms"].as_u64().unwrap_or(0)
    }

    pub fn key(&self) -> &str {
        self.0["key"].as_str().unwrap_or("")
    }

    #[allow(dead_code)] // most locks have no readers
    pub fn is_shared(&self) -> bool {
        self.0["mode"] == "shared"
    }
}

/// What a client has to be. `Hold` is a lock that was granted.
pub trait Library: Sized {
    type Hold;
    fn connect(variant: &str, asked: &Asked) -> Result<Self, Failure>;
    fn acquire(&mut self, asked: &Asked) -> Result<Self::Hold, Failure>;
    fn release(&mut self, hold: Self::Hold) -> Result<(), Failure>;
}

fn error(code: u32, text: &str) -> Value {
    json!({"type": "error", "code": code, "text": text})
}

fn answered(done: Result<&str, Failure>) -> Value {
    match done {
        Ok(kind) => json!({"type": kind}),
        Err(Failure::Held) => error(HELD, "held"),
        Err(Failure::Unknown(why)) => error(UNKNOWN, &why),
    }
}

/// Answers requests until the input ends.
pub fn serve<L: Library>() {
    let variant = std::env::args().nth(1).unwrap_or_default();
    let (mut library, mut holds) = (None, std::collections::HashMap::new());
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let request: Value = serde_json::from_str(&line).expect("JSON");
        let asked = &request["body"];
        let acquire = asked["acquire"].as_u64().unwrap_or(0);
        let mut body = match (asked["type"].as_str().unwrap_or(""), &mut library) {
            ("init", _) => match L::connect(&variant, &Asked(asked)) {
                Ok(made) => {
                    library = Some(made);
                    answered(Ok("init_ok"))
                }
                Err(Failure::Unknown(why)) => error(UNAVAILABLE, &why),
                Err(Failure::Held) => error(UNAVAILABLE, "held"),
            },
            ("acquire", Some(library)) => answered(library.acquire(&Asked(asked)).map(|hold| {
                holds.insert(asked["msg_id"].as_u64().unwrap_or(0), hold);
                "acquire_ok"
            })),
            ("release", Some(library)) => match holds.remove(&acquire) {
                Some(hold) => answered(library.release(hold).map(|()| "release_ok")),
                None => error(NOT_OWNER, "it was not acquired"),
            },
            ("leave", _) => {
                holds.remove(&acquire);
                Value::Null
            }
            _ => error(NOT_SUPPORTED, "unknown request"),
        };
        if !asked["msg_id"].is_null() {
            body["in_reply_to"] = asked["msg_id"].clone();
            println!("{}", json!({"src": "client", "dest": "lockcheck", "body": body}));
        }
    }
}
