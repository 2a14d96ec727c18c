// What the clients in Go share: the protocol of docs/protocol.md.
package main

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"
)

const (
	notSupported = 10
	unavailable  = 11
	unknown      = 13
	notOwner     = 20
	held         = 22
)

type request struct {
	Type    string   `json:"type"`
	MsgID   *int     `json:"msg_id"`
	Servers []string `json:"servers"`
	TTLms   int      `json:"ttl_ms"`
	WaitMs  int      `json:"wait_ms"`
	Key     string   `json:"key"`
	Acquire int      `json:"acquire"`
}

func (r request) ttl() time.Duration  { return time.Duration(r.TTLms) * time.Millisecond }
func (r request) wait() time.Duration { return time.Duration(r.WaitMs) * time.Millisecond }

// errHeld: the lock was certainly not granted. Any other error means that it may have been.
var errHeld = errors.New("held")

// hold is a lock that was granted; lost is closed when the library tells that it is over.
type hold struct {
	token   int64
	release func() error
	leave   func()
	lost    <-chan struct{}
}

// library is what a client has to be; connect makes one of a variant.
type library interface {
	acquire(r request) (hold, error)
}

type message map[string]any

var saying sync.Mutex

func say(body message) {
	saying.Lock()
	defer saying.Unlock()
	json.NewEncoder(os.Stdout).Encode(message{"src": "client", "dest": "lockcheck", "body": body})
}

func failed(code int, err error) message {
	return message{"type": "error", "code": code, "text": err.Error()}
}

type client struct {
	library library
	holds   map[int]hold
}

func (c *client) answer(variant string, r request) (answer message) {
	var err error
	switch r.Type {
	case "init":
		if c.library, err = connect(variant, r); err != nil {
			return failed(unavailable, err)
		}
		return message{"type": "init_ok"}
	case "acquire":
		return c.acquire(r)
	case "release":
		h, ok := c.holds[r.Acquire]
		if delete(c.holds, r.Acquire); !ok {
			return failed(notOwner, errors.New("it was not acquired"))
		}
		if err = h.release(); err != nil {
			return failed(unknown, err)
		}
		return message{"type": "release_ok"}
	case "leave":
		if h, ok := c.holds[r.Acquire]; ok && h.leave != nil {
			h.leave()
		}
		delete(c.holds, r.Acquire)
	}
	return failed(notSupported, errors.New("unknown request"))
}

func (c *client) acquire(r request) message {
	h, err := c.library.acquire(r)
	if err == errHeld {
		return failed(held, err)
	} else if err != nil {
		return failed(unknown, err)
	}
	c.holds[*r.MsgID] = h
	if h.lost != nil {
		go func() {
			<-h.lost
			say(message{"type": "lost", "acquire": *r.MsgID, "text": "its session is over"})
		}()
	}
	body := message{"type": "acquire_ok"}
	if h.token != 0 {
		body["token"] = h.token
	}
	return body
}

func main() {
	c, requests := &client{holds: map[int]hold{}}, json.NewDecoder(os.Stdin)
	for {
		var asked struct{ Body request }
		if requests.Decode(&asked) != nil {
			return // the end of the input
		}
		answer := c.answer(os.Args[1], asked.Body)
		if asked.Body.MsgID != nil {
			answer["in_reply_to"] = *asked.Body.MsgID
			say(answer)
		}
	}
}
