package autoscale

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Exit tells when this instance has to go.
type Exit interface {
	// Leaving tells whether the group has chosen this instance to be terminated
	// and waits for it.
	Leaving(ctx context.Context) (bool, error)
}

// Hook is the lifecycle hook at which a group waits for an instance.
type Hook interface {
	// Heartbeat asks the group to wait on.
	Heartbeat(ctx context.Context) error
	// Complete tells it to wait no longer.
	Complete(ctx context.Context) error
}

// Departure watches for the end of this instance, drains it, and lets it go.
// Its zero value has no parts and cannot run.
type Departure struct {
	Exit Exit
	Hook Hook
	// Drain stops receiving and returns when nothing is in work any more, or
	// when ctx ends.
	Drain func(ctx context.Context) error
	// Poll is the time between two questions whether to leave; 0 means 5 s.
	Poll time.Duration
	// Beat is the time between two heartbeats while draining; 0 means 15 s,
	// half of the shortest time for which a hook can be set to wait.
	Beat time.Duration
	// CallTimeout bounds one call; 0 means 10 s.
	CallTimeout time.Duration
	Events      Events
}

// completions is how often the completion is tried, with a second between,
// then two, four and so on.
const completionAttempts = 6

// Run waits until the instance has to leave, drains it, completes the hook, and
// returns nil. When ctx ends before, it returns nil and does nothing; when it
// ends during the drain, the hook is completed all the same.
func (d *Departure) Run(ctx context.Context) error {
	if d.Exit == nil || d.Hook == nil || d.Drain == nil {
		return errors.New("a departure needs an exit to watch, a hook and a way to drain")
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

// await returns true when the instance has to leave, and false when ctx ends.
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
			call(d.Events.Failed, Failed{Doing: "asking whether this instance has to go", Err: err, InARow: failures})
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

// drain runs the drain with heartbeats beside it.
func (d *Departure) drain(ctx context.Context) error {
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beats sync.WaitGroup
	beats.Go(func() { d.heartbeat(beating) })
	err := d.Drain(ctx)
	stop()
	beats.Wait()
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
			call(d.Events.Failed, Failed{Doing: "asking the group to wait for the drain", Err: err, InARow: failures})
		}
	}
}

// complete tells the group, several times if need be, but not with pauses when
// ctx has ended.
func (d *Departure) complete(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for attempt := 1; ; attempt++ {
		err := d.callWithTimeout(context.WithoutCancel(ctx), d.Hook.Complete)
		if err == nil || attempt == completionAttempts {
			return err
		}
		call(d.Events.Failed, Failed{Doing: "telling the group that the drain is done", Err: err, InARow: attempt})
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

func durationOr(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}
