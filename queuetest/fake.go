package queuetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tendril/queue"
)

// Fake is an in-memory queue like SQS. Its timeouts, long polls and latencies work in testing/synctest bubbles.
//
// It behaves like SQS for a consumer, but outdated receipt handles delete nothing, and it has no retention and no
// deduplication. A visibility change never hides a visible message, or any message beyond 12 hours after its receive.
// All methods are safe for concurrent use.
type Fake struct {
	opts FakeOptions
	open atomic.Int64 // receives in progress

	mu       sync.Mutex
	messages []*fakeMessage // in sending order; settled ones are removed lazily
	settled  int
	byID     map[string]*fakeMessage
	script   map[FakeAction][]FakeFault
	fault    func(FakeCall) FakeFault
	calls    map[FakeAction]int
	log      []FakeCall
	stale    int // number of stale visibility changes

	// waiting has a channel for each long poll, oldest first; closing it wakes the poll. alarm wakes all polls at
	// alarmAt, when a message becomes visible; alarmAt is zero if it is not set.
	waiting []chan struct{}
	alarm   *time.Timer
	alarmAt time.Time
}

type fakeMessage struct {
	queue.Message
	visibleAt time.Time
	received  time.Time // time of the latest receive
	serial    int       // number of the receive that issued the latest receipt handle
	uncounted bool      // the latest receive does not count
	deleted   bool
	dead      bool
}

// NewFake returns an empty queue.
func NewFake(opts *FakeOptions) *Fake {
	f := &Fake{
		byID: map[string]*fakeMessage{}, script: map[FakeAction][]FakeFault{}, calls: map[FakeAction]int{},
	}
	if opts != nil {
		f.opts = *opts
	}
	if f.opts.Visibility == 0 {
		f.opts.Visibility = 30 * time.Second
	}
	return f
}

// Fail appends faults for the next calls of an action, one each.
func (f *Fake) Fail(action FakeAction, faults ...FakeFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script[action] = append(f.script[action], faults...)
}

// SetFault sets the function that returns a call's fault if [Fake.Fail] has not set one; nil means no faults. It must
// be safe for concurrent use.
func (f *Fake) SetFault(fault func(FakeCall) FakeFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// Calls returns the number of calls of an action.
func (f *Fake) Calls(action FakeAction) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[action]
}

// Log returns the calls in order of arrival, or nil without [FakeOptions].KeepLog.
func (f *Fake) Log() []FakeCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// OpenReceives returns the number of receives in progress.
func (f *Fake) OpenReceives() int { return int(f.open.Load()) }

// StaleChanges counts visibility changes with an outdated receipt handle or after the visibility timeout, except
// of deleted messages. On a standard SQS queue, they could affect another consumer's receive.
func (f *Fake) StaleChanges() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stale
}

// Message returns a snapshot of a message, or false if it was never sent.
func (f *Fake) Message(id string) (FakeMessage, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.byID[id]
	if !ok {
		return FakeMessage{}, false
	}
	return FakeMessage{
		ID: m.ID, Body: m.Body, GroupID: m.GroupID, Place: m.place(time.Now()),
		Receives: m.ReceiveCount, VisibleAt: m.visibleAt, SentAt: m.SentAt,
	}, true
}

// Count returns the number of messages in a state.
func (f *Fake) Count(place FakePlace) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	n := 0
	for _, m := range f.byID {
		if m.place(now) == place {
			n++
		}
	}
	return n
}

func (m *fakeMessage) settled() bool { return m.deleted || m.dead }

func (m *fakeMessage) place(now time.Time) FakePlace {
	switch {
	case m.deleted:
		return FakeDeleted
	case m.dead:
		return FakeDead
	case !now.Before(m.visibleAt):
		return FakeVisible
	case m.serial == 0:
		return FakeDelayed
	}
	return FakeInFlight
}

// Redeliver makes an in-flight message visible, as a standard queue can at any time. Its receipt handle stays valid.
func (f *Fake) Redeliver(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.byID[id]; m != nil && !m.settled() {
		m.visibleAt = time.Now()
		f.wake(1)
	}
}

