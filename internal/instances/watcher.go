package instances

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tendril/internal/observe/health"
	"tendril/queue"
)

const (
	parallelReads = 16
	// announcedTimeout is short, because health checks wait for the leader's record.
	announcedTimeout = time.Second
)

// Instance is an instance as seen by a reader.
type Instance struct {
	Record
	// Age is the time since this reader last saw the record change.
	Age time.Duration
	// Refused is the reason that the record could not be authenticated, or nil. A refused record is not used for
	// decisions.
	Refused error
}

// Counts reports whether the record may be used for decisions.
func (i *Instance) Counts() bool { return i.Refused == nil && i.Reachable() }

// HealthStatus returns the instance's health for [health.EnvironmentOf].
func (i *Instance) HealthStatus() health.InstanceHealth {
	if !i.Reachable() {
		return health.Unreachable(i.Name, i.Age)
	}
	return i.Record.HealthStatus()
}

// Reachable reports whether the record has changed within [FreshFor].
func (i *Instance) Reachable() bool { return i.Age < FreshFor }

// Watcher reads the records of all instances and determines their ages. It is safe for concurrent use.
type Watcher struct {
	directory
	log *slog.Logger

	reading chan struct{} // full during Read: of two concurrent reads, the older result would look like a replay

	mu      sync.Mutex
	seen    map[int]observation // by slot
	highest map[string]int
	all     []Instance
	readAt  time.Time // last complete read, or zero
	err     error
	leading time.Time // when this instance became the leader, or zero

	leader leaderRecord
}

type leaderRecord struct {
	sync.Mutex
	text   string
	record Record
	err    error
	at     time.Time
}

type observation struct {
	stored  queue.Lease
	since   time.Time // when stored was first seen
	refused error
}

var errUnread = errors.New("not read yet")

// NewWatcher returns a watcher without records.
func NewWatcher(opts Options) *Watcher {
	return &Watcher{directory: directory{opts.Store, opts.Environment, opts.Key}, log: opts.Log,
		reading: make(chan struct{}, 1), seen: map[int]observation{}, highest: map[string]int{}, err: errUnread}
}

