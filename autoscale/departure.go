package autoscale

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Exit reports when this instance will be terminated.
type Exit interface {
	// Leaving reports whether the group has chosen this instance for termination and
	// waits for it.
	Leaving(ctx context.Context) (bool, error)
}

// Hook is the lifecycle hook at which the group waits for the instance.
type Hook interface {
	// Heartbeat asks the group to keep waiting.
	Heartbeat(ctx context.Context) error
	// Complete lets the group continue with the termination.
	Complete(ctx context.Context) error
}

// Departure waits for the termination of this instance, drains it, and completes the
// hook. Exit, Hook and Drain are required.
type Departure struct {
	Exit Exit
	Hook Hook
	// Drain stops receiving and returns when nothing is in work, or when ctx ends.
	Drain func(ctx context.Context) error
	// Poll is the time between two calls of Exit; 0 means 5 s.
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

// Run waits until the instance will be terminated, drains it, completes the hook, and
// returns nil. If ctx ends before, it returns nil and does nothing. If ctx ends during
// the drain, it completes the hook nevertheless.
func (d *Departure) Run(ctx context.Context) error {
	if d.Exit == nil || d.Hook == nil || d.Drain == nil {
		return errors.New("watching for termination: Exit, Hook and Drain are required")
	}
	if !d.waitForTermination(ctx) {
		return nil
	}
	call(d.Events.Departing, Departing{})
	err := d.drain(ctx)
	err = errors.Join(err, d.complete(ctx))
	call(d.Events.Departed, Departed{Err: err})
	return nil
}

// waitForTermination returns true when the instance will be terminated, and false when
// ctx ends.
func (d *Departure) waitForTermination(ctx context.Context) bool {
	ticker := time.NewTicker(durationOr(d.Poll, 5*time.Second))
	defer ticker.Stop()
	failures := 0
	for {
		var leaving bool
		err := d.callWithTimeout(ctx, func(ctx context.Context) (err error) {
			leaving, err = d.Exit.Leaving(ctx)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			failures++
			call(d.Events.Failed, Failed{Doing: "checking for termination", Err: err, InARow: failures})
		case leaving:
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
func (d *Departure) drain(ctx context.Context) error {
	heartbeats, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { d.heartbeat(heartbeats) })
	err := d.Drain(ctx)
	stop()
	running.Wait()
	return err
}

func (d *Departure) heartbeat(ctx context.Context) {
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
			call(d.Events.Failed, Failed{Doing: "sending the lifecycle heartbeat", Err: err, InARow: failures})
		}
	}
}

// complete completes the hook and retries a failure, without delays after ctx has ended.
func (d *Departure) complete(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for attempt := 1; ; attempt++ {
		err := d.callWithTimeout(context.WithoutCancel(ctx), d.Hook.Complete)
		if err == nil || attempt == completionAttempts {
			return err
		}
		call(d.Events.Failed, Failed{Doing: "completing the lifecycle hook", Err: err, InARow: attempt})
		timer.Reset(time.Second << (attempt - 1))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

func (d *Departure) callWithTimeout(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, durationOr(d.CallTimeout, 10*time.Second))
	defer cancel()
	return f(ctx)
}

func durationOr(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}
