// The client of a lock, for lockcheck: lockcheck validate --client ./mylock
//
// It reads requests from its input and prints answers, one JSON object a line: docs/protocol.md.
// As it stands, the lock is a key in Redis with a lease, set if it is not there, and removed by its
// owner alone. Put your own in the three places.
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	notSupported = 10
	unavailable  = 11
	unknown      = 13
	notOwner     = 20
	held         = 22
)

const remove = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"

type request struct {
	Type    string   `json:"type"`
	MsgID   *int     `json:"msg_id"` // nil: it needs no answer
	Servers []string `json:"servers"`
	TTLms   int      `json:"ttl_ms"`
	Key     string   `json:"key"`
	Acquire int      `json:"acquire"`
}

type answer struct {
	Type      string `json:"type"`
	InReplyTo int    `json:"in_reply_to"`
	Token     *int64 `json:"token,omitempty"`
	Code      int    `json:"code,omitempty"`
	Text      string `json:"text,omitempty"`
}

// failure has a code that tells whether it certainly did not happen.
type failure struct {
	code int
	text string
}

func (f failure) Error() string { return f.text }

type myLock struct {
	server string
	ttl    string
	owners map[int]string // by the numbers of their acquires
}

func (l *myLock) connect(r request) error {
	// 1. Connect: the servers are host:port.
	*l = myLock{r.Servers[0], strconv.Itoa(r.TTLms), map[int]string{}}
	return nil
}

func (l *myLock) acquire(r request) (token *int64, err error) {
	// 2. Granted, with a token if it has one. Or a failure: it is held. Any other error means that
	//    it may have happened.
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return nil, failure{unavailable, err.Error()}
	}
	owner := hex.EncodeToString(secret)
	line, err := l.redis("SET", "lock:"+r.Key, owner, "NX", "PX", l.ttl)
	if err != nil {
		return nil, err
	}
	if line != "+OK" {
		return nil, failure{held, "held"}
	}
	l.owners[*r.MsgID] = owner
	return nil, nil
}

func (l *myLock) release(r request) error {
	// 3. Released, or a failure: it was not ours any more.
	owner := l.owners[r.Acquire]
	delete(l.owners, r.Acquire)
	line, err := l.redis("EVAL", remove, "1", "lock:"+r.Key, owner)
	if err == nil && line != ":1" {
		err = failure{notOwner, "not ours any more"}
	}
	return err
}

func (l *myLock) leave(r request) {
	delete(l.owners, r.Acquire) // it will not be released: nothing keeps it alive
}

// redis makes a request in Redis' protocol, and returns the first line of its answer.
func (l *myLock) redis(words ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", l.server, time.Second)
	if err != nil {
		return "", failure{unavailable, err.Error()}
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	var asked strings.Builder
	fmt.Fprintf(&asked, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&asked, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := conn.Write([]byte(asked.String())); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line[0] == '-' {
		err = failure{unknown, strings.TrimSpace(line)}
	}
	return strings.TrimSpace(line), err
}

func answered(l *myLock, r request) (a answer, err error) {
	a.Type = r.Type + "_ok"
	switch r.Type {
	case "init":
		err = l.connect(r)
	case "acquire":
		a.Token, err = l.acquire(r)
	case "release":
		err = l.release(r)
	case "leave":
		l.leave(r)
	default:
		err = failure{notSupported, "unknown request: " + r.Type}
	}
	return a, err
}

func main() {
	lock, requests, answers := &myLock{}, json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked struct{ Body request }
		if requests.Decode(&asked) != nil {
			return // the end of the input
		}
		a, err := answered(lock, asked.Body)
		if asked.Body.MsgID == nil {
			continue
		}
		if f, ok := err.(failure); ok {
			a = answer{Type: "error", Code: f.code, Text: f.text}
		} else if err != nil {
			a = answer{Type: "error", Code: unknown, Text: err.Error()}
		}
		a.InReplyTo = *asked.Body.MsgID
		answers.Encode(map[string]any{"src": "client", "dest": "lockcheck", "body": a})
	}
}