func (f *Fake) wake(n int) {
	n = min(n, len(f.waiting))
	for _, wake := range f.waiting[:n] {
		close(wake)
	}
	f.waiting = slices.Delete(f.waiting, 0, n)
}

// An earlier alarm stays. A zero time means never.
func (f *Fake) wakeAt(at, now time.Time) {
	if at.IsZero() || !at.After(now) || !f.alarmAt.IsZero() && !f.alarmAt.After(at) {
		return
	}
	if f.alarm != nil {
		f.alarm.Stop()
	}
	f.alarmAt = at
	f.alarm = time.AfterFunc(at.Sub(now), func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.alarmAt.Equal(at) {
			f.alarmAt = time.Time{}
			f.wake(len(f.waiting))
		}
	})
}

// If ctx is done during the first half of the latency, the call has no effect.
func (f *Fake) beginCall(ctx context.Context, call FakeCall) (FakeFault, error) {
	call.At = time.Now()
	f.mu.Lock()
	f.calls[call.Action]++
	if call.Action != FakeReceive {
		call.OpenReceives = f.OpenReceives()
	}

	if f.opts.KeepLog {
		f.log = append(f.log, call)
	}

	var fault FakeFault
	hook := f.fault
	if script := f.script[call.Action]; len(script) > 0 {
		fault = script[0]
		f.script[call.Action] = script[1:]
		hook = nil
	}

	latency := f.opts.Latency / 2
	f.mu.Unlock()
	if hook != nil {
		fault = hook(call)
	}
	return fault, waitFor(ctx, nil, latency+fault.Latency)
}

// If ctx is done during the second half, the result is lost.
func (f *Fake) endCall(ctx context.Context) error {
	return waitFor(ctx, nil, f.opts.Latency-f.opts.Latency/2)
}

func waitFor(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wake:
	case <-timer.C:
	}
	return nil
}

// Send appends messages and assigns the IDs "m-000001", "m-000002" and so on.
func (f *Fake) Send(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	fault, err := f.beginCall(ctx, FakeCall{Action: FakeSend, Entries: len(msgs)})
	if err != nil || (fault.Err != nil && !fault.Apply) {
		return nil, cmp.Or(err, fault.Err)
	}
	f.mu.Lock()
	sent := make([]queue.Sent, len(msgs))
	for i := range msgs {
		sent[i] = f.send(&msgs[i])
	}
	f.wake(len(msgs))
	f.mu.Unlock()
	if err := cmp.Or(fault.Err, f.endCall(ctx)); err != nil {
		return nil, err
	}
	return sent, nil
}

func (f *Fake) send(out *queue.Outgoing) queue.Sent {
	if f.opts.FIFO && out.GroupID == "" {
		return queue.Sent{Err: queue.Errorf(queue.CodeMissingRequiredParameter,
			"The request must contain the parameter MessageGroupId.")}
	}

	now := time.Now()
	number := len(f.byID) + 1
	m := &fakeMessage{visibleAt: now, Message: queue.Message{ID: fmt.Sprintf("m-%06d", number), Body: out.Body,
		Attributes: out.Attributes, TraceHeader: out.TraceHeader, GroupID: out.GroupID, DedupID: out.DedupID,
		SentAt: now.Truncate(time.Millisecond), SenderID: "000000000000"}}
	if out.Delay != nil {
		m.visibleAt = now.Add(*out.Delay)
	}

	if f.opts.FIFO {
		m.SequenceNumber = fmt.Sprintf("%020d", number)
	}

	f.byID[m.ID] = m
	f.messages = append(f.messages, m)
	return queue.Sent{ID: m.ID, SequenceNumber: m.SequenceNumber}
}