// Run reads the records and frees lost instances' slots while this instance leads.
func (w *Watcher) Run(ctx context.Context, leads func() bool) {
	ticks := time.Tick(followInterval)
	var last time.Time
	leading := false
	for {
		if leadsNow := leads(); leadsNow != leading || time.Since(last) >= ReadInterval {
			leading, last = leadsNow, time.Now()
			w.setLeading(leading)
			if leading {
				w.readAndFree(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

func (w *Watcher) setLeading(leads bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !leads:
		w.leading = time.Time{}
	case w.leading.IsZero():
		w.leading = time.Now()
	}
}

func (w *Watcher) readAndFree(ctx context.Context) {
	_, before := w.Recent()
	failing := before != nil && !errors.Is(before, errUnread)
	_, err := w.Read(ctx)
	if err == nil {
		err = w.freeLostSlots(ctx)
	}
	if err != nil && !failing && ctx.Err() == nil {
		w.log.Warn("records of instances not read", "err", err)
	}
}

// Leading returns how long this instance has been the leader and reading records, or 0.
func (w *Watcher) Leading() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leading.IsZero() {
		return 0
	}
	return time.Since(w.leading)
}

// Recent returns the instances of the last successful read, with their current ages, and the error of the last read.
func (w *Watcher) Recent() ([]Instance, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.all)
	for i := range all {
		all[i].Age += time.Since(w.readAt)
	}
	return all, w.err
}

// ReadOnce returns the result of the last read if it succeeded and is younger than maxAge. Otherwise, it calls Read.
func (w *Watcher) ReadOnce(ctx context.Context, maxAge time.Duration) ([]Instance, error) {
	w.mu.Lock()
	recent := !w.readAt.IsZero() && time.Since(w.readAt) < maxAge && w.err == nil
	w.mu.Unlock()
	if recent {
		return w.Recent()
	}
	return w.Read(ctx)
}

// Read returns all instances that have not stopped, by slot. A new instance's age is 0.
func (w *Watcher) Read(ctx context.Context) ([]Instance, error) {
	select {
	case w.reading <- struct{}{}:
		defer func() { <-w.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leases, err := w.readSlots(ctx)

	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	if err != nil {
		return nil, err
	}
	w.observeAll(leases)
	return slices.Clone(w.all), nil
}

// observeAll must be called with mu held.
func (w *Watcher) observeAll(leases map[int]queue.Lease) {
	w.readAt = time.Now()
	w.all = nil
	seen := map[int]observation{}
	for _, slot := range slices.Sorted(maps.Keys(leases)) {
		o := w.observe(slot, leases[slot], w.readAt)
		seen[slot] = o
		if !isInUse(o.stored) {
			continue
		}
		r, err := recordOf(slot, o.stored)
		if err != nil {
			w.log.Debug("record of an instance ignored", "err", err)
			continue
		}
		if o.refused != nil && !errors.Is(w.seen[slot].refused, o.refused) {
			w.log.Warn("instance record not authenticated, it is not used", "instance", r.Name, "slot", slot,
				"err", o.refused)
		}
		w.all = append(w.all, Instance{Record: r, Age: w.readAt.Sub(o.since), Refused: o.refused})
	}
	w.seen = seen
}

func (w *Watcher) observe(slot int, stored queue.Lease, now time.Time) observation {
	o := observation{stored: stored, since: now}
	before, known := w.seen[slot]
	if known && before.stored.Version == stored.Version {
		o.since = before.since
	}
	if isInUse(stored) {
		o.refused = w.authenticate(slot, before, stored)
	}
	return o
}

func isInUse(stored queue.Lease) bool { return stored.Version != "" && !stored.Released }

// authenticate rejects forged and replayed records. Instances number their versions, so a replay is recognized even in
// a slot that another instance has used since.
func (w *Watcher) authenticate(slot int, before observation, stored queue.Lease) error {
	if w.key == "" {
		return nil
	}
	if err := w.key.authenticate(w.slotName(slot), stored); err != nil {
		return err
	}
	if stored == before.stored {
		return before.refused
	}
	id, number := parseVersion(stored.Version)
	if number <= w.highest[id] {
		return ErrReplayed
	}
	w.highest[id] = number
	return nil
}

func parseVersion(version string) (id string, number int) {
	id, text, _ := strings.Cut(version, "/")
	number, _ = strconv.Atoi(text)
	return id, number
}

// Announced returns the record at the leader's [Member.Announcement]. It calls the store only for a new announcement,
// or retryAfter an error.
func (w *Watcher) Announced(ctx context.Context, announcement string) (Record, error) {
	l := &w.leader
	l.Lock()
	defer l.Unlock()
	if l.text == announcement && (l.err == nil || time.Since(l.at) < retryAfter) {
		return l.record, l.err
	}
	l.record, l.err = w.readAnnounced(ctx, announcement)
	l.text, l.at = announcement, time.Now()
	return l.record, l.err
}

func (w *Watcher) readAnnounced(ctx context.Context, announcement string) (Record, error) {
	var slot, number int
	if _, err := fmt.Sscanf(announcement, "%d.%d", &slot, &number); err != nil {
		return Record{}, errors.New("the leader's lease does not name its record")
	}
	ctx, cancel := context.WithTimeout(ctx, announcedTimeout)
	defer cancel()
	r, err := w.readRecord(ctx, slot, number)
	if err != nil {
		return Record{}, fmt.Errorf("reading the leader's record: %w", err)
	}
	return r, nil
}

func (w *Watcher) readRecord(ctx context.Context, slot, number int) (Record, error) {
	stored, err := w.store.Read(ctx, w.slotName(slot))
	if err != nil {
		return Record{}, err
	}
	if err := w.key.authenticate(w.slotName(slot), stored); err != nil {
		return Record{}, err
	}
	if _, found := parseVersion(stored.Version); found < number {
		return Record{}, ErrReplayed
	}
	return recordOf(slot, stored)
}

func (w *Watcher) readSlots(ctx context.Context) (map[int]queue.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, ReadInterval)
	defer cancel()
	stored, err := w.store.Read(ctx, w.rosterName())
	if err != nil {
		return nil, fmt.Errorf("reading the list of instances: %w", err)
	}
	list, err := rosterOf(stored)
	if err != nil {
		return nil, err
	}

	slots := list.usedSlots()
	contents := make([]queue.Lease, len(slots))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for i, slot := range slots {
		reads.Go(func() (err error) {
			contents[i], err = w.store.Read(ctx, w.slotName(slot))
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, fmt.Errorf("reading the records of the instances: %w", err)
	}

	leases := map[int]queue.Lease{}
	for i, slot := range slots {
		leases[slot] = contents[i]
	}
	return leases, nil
}

func (w *Watcher) freeLostSlots(ctx context.Context) error {
	lost := map[int]queue.Lease{}
	w.mu.Lock()
	for slot, o := range w.seen {
		if time.Since(o.since) >= ForgetAfter {
			lost[slot] = o.stored
		}
	}
	w.mu.Unlock()
	if len(lost) == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, ReadInterval)
	defer cancel()
	var freed []int
	for slot, stored := range lost {
		stopped, err := w.markStopped(ctx, slot, stored)
		if err != nil {
			return fmt.Errorf("removing an unreachable instance: %w", err)
		}
		if stopped {
			freed = append(freed, slot)
		}
	}
	_, err := w.changeRoster(ctx, rand.Text(), func(r roster) roster { return r.freeSlots(freed...) })
	return err // after a conflict, the next read frees the slots
}

// markStopped returns false if the instance has reported since. A stopped instance that returns joins again.
func (w *Watcher) markStopped(ctx context.Context, slot int, stored queue.Lease) (stopped bool, err error) {
	if !isInUse(stored) {
		return true, nil
	}
	next := stored
	next.Version = rand.Text()
	next.Released = true
	stopped, _, err = w.store.Swap(ctx, w.slotName(slot), stored, next)
	return stopped, err
}
