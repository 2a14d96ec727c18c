// The Mutex of etcd's own client, with a session for each hold, as a client of lockcheck.
package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

const (
	notSupported = 10
	unavailable  = 11
	unknown      = 13
	notOwner     = 20
	held         = 22

	attempt  = 500 * time.Millisecond // which takes a moment, too
	patience = 2 * time.Second
)

type message map[string]any

type request struct {
	Type    string   `json:"type"`
	MsgID   *int     `json:"msg_id"`
	Servers []string `json:"servers"`
	TTLms   int      `json:"ttl_ms"`
	WaitMs  int      `json:"wait_ms"`
	Key     string   `json:"key"`
	Acquire int      `json:"acquire"`
}

type hold struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

type client struct {
	etcd  *clientv3.Client
	ttl   int // in seconds
	holds map[int]hold
}

var writing sync.Mutex

func say(body message) {
	writing.Lock()
	defer writing.Unlock()
	json.NewEncoder(os.Stdout).Encode(message{"src": "client", "dest": "lockcheck", "body": body})
}

func failed(code int, err error) message {
	return message{"type": "error", "code": code, "text": err.Error()}
}

func (c *client) begin(r request) message {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: r.Servers, DialTimeout: patience})
	if err != nil {
		return failed(unavailable, err)
	}
	*c = client{etcd, r.TTLms / 1000, map[int]hold{}}
	return message{"type": "init_ok"}
}

// session is one that ends with its context, so that nothing waits for servers for longer.
func (c *client) session(ctx context.Context) (*concurrency.Session, error) {
	lease, err := c.etcd.Grant(ctx, int64(c.ttl))
	if err != nil {
		return nil, err
	}
	return concurrency.NewSession(c.etcd, concurrency.WithTTL(c.ttl), concurrency.WithLease(lease.ID))
}

func (c *client) acquire(r request) message {
	wait := time.Duration(r.WaitMs) * time.Millisecond
	if wait < attempt {
		wait = attempt
	}
	granting, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := c.session(granting)
	if err != nil {
		return failed(unavailable, err) // without a session there is no lock
	}
	waiting, cancelWait := context.WithTimeout(context.Background(), wait)
	defer cancelWait()
	mutex := concurrency.NewMutex(session, "/locks/"+r.Key)
	if err = mutex.Lock(waiting); err != nil {
		return failed(c.withdrawn(session), err)
	}
	c.holds[*r.MsgID] = hold{session, mutex}
	go func() {
		<-session.Done()
		say(message{"type": "lost", "acquire": *r.MsgID, "text": "its session is over"})
	}()
	return message{"type": "acquire_ok", "token": mutex.Header().Revision}
}

// withdrawn ends a session that waited in vain: once it is revoked, it certainly holds nothing.
func (c *client) withdrawn(session *concurrency.Session) int {
	session.Orphan()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := c.etcd.Revoke(ctx, session.Lease()); err != nil {
		return unknown
	}
	return held
}

func (c *client) release(r request) message {
	h, ok := c.holds[r.Acquire]
	if !ok {
		return message{"type": "error", "code": notOwner, "text": "it was not acquired"}
	}
	delete(c.holds, r.Acquire)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := h.mutex.Unlock(ctx)
	h.session.Orphan()
	if err != nil {
		return failed(unknown, err)
	}
	go c.etcd.Revoke(c.etcd.Ctx(), h.session.Lease()) // or it would run out by itself
	return message{"type": "release_ok"}
}

func (c *client) leave(r request) {
	if h, ok := c.holds[r.Acquire]; ok {
		delete(c.holds, r.Acquire)
		h.session.Orphan()
	}
}

func (c *client) answer(r request) message {
	switch r.Type {
	case "describe":
		return message{"type": "describe_ok", "name": "etcd-mutex", "servers": "etcd", "promises": []string{
			"session", "waits", "fair", "token", "silent-release", "ttl-step=1s"}}
	case "init":
		return c.begin(r)
	case "acquire":
		return c.acquire(r)
	case "release":
		return c.release(r)
	case "leave":
		c.leave(r)
	}
	return message{"type": "error", "code": notSupported, "text": "unknown request: " + r.Type}
}

func main() {
	c, requests := &client{}, json.NewDecoder(os.Stdin)
	for {
		var asked struct{ Body request }
		if requests.Decode(&asked) != nil {
			return // the end of the input
		}
		answer := c.answer(asked.Body)
		if asked.Body.MsgID != nil {
			answer["in_reply_to"] = *asked.Body.MsgID
			say(answer)
		}
	}
}
