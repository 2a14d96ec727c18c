// etcd's own lock in Go, concurrency.Mutex, with a session for each hold.
package main

import (
	"context"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"go.etcd.io/etcd/etcdserver/api/v3rpc/rpctypes"
)

const patience = 2 * time.Second

type etcdMutex struct{ etcd *clientv3.Client }

func connect(variant string, r request) (library, error) {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: r.Servers, DialTimeout: patience})
	return etcdMutex{etcd}, err
}

func within(wait time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), wait)
}

func (e etcdMutex) session(r request) (*concurrency.Session, error) {
	ctx, cancel := within(patience)
	defer cancel()
	lease, err := e.etcd.Grant(ctx, int64(r.ttl().Seconds()))
	if err != nil {
		return nil, err
	}
	return concurrency.NewSession(e.etcd, concurrency.WithLease(lease.ID))
}

func (e etcdMutex) acquire(r request) (hold, error) {
	session, err := e.session(r)
	if err != nil {
		return hold{}, errHeld // without a session there is no lock
	}
	mutex := concurrency.NewMutex(session, "/locks/"+r.Key)
	waiting, cancel := within(r.wait())
	defer cancel()
	if err = mutex.Lock(waiting); err != nil {
		return hold{}, e.withdrawn(session, err)
	}
	release := func() error {
		ctx, cancel := within(patience)
		defer cancel()
		err := mutex.Unlock(ctx)
		session.Orphan()
		return err
	}
	return hold{mutex.Header().Revision, release, session.Orphan, session.Done()}, nil
}

// withdrawn ends a session that waited in vain: without its lease, it certainly holds nothing.
func (e etcdMutex) withdrawn(session *concurrency.Session, why error) error {
	session.Orphan()
	ctx, cancel := within(patience)
	defer cancel()
	_, err := e.etcd.Revoke(ctx, session.Lease())
	if err != nil && err != rpctypes.ErrLeaseNotFound {
		return why
	}
	return errHeld
}
