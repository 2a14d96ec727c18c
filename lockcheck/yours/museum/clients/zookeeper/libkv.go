// libkv's lock on ZooKeeper, and the channel that it returns.
package main

import (
	"errors"
	"time"

	"github.com/docker/libkv/store"
	"github.com/docker/libkv/store/zookeeper"
)

type kvStore struct{ store.Store }

func connect(variant string, r request) (library, error) {
	zk, err := zookeeper.New(r.Servers, &store.Config{ConnectionTimeout: r.ttl()})
	return kvStore{zk}, err
}

type answer struct {
	lost <-chan struct{}
	err  error
}

// acquire gives up after the wait; a lock that is granted later than that is released at once.
func (s kvStore) acquire(r request) (hold, error) {
	lock, err := s.NewLock("locks/"+r.Key, nil)
	if err != nil {
		return hold{}, errHeld // nothing was asked yet
	}
	came := make(chan answer)
	stop := make(chan struct{})
	go func() {
		lost, err := lock.Lock(stop)
		select {
		case came <- answer{lost, err}:
		case <-stop:
			if err == nil {
				lock.Unlock()
			}
		}
	}()
	select {
	case a := <-came:
		return hold{release: lock.Unlock, lost: a.lost}, a.err
	case <-time.After(r.wait()):
		close(stop)
		return hold{}, errors.New("waited in vain")
	}
}
