// etcd's lock service: the server waits, and the client keeps its lease alive from its turn on.
package main

import (
	"context"
	"time"

	"go.etcd.io/etcd/clientv3"
	pb "go.etcd.io/etcd/etcdserver/api/v3lock/v3lockpb"
	"go.etcd.io/etcd/etcdserver/api/v3rpc/rpctypes"
)

const patience = 2 * time.Second

type service struct {
	etcd *clientv3.Client
	lock pb.LockClient
}

func connect(variant string, r request) (library, error) {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: r.Servers, DialTimeout: patience})
	if err != nil {
		return nil, err
	}
	return service{etcd, pb.NewLockClient(etcd.ActiveConnection())}, nil
}

func within(wait time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), wait)
}

func (s service) acquire(r request) (hold, error) {
	ctx, cancel := within(patience)
	defer cancel()
	lease, err := s.etcd.Grant(ctx, int64(r.ttl().Seconds()))
	if err != nil {
		return hold{}, errHeld // without a lease there is no lock
	}
	waiting, cancelWait := within(r.wait())
	defer cancelWait()
	asked := &pb.LockRequest{Name: []byte("locks/" + r.Key), Lease: int64(lease.ID)}
	locked, err := s.lock.Lock(waiting, asked)
	if err != nil {
		return hold{}, s.withdrawn(lease.ID, err)
	}
	keeping, leave := context.WithCancel(context.Background())
	lost := make(chan struct{})
	go s.keep(keeping, lease.ID, lost)
	release := func() error {
		ctx, cancel := within(patience)
		defer cancel()
		_, err := s.lock.Unlock(ctx, &pb.UnlockRequest{Key: locked.Key})
		leave()
		return err
	}
	return hold{release: release, leave: leave, lost: lost}, nil
}

func (s service) keep(ctx context.Context, lease clientv3.LeaseID, lost chan struct{}) {
	defer close(lost)
	if alive, err := s.etcd.KeepAlive(ctx, lease); err == nil {
		for range alive {
		}
	}
}

// withdrawn revokes the lease: without it, it certainly holds nothing.
func (s service) withdrawn(lease clientv3.LeaseID, why error) error {
	ctx, cancel := within(patience)
	defer cancel()
	_, err := s.etcd.Revoke(ctx, lease)
	if err != nil && err != rpctypes.ErrLeaseNotFound {
		return why
	}
	return errHeld
}