// Receive returns visible messages, oldest first. With a fault that has Apply set, it hides them but returns only the
// error.
func (f *Fake) Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error) {
	others := f.open.Add(1) - 1
	defer f.open.Add(-1)
	fault, err := f.beginCall(ctx, FakeCall{Action: FakeReceive, Entries: req.Max, OpenReceives: int(others)})
	if err != nil || (fault.Err != nil && !fault.Apply) {
		return nil, cmp.Or(err, fault.Err)
	}
	msgs, err := f.await(ctx, req)
	if err := cmp.Or(err, fault.Err, f.endCall(ctx)); err != nil {
		return nil, err
	}
	return msgs, nil
}

func (f *Fake) await(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error) {
	end := time.Now()
	if req.Wait != nil {
		end = end.Add(*req.Wait)
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		now := time.Now()
		msgs, next := f.take(req, now)
		if len(msgs) > 0 || !now.Before(end) {
			return msgs, nil
		}
		f.wakeAt(next, now)
		if err := f.poll(ctx, end.Sub(now)); err != nil {
			return nil, err
		}
	}
}

// The caller must hold the lock, which poll releases meanwhile.
func (f *Fake) poll(ctx context.Context, wait time.Duration) error {
	wake := make(chan struct{})
	f.waiting = append(f.waiting, wake)
	f.mu.Unlock()
	err := waitFor(ctx, wake, wait)
	f.mu.Lock()
	if i := slices.Index(f.waiting, wake); i >= 0 {
		f.waiting = slices.Delete(f.waiting, i, i+1)
	} else if err != nil { // woken without taking a message, so wake another
		f.wake(1)
	}
	return err
}

// Without visible messages, next is when one becomes visible.
func (f *Fake) take(req queue.ReceiveRequest, now time.Time) (msgs []queue.Message, next time.Time) {
	f.compact()
	locked := map[string]bool{}
	for _, m := range f.messages {
		switch {
		case m.settled():
		case now.Before(m.visibleAt):
			if next.IsZero() || m.visibleAt.Before(next) {
				next = m.visibleAt
			}
			locked[m.GroupID] = true
		case f.opts.FIFO && locked[m.GroupID]:
		case f.opts.MaxReceives > 0 && m.ReceiveCount >= f.opts.MaxReceives:
			m.dead = true
			f.settled++
		default:
			msgs = append(msgs, f.receive(m, req, now))
		}
		if len(msgs) >= max(req.Max, 1) {
			break
		}
	}
	return msgs, next
}

func (f *Fake) receive(m *fakeMessage, req queue.ReceiveRequest, now time.Time) queue.Message {
	visibility := f.opts.Visibility
	if req.Visibility != nil {
		visibility = *req.Visibility
	}

	m.ReceiveCount++
	m.serial++
	m.uncounted = false
	m.received, m.visibleAt = now, now.Add(visibility)
	if len(f.waiting) > 0 {
		f.wakeAt(m.visibleAt, now)
	}

	m.ReceiptHandle = m.ID + "#" + strconv.Itoa(m.serial)
	if m.FirstReceivedAt.IsZero() {
		m.FirstReceivedAt = now.Truncate(time.Millisecond)
	}
	return m.Message
}

func (f *Fake) compact() {
	for len(f.messages) > 0 && f.messages[0].settled() {
		f.messages = f.messages[1:]
		f.settled--
	}
	if f.settled > 64 && f.settled*2 > len(f.messages) {
		f.messages = slices.DeleteFunc(f.messages, (*fakeMessage).settled)
		f.settled = 0
	}
}

// Delete deletes messages by their receipt handles.
func (f *Fake) Delete(ctx context.Context, receipts []string) []error {
	call := FakeCall{Action: FakeDelete, Entries: len(receipts), Receipts: slices.Clone(receipts)}
	return f.batch(ctx, call, func(i int, now time.Time) error { return f.delete(receipts[i], now) })
}

// Expire is the same as Delete.
func (f *Fake) Expire(ctx context.Context, receipts []string) []error { return f.Delete(ctx, receipts) }

