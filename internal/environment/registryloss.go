package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tendril/internal/instances"
	"tendril/internal/observe/event"
)

const registryLossTick = time.Second

type registryLoss struct {
	mu      sync.Mutex
	missing error     // nil if the registry was found or is not used
	seeking time.Time // start of the search, valid with missing
	reason  string    // reason receiving is stopped; "" while receiving
}

func (r *registryLoss) setMissing(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing == nil {
		r.seeking = time.Now()
	}
	r.missing = why
}

func (r *registryLoss) whyMissing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing
}

func (r *registryLoss) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

func (r *registryLoss) watch(ctx context.Context, m *members) {
	tick := time.Tick(registryLossTick)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		failing := m.cron.election.Failing()
		reread := func() error { return m.desired.reread(ctx) }
		if r.update(failing, m.settings.now().RegistryLostAfter, reread) {
			m.stopWhileLost(r.text())
		}
	}
}

// update reports whether the reason has changed. failing is the time since the registry last answered, ignored until
// the registry is found. Unless limit is 0, receiving resumes only after reread succeeds.
func (r *registryLoss) update(failing, limit time.Duration, reread func() error) (changed bool) {
	before := r.text()
	reason := before
	failing = cmp.Or(r.searched(), failing)
	switch {
	case limit > 0 && failing >= limit:
		reason = fmt.Sprintf("the shared registry has not responded for %s (registry-lost-after)", limit)
	case limit == 0 || before != "" && failing == 0 && reread() == nil:
		reason = ""
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.reason = reason
	return reason != before
}

func (r *registryLoss) searched() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing == nil {
		return 0
	}
	return time.Since(r.seeking)
}

func (m *members) stopWhileLost(reason string) {
	pause := instances.Pause{}
	if reason != "" {
		pause = newPause(reason, "")
	}
	for _, l := range m.work.all {
		l.setPause(byRegistry, pause)
	}
	log := m.opts.log("instances")
	if reason != "" {
		event.Pause.Log(log, slog.LevelError, "receiving stopped", "reason", reason)
	} else {
		event.Pause.Log(log, slog.LevelInfo, "receiving resumed", "reason", "the shared registry responds")
	}
}

// reread tolerates a rejected state, because the last known one still applies.
func (d *desired) reread(ctx context.Context) error {
	if d.state == nil {
		return nil
	}
	leases, err := d.cron.leases(ctx)
	if err != nil {
		return err
	}
	_, err = d.state.Refresh(ctx, leases)
	d.apply()
	isRejected := errors.Is(err, instances.ErrForged) || errors.Is(err, instances.ErrReplayed) ||
		errors.Is(err, instances.ErrDiverged)
	if isRejected {
		return nil
	}
	return err
}
