package autoscale

import (
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
	call(d.Events.Terminating, Terminating{})
	err := d.drain(ctx)
	err = errors.Join(err, d.complete(ctx))
	call(d.Events.Terminated, Terminated{Err: err})
}

// wait returns true when the instance will be terminated, and false when ctx ends.
func (d *Termination) wait(ctx context.Context) bool {
	ticker := time.NewTicker(durationOr(d.Poll, 5*time.Second))
	defer ticker.Stop()
	failures := 0
	for {
		var chosen bool
		err := d.callWithTimeout(ctx, func(ctx context.Context) (err error) {
			chosen, err = d.Chosen(ctx)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			failures++
			call(d.Events.Failed, Failed{Doing: "checking for termination", Err: err, Consecutive: failures})
		case chosen:
			return true
		default:
			failures = 0
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// drain runs Drain and sends heartbeats meanwhile.
func (d *Termination) drain(ctx context.Context) error {
	heartbeats, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { d.heartbeat(heartbeats) })
	err := d.Drain(ctx)
	stop()
	running.Wait()
	return err
}

func (d *Termination) heartbeat(ctx context.Context) {
	ticker := time.NewTicker(durationOr(d.Beat, 15*time.Second))
	defer ticker.Stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := d.callWithTimeout(ctx, d.Hook.Heartbeat)
		failures++
		switch {
		case err == nil:
			failures = 0
		case ctx.Err() == nil:
			call(d.Events.Failed, Failed{Doing: "sending the lifecycle heartbeat", Err: err, Consecutive: failures})
		}
	}
}

// complete completes the hook and retries a failure, without delays after ctx has ended.
func (d *Termination) complete(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for attempt := 1; ; attempt++ {
		err := d.callWithTimeout(context.WithoutCancel(ctx), d.Hook.Complete)
		if err == nil || attempt == completionAttempts {
			return err
		}
		call(d.Events.Failed, Failed{Doing: "completing the lifecycle hook", Err: err, Consecutive: attempt})
		timer.Reset(time.Second << (attempt - 1))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

func (d *Termination) callWithTimeout(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, durationOr(d.CallTimeout, callTimeout))
	defer cancel()
	return f(ctx)
}