// ChangeVisibility sets the visibility timeout of received messages.
func (f *Fake) ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error {
	call := FakeCall{Action: FakeChangeVisibility, Entries: len(changes), Changes: slices.Clone(changes)}
	return f.batch(ctx, call, func(i int, now time.Time) error { return f.change(changes[i], now) })
}

func (f *Fake) batch(ctx context.Context, call FakeCall, apply func(i int, now time.Time) error) []error {
	errs, err := f.applyCall(ctx, call, apply)
	if err != nil {
		return slices.Repeat([]error{err}, max(call.Entries, 1))
	}
	if errors.Join(errs...) == nil {
		return nil
	}
	return errs
}

func (f *Fake) applyCall(ctx context.Context, call FakeCall, apply func(i int, now time.Time) error) ([]error, error) {
	if n := call.Entries; n < 1 || n > queue.MaxBatch {
		return nil, queue.Errorf(queue.CodeTooManyEntriesInBatchRequest,
			"a call takes 1 to %d entries, not %d", queue.MaxBatch, n)
	}
	fault, err := f.beginCall(ctx, call)
	if err != nil {
		return nil, err
	}

	f.mu.Lock()
	now := time.Now()
	errs := make([]error, call.Entries)
	for i := range errs {
		failed := fault.Err != nil && (fault.Entries == nil || slices.Contains(fault.Entries, i))
		if !failed || fault.Apply {
			errs[i] = apply(i, now)
		}
		if failed {
			errs[i] = fault.Err
		}
	}

	if call.Action != FakeDelete || f.opts.FIFO { // a delete makes messages visible only on a FIFO queue
		f.wake(len(f.waiting))
	}
	f.mu.Unlock()
	return errs, f.endCall(ctx)
}

func (f *Fake) byReceipt(receipt string) (m *fakeMessage, latest bool, err error) {
	id, serial, _ := strings.Cut(receipt, "#")
	if m = f.byID[id]; m == nil {
		return nil, false, queue.Errorf(queue.CodeReceiptHandleIsInvalid, "The input receipt handle %q is invalid.", receipt)
	}
	return m, serial == strconv.Itoa(m.serial), nil
}

func errReceipt(receipt, reason string) error {
	return queue.Errorf(queue.CodeInvalidParameterValue, "Value %s for parameter ReceiptHandle is invalid. Reason: %s",
		receipt, reason)
}

func (f *Fake) delete(receipt string, now time.Time) error {
	m, latest, err := f.byReceipt(receipt)
	switch {
	case err != nil:
		return err
	case m.settled():
		return nil
	case f.opts.FIFO && (!latest || !now.Before(m.visibleAt)):
		return errReceipt(receipt, "The receipt handle has expired.")
	case latest:
		m.deleted = true
		f.settled++
	}
	return nil
}

func (f *Fake) change(c queue.VisibilityChange, now time.Time) error {
	m, latest, err := f.byReceipt(c.ReceiptHandle)
	if err != nil {
		return err
	}
	isCurrent := latest && now.Before(m.visibleAt)
	if !isCurrent && !m.deleted {
		f.stale++
	}

	switch {
	case m.settled():
		return errReceipt(c.ReceiptHandle, "Message does not exist or is not available for visibility timeout change.")
	case !isCurrent && f.opts.FIFO:
		return errReceipt(c.ReceiptHandle, "The receipt handle has expired.")
	case !isCurrent:
		return nil
	case now.Add(c.Visibility).After(m.received.Add(queue.MaxVisibility)):
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Value %d for parameter VisibilityTimeout is invalid. Reason: "+
				"Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", int(c.Visibility.Seconds()))
	}

	m.visibleAt = now.Add(c.Visibility)
	if c.Unread && f.opts.UncountsUnread {
		m.uncount()
	}
	return nil
}

func (m *fakeMessage) uncount() {
	if m.uncounted {
		return
	}
	m.uncounted = true
	m.ReceiveCount--
	if m.ReceiveCount == 0 {
		m.FirstReceivedAt = time.Time{}
	}
}
