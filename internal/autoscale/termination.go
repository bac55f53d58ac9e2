package autoscale

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// Hook is the lifecycle hook at which the group waits for the instance.
type Hook interface {
	// Heartbeat asks the group to keep waiting.
	Heartbeat(ctx context.Context) error
	// Complete lets the group continue with the termination.
	Complete(ctx context.Context) error
}

// Termination waits for the termination of this instance, drains it, and completes the
// hook. Chosen, Hook and Drain are required.
type Termination struct {
	// Chosen reports whether the group has chosen this instance for termination and waits
	// for it.
	Chosen func(ctx context.Context) (bool, error)
	Hook   Hook
	// Drain stops receiving and returns when nothing is in work, or when ctx ends.
	Drain func(ctx context.Context) error
	// Poll is the time between two calls of Chosen; 0 means 5 s.
	Poll time.Duration
	// Beat is the time between two heartbeats while draining; 0 means 15 s, half of the
	// shortest heartbeat timeout of a hook.
	Beat time.Duration
	// CallTimeout limits one call; 0 means 10 s.
	CallTimeout time.Duration
	Events      Events
}

// completionAttempts is how often Complete is tried, after delays of 1 s, 2 s, 4 s and
// so on.
const completionAttempts = 6

// Run waits until the instance will be terminated, drains it, and completes the hook. If
// ctx ends before, it does nothing. If ctx ends during the drain, it completes the hook
// nevertheless.
func (d *Termination) Run(ctx context.Context) {
	if !d.wait(ctx) {
		return
	}
	if d.Events.Terminating != nil {
		d.Events.Terminating()
	}
	err := d.drain(ctx)
	call(d.Events.Terminated, errors.Join(err, d.complete(ctx)))
}

// wait returns true when the instance will be terminated, and false when ctx ends.
func (d *Termination) wait(ctx context.Context) bool {
	chosen, calls := false, newCaller(d.CallTimeout, d.Events.Failed)
	every(ctx, cmp.Or(d.Poll, 5*time.Second), func() bool {
		_ = calls.do(ctx, "checking for termination", func(ctx context.Context) (err error) { // reported
			chosen, err = d.Chosen(ctx)
			chosen = chosen && err == nil
			return err
		})
		return !chosen
	})
	return chosen && ctx.Err() == nil
}

// drain runs Drain and sends heartbeats meanwhile.
func (d *Termination) drain(ctx context.Context) error {
	heartbeats, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		begun, calls := false, newCaller(d.CallTimeout, d.Events.Failed)
		every(heartbeats, cmp.Or(d.Beat, 15*time.Second), func() bool {
			if begun { // the hook's timeout has just begun, too
				_ = calls.do(heartbeats, "sending the lifecycle heartbeat", d.Hook.Heartbeat) // reported
			}
			begun = true
			return true
		})
	})
	err := d.Drain(ctx)
	stop()
	running.Wait()
	return err
}

// complete completes the hook and retries a failure, without delays after ctx has ended.
func (d *Termination) complete(ctx context.Context) error {
	calls := newCaller(d.CallTimeout, d.Events.Failed)
	for attempt := range completionAttempts - 1 {
		if calls.do(context.WithoutCancel(ctx), "completing the lifecycle hook", d.Hook.Complete) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second << attempt):
		}
	}
	calls.failed = nil // the last failure is reported with the end of the drain
	return calls.do(context.WithoutCancel(ctx), "", d.Hook.Complete)
}
