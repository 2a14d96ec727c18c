// The client of a lock, for lockcheck: lockcheck validate --client ./mylock
//
// It reads requests from its input and prints answers, one JSON object a line: docs/protocol.md.
// As it stands, the lock is a key in Redis with a lease, set if it is not there, and removed by its
// owner alone. Put your own in the three places. (In a crate, let serde_json read and write.)

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const NOT_SUPPORTED: u32 = 10;
const UNAVAILABLE: u32 = 11;
const UNKNOWN: u32 = 13;
const NOT_OWNER: u32 = 20;
const HELD: u32 = 22;
const PATIENCE: Duration = Duration::from_secs(1);
const REMOVE: &str =
    "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

/// Its code tells whether it certainly did not happen.
struct Failure(u32, String);

impl From<Error> for Failure {
    /// Whatever went wrong on the way, it may have happened.
    fn from(error: Error) -> Self {
        Failure(UNKNOWN, error.to_string())
    }
}

#[derive(Default)]
struct MyLock {
    server: String,
    ttl_ms: String,
    owners: HashMap<u64, String>, // by the numbers of their acquires
}

impl MyLock {
    fn connect(servers: Vec<String>, ttl_ms: u64) -> Result<MyLock, Failure> {
        // 1. Connect: the servers are host:port.
        let server = servers.into_iter().next().unwrap_or_default();
        Ok(MyLock {
            server,
            ttl_ms: ttl_ms.to_string(),
            ..MyLock::default()
        })
    }

    /// Its fencing token; None: it has none.
    fn acquire(&mut self, key: &str, number: u64) -> Result<Option<i64>, Failure> {
        // 2. Granted, or a Failure: it is held, or it may have happened.
        let owner = secret()?;
        let set = [
            "SET",
            &format!("lock:{key}"),
            &owner,
            "NX",
            "PX",
            &self.ttl_ms,
        ];
        if self.redis(&set)? != "+OK" {
            return Err(Failure(HELD, "held".into()));
        }
        self.owners.insert(number, owner);
        Ok(None)
    }

    fn release(&mut self, key: &str, acquire: u64) -> Result<(), Failure> {
        // 3. Released, or a Failure: it was not ours any more, or it may have happened.
        let owner = self.owners.remove(&acquire).unwrap_or_default();
        match self
            .redis(&["EVAL", REMOVE, "1", &format!("lock:{key}"), &owner])?
            .as_str()
        {
            ":1" => Ok(()),
            _ => Err(Failure(NOT_OWNER, "not ours any more".into())),
        }
    }

    fn leave(&mut self, acquire: u64) {
        self.owners.remove(&acquire); // it will not be released: nothing keeps it alive
    }

    /// A request in Redis' protocol, and the first line of its answer.
    fn redis(&self, words: &[&str]) -> Result<String, Failure> {
        let nothing_asked = |error: Error| Failure(UNAVAILABLE, error.to_string());
        let address = self.server.to_socket_addrs().map_err(nothing_asked)?.next();
        let address = address.ok_or_else(|| nothing_asked(ErrorKind::AddrNotAvailable.into()))?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(nothing_asked)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let parts: String = words
            .iter()
            .map(|w| format!("${}\r\n{w}\r\n", w.len()))
            .collect();
        stream.write_all(format!("*{}\r\n{parts}", words.len()).as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        match line.trim_end() {
            "" => Err(Error::from(ErrorKind::UnexpectedEof).into()),
            line if line.starts_with('-') => Err(Failure(UNKNOWN, line.into())),
            line => Ok(line.into()),
        }
    }
}

fn secret() -> Result<String, Error> {
    let mut bytes = [0u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

// --- the protocol

/// What follows the name in a request.
fn after<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = request.split_once(&format!("\"{name}\":"))?;
    Some(rest.trim_start())
}

/// A number or a string of a request; empty: it has none of this name.
fn field<'a>(request: &'a str, name: &str) -> &'a str {
    let rest = after(request, name).unwrap_or("");
    match rest.strip_prefix('"') {
        Some(string) => string.split('"').next().unwrap_or(""),
        None => rest.split([',', '}']).next().unwrap_or("").trim(),
    }
}

fn number(request: &str, name: &str) -> u64 {
    field(request, name).parse().unwrap_or_default()
}

fn servers(request: &str) -> Vec<String> {
    let list = after(request, "servers")
        .unwrap_or("")
        .split(']')
        .next()
        .unwrap_or("");
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(String::from)
        .collect()
}

fn answer(lock: &mut MyLock, asked: &str) -> Result<String, Failure> {
    let (key, acquire) = (field(asked, "key"), number(asked, "acquire"));
    match field(asked, "type") {
        "init" => {
            *lock = MyLock::connect(servers(asked), number(asked, "ttl_ms"))?;
            Ok(r#""type": "init_ok""#.into())
        }
        "acquire" => {
            let token = lock.acquire(key, number(asked, "msg_id"))?;
            let token = token
                .map(|t| format!(r#", "token": {t}"#))
                .unwrap_or_default();
            Ok(format!(r#""type": "acquire_ok"{token}"#))
        }
        "release" => {
            lock.release(key, acquire)?;
            Ok(r#""type": "release_ok""#.into())
        }
        "leave" => {
            lock.leave(acquire);
            Ok(String::new())
        }
        other => Err(Failure(NOT_SUPPORTED, format!("unknown request: {other}"))),
    }
}

fn main() {
    let mut lock = MyLock::default();
    for asked in io::stdin().lines().map_while(Result::ok) {
        let body = answer(&mut lock, &asked).unwrap_or_else(|Failure(code, text)| {
            let text = text.replace(|c: char| c == '"' || c == '\\' || c.is_control(), " ");
            format!(r#""type": "error", "code": {code}, "text": "{text}""#)
        });
        let id = field(&asked, "msg_id"); // empty: it needs no answer
        if !id.is_empty() {
            let body = format!(r#"{{"in_reply_to": {id}, {body}}}"#);
            println!(r#"{{"src": "client", "dest": "lockcheck", "body": {body}}}"#);
        }
    }
}
