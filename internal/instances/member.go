package instances

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"tendril/queue"
)

const (
	// pollInterval is how often a member compares its status with the written one.
	pollInterval = 5 * time.Second
	// statusInterval is the shortest time between two writes because of a changed status.
	statusInterval = 10 * time.Second
	// retryInterval and maxRetryInterval bound the wait after a failed or contended call.
	retryInterval    = 2 * time.Second
	maxRetryInterval = time.Minute
	callTimeout      = 5 * time.Second
)

// errContended is the error of a slot or roster that another instance changed first.
var errContended = errors.New("another instance changed the list at the same time")

// Options configure a [Member] and a [Watcher]. All fields are required.
type Options struct {
	Store Store
	// Environment is the name under which all instances of one environment find each other.
	Environment string
	Log         *slog.Logger
}

// Member keeps the record of this instance up to date. Its methods are called by one goroutine, [Member.Leave] after
// [Member.Run] has returned.
type Member struct {
	directory
	log    *slog.Logger
	report func() Record
	load   func() Load
	id     string

	slot    int    // -1 before joining
	version string // of the stored record; "" if nothing of ours is stored
	status  string // as written last
	written time.Time
	next    time.Time // when the next heartbeat is due
	calls   int       // for unique versions
	retries int       // failed calls in a row
}

// NewMember returns a member that has not joined yet. report returns the current record without ID, Load and WrittenAt.
// load is called for each write, so that it can measure since the last one.
func NewMember(opts Options, report func() Record, load func() Load) *Member {
	return &Member{directory: directory{opts.Store, opts.Environment}, log: opts.Log, report: report, load: load,
		id: rand.Text()[:12], slot: -1}
}

// ID identifies this start of tendril.
func (m *Member) ID() string { return m.id }

// Run joins and reports until ctx ends. It retries failed calls for ever.
func (m *Member) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := pollInterval
		if err := m.step(ctx); err != nil && ctx.Err() == nil {
			wait = m.backoff(err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// backoff returns a random wait that grows with the failures in a row, so that a thousand instances that start at once
// do not contend for ever. The first failure that is more than contention is logged.
func (m *Member) backoff(err error) time.Duration {
	if m.retries == 0 && !errors.Is(err, errContended) {
		m.log.Warn("instance record not written", "err", err)
	}
	m.retries++
	most := min(retryInterval<<min(m.retries, 10), maxRetryInterval)
	return time.Duration((0.1 + 0.9*mathrand.Float64()) * float64(most))
}

// step joins if necessary, and writes the record if it is due.
func (m *Member) step(ctx context.Context) error {
	if m.slot < 0 {
		if err := m.join(ctx); err != nil {
			return err
		}
	}

	r := m.report()
	now := time.Now()
	changed := r.status() != m.status && now.Sub(m.written) >= statusInterval
	if m.version != "" && !changed && now.Before(m.next) {
		return nil
	}
	if err := m.write(ctx, r); err != nil {
		return err
	}

	m.retries = 0
	m.status, m.written = r.status(), now
	m.next = now.Add(Heartbeat - time.Duration(mathrand.Int64N(int64(Heartbeat/10))))
	return nil
}

// join takes a slot of the roster.
func (m *Member) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	slot := 0
	done, err := m.change(ctx, m.newVersion(), func(r roster) roster {
		r, slot = r.take()
		return r
	})
	if err != nil {
		return fmt.Errorf("joining the instances: %w", err)
	}
	if !done {
		return fmt.Errorf("joining the instances: %w", errContended)
	}

	// An earlier instance's record may be in the slot.
	left, err := m.store.Read(ctx, m.slotName(slot))
	if err != nil {
		return fmt.Errorf("joining the instances: %w", err)
	}
	m.slot, m.version, m.written = slot, left.Version, time.Time{}
	m.status = ""
	return nil
}

// write replaces the record in the slot. If another instance owns the slot, this one joins again with its next step.
func (m *Member) write(ctx context.Context, r Record) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	won, current, err := m.store.Swap(ctx, m.slotName(m.slot), queue.Lease{Version: m.version}, m.lease(r))
	if err != nil {
		return fmt.Errorf("writing the record of this instance: %w", err)
	}
	if won {
		m.version = current.Version
		return nil
	}

	// The answer to an earlier write may have been lost.
	if stored, err := recordOf(m.slot, current); err == nil && stored.ID == m.id && !current.Released {
		m.version = current.Version
		return errContended
	}
	m.slot = -1
	return errContended
}

// Leave marks the record as stopped and frees the slot. The error is ctx's or the registry's; the leader then frees the
// slot.
func (m *Member) Leave(ctx context.Context) error {
	if m.slot < 0 || m.version == "" {
		return nil
	}
	stopped := m.lease(m.report())
	stopped.Released = true
	won, _, err := m.store.Swap(ctx, m.slotName(m.slot), queue.Lease{Version: m.version}, stopped)
	if err != nil {
		return fmt.Errorf("marking the record of this instance as stopped: %w", err)
	}
	if !won {
		return nil // another instance's, or one that a reader will see expire
	}

	slot := m.slot
	m.slot, m.version = -1, ""
	for ctx.Err() == nil {
		done, err := m.change(ctx, m.newVersion(), func(r roster) roster { return r.free(slot) })
		if done || err != nil {
			return err
		}
	}
	return ctx.Err()
}

// lease completes a record as the next content of the slot.
func (m *Member) lease(r Record) queue.Lease {
	r.ID, r.Load, r.WrittenAt = m.id, m.load(), time.Now().UTC().Truncate(time.Second)
	return r.clip().lease(m.newVersion())
}

func (m *Member) newVersion() string {
	m.calls++
	return fmt.Sprintf("%s/%d", m.id, m.calls)
}
