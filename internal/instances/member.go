package instances

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync/atomic"
	"time"

	"tendril/queue"
)

const (
	pollInterval   = 5 * time.Second
	statusInterval = 10 * time.Second
	// A failure is followed by a random wait, whose maximum doubles from 2*retryInterval to maxRetryInterval.
	retryInterval    = 2 * time.Second
	maxRetryInterval = time.Minute
	callTimeout      = 5 * time.Second
)

var errContended = errors.New("another instance changed the list at the same time")

// Options configure a [Member] or a [Watcher]. Only Key, ID and Random are optional.
type Options struct {
	Store       Store
	Environment string
	// Key signs and authenticates records; "" means neither.
	Key FleetKey
	Log *slog.Logger
	// ID must be new at each start; "" means a random ID.
	ID string
	// Random returns numbers in [0,1) that spread writes; nil means math/rand/v2.
	Random func() float64
}

// Member keeps this instance's record up to date. Call [Member.Leave] after [Member.Run] has returned.
type Member struct {
	directory
	log    *slog.Logger
	report func() Record
	load   func() Load
	id     string
	random func() float64

	slot    int // -1 if none
	version string
	status  Record
	written time.Time // zero before the first write to slot
	next    time.Time
	calls   int
	retries int

	announcement atomic.Pointer[string]
}

// NewMember returns a member. report returns the record without ID, Load and WrittenAt. load is called once per write.
func NewMember(opts Options, report func() Record, load func() Load) *Member {
	m := &Member{directory: directory{opts.Store, opts.Environment, opts.Key}, log: opts.Log, report: report, load: load,
		id: cmp.Or(opts.ID, rand.Text()[:12]), random: opts.Random, slot: -1}
	if m.random == nil {
		m.random = mathrand.Float64
	}
	return m
}

// ID returns this instance's ID, which is new at each start.
func (m *Member) ID() string { return m.id }

// Announcement returns the location of this instance's record for [Watcher.Announced], or "" before the first write. It
// is safe for concurrent use.
func (m *Member) Announcement() string {
	if text := m.announcement.Load(); text != nil {
		return *text
	}
	return ""
}

// Run joins and reports until ctx ends. It retries failed calls.
func (m *Member) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := pollInterval
		if err := m.step(ctx); err != nil && ctx.Err() == nil {
			wait = m.backoff(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// backoff is random, so that instances that start together do not contend indefinitely.
func (m *Member) backoff(err error) time.Duration {
	if m.retries == 0 && !errors.Is(err, errContended) {
		m.log.Warn("instance record not written", "err", err)
	}
	m.retries++
	most := min(retryInterval<<min(m.retries, 10), maxRetryInterval)
	return time.Duration((0.1 + 0.9*m.random()) * float64(most))
}

func (m *Member) step(ctx context.Context) error {
	if m.slot < 0 {
		if err := m.join(ctx); err != nil {
			return err
		}
	}

	r := m.report()
	now := time.Now()
	changed := !r.sameStatus(m.status)
	changeDue := changed && now.Sub(m.written) >= statusInterval
	if m.version != "" && !changeDue && now.Before(m.next) {
		return nil
	}
	if err := m.write(ctx, r); err != nil {
		return err
	}

	m.retries = 0
	m.status = r
	m.written = now
	m.next = now.Add(Heartbeat - time.Duration(m.random()*float64(Heartbeat/10)))
	if changed {
		text := fmt.Sprintf("%d.%d", m.slot, m.calls)
		m.announcement.Store(&text)
	}
	return nil
}

func (m *Member) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var slot int
	done, err := m.changeRoster(ctx, m.newVersion(), func(r roster) roster {
		r, slot = r.takeSlot()
		return r
	})
	if err == nil && !done {
		err = errContended
	}
	if err != nil {
		return fmt.Errorf("registering this instance: %w", err)
	}

	stored, err := m.store.Read(ctx, m.slotName(slot))
	if err != nil {
		return fmt.Errorf("registering this instance: %w", err)
	}
	m.slot = slot
	m.version = stored.Version
	m.written = time.Time{}
	m.status = Record{}
	return nil
}

// write gives up a slot that another instance owns.
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

	// An earlier write may have succeeded without a response.
	if stored, err := recordOf(m.slot, current); err == nil && stored.ID == m.id && !current.Released {
		m.version = current.Version
		return errContended
	}
	m.slot = -1
	return errContended
}

// Leave marks the record as stopped and frees the slot; if it fails, the leader frees the slot later.
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
		return nil
	}

	slot := m.slot
	m.slot, m.version = -1, ""
	for ctx.Err() == nil {
		done, err := m.changeRoster(ctx, m.newVersion(), func(r roster) roster { return r.freeSlots(slot) })
		if done || err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (m *Member) lease(r Record) queue.Lease {
	r.ID = m.id
	r.Load = m.load()
	r.WrittenAt = time.Now().UTC().Truncate(time.Second)
	return r.clip().lease(m.slotName(m.slot), m.newVersion(), m.key)
}

func (m *Member) newVersion() string {
	m.calls++
	return fmt.Sprintf("%s/%d", m.id, m.calls)
}
