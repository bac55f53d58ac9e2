package autoscale

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// Hook controls the lifecycle hooks that delay the instance's termination.
type Hook interface {
	Heartbeat(ctx context.Context) error
	// Complete lets the group terminate the instance.
	Complete(ctx context.Context) error
}

// Termination waits until the group selects this instance for termination, drains it and completes the lifecycle
// action. Chosen, Hook and Drain are required.
type Termination struct {
	Chosen func(ctx context.Context) (bool, error)
	Hook   Hook
	Drain  func(ctx context.Context) error
	// Poll is the interval between calls of Chosen; 0 means 5 s.
	Poll   time.Duration
	Events Events
}

// heartbeatInterval is half of the shortest heartbeat timeout that AWS allows.
const heartbeatInterval = 15 * time.Second

const completionAttempts = 6

// Run returns early if ctx ends before the group selects the instance. If ctx ends during the drain, Run still
// completes the lifecycle action.
func (d *Termination) Run(ctx context.Context) {
	if !d.waitUntilChosen(ctx) {
		return
	}
	if d.Events.Terminating != nil {
		d.Events.Terminating()
	}
	err := d.drainWithHeartbeats(ctx)
	notify(d.Events.Terminated, errors.Join(err, d.complete(ctx)))
}

func (d *Termination) waitUntilChosen(ctx context.Context) bool {
	chosen := false
	check := func(ctx context.Context) error {
		found, err := d.Chosen(ctx)
		chosen = found && err == nil
		return err
	}

	calls := newCaller(d.Events.Failed)
	every(ctx, cmp.Or(d.Poll, 5*time.Second), func() bool {
		_ = calls.do(ctx, "checking for termination", check) // reported already
		return !chosen
	})
	return chosen && ctx.Err() == nil
}

func (d *Termination) drainWithHeartbeats(ctx context.Context) error {
	heartbeats, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { d.sendHeartbeats(heartbeats) })

	err := d.Drain(ctx)
	stop()
	running.Wait()
	return err
}

// sendHeartbeats waits first, because the hooks' timeouts have just started.
func (d *Termination) sendHeartbeats(ctx context.Context) {
	calls := newCaller(d.Events.Failed)
	ticker := time.Tick(heartbeatInterval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker:
			_ = calls.do(ctx, "sending the lifecycle heartbeat", d.Hook.Heartbeat) // reported already
		}
	}
}

func (d *Termination) complete(ctx context.Context) error {
	calls := newCaller(d.Events.Failed)
	complete := func() error {
		return calls.do(context.WithoutCancel(ctx), "completing the lifecycle hook", d.Hook.Complete)
	}
	for attempt := range completionAttempts - 1 {
		if complete() == nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second << attempt):
		}
	}
	calls.failed = nil // Terminated reports the last failure
	return complete()
}
