package queuetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

// Queue is what the suite asks of a queue.
type Queue interface {
	// Send sends up to ten messages and returns one result for each.
	Send(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error)
	// Receive returns up to req.Max messages.
	Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error)
	// Delete returns one error for each receipt, or nil when all went well.
	Delete(ctx context.Context, receipts []string) []error
	// ChangeVisibility returns one error for each change, or nil when all
	// went well.
	ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error
	// Attributes returns all attributes under their SQS names.
	Attributes(ctx context.Context) (map[string]string, error)
	// SetAttributes changes some of them.
	SetAttributes(ctx context.Context, attrs map[string]string) error
	// Purge removes all messages.
	Purge(ctx context.Context) error
}

// Server holds queues.
type Server interface {
	// Create creates a queue. nil attributes are the defaults of SQS.
	Create(ctx context.Context, name string, attrs map[string]string) (Queue, error)
	// Handle returns a queue without asking whether it exists.
	Handle(name string) Queue
}

// Suite is the conformance suite: some seventy checks of what SQS documents,
// or was seen to do, and of what the rest of this module relies on.
type Suite struct {
	// Start returns the server for one check. It is called once for each, and
	// may return the same server every time: the checks use queue names of
	// their own.
	Start func(t testing.TB) Server
	// Virtual runs each check in a bubble of testing/synctest, so that hours
	// pass at once. Start is then called in the bubble, and the server must
	// live in the memory of this process. Without it the checks that need
	// minutes are skipped.
	Virtual bool
	// Differs lists the checks that the server is known not to pass, each with
	// what it does instead. They are run all the same and reported as skipped;
	// one that passes fails the suite, so that the list stays true.
	Differs map[string]string
	// Repeats tells that two receives at once may both get a message of a
	// standard queue, which SQS allows itself too ("at-least-once delivery"). A
	// check then forgives a second time, never a message that does not come.
	Repeats bool
	// TakesBack tells that a receive does not count when its message is given back
	// unread ([queue.VisibilityChange]). Without it the suite wants that it counts.
	TakesBack bool
}

// check is one behaviour.
type check struct {
	name string
	// long tells that it needs minutes, and so virtual time.
	long bool
	run  func(e *checkRun)
}

// Run runs every check as a subtest of t, in parallel. Checks against a real
// clock spend their time waiting: give them a high -parallel.
func (s *Suite) Run(t *testing.T) {
	checks := allChecks()
	for name := range s.Differs {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			t.Errorf("Differs names %q, which is no check", name)
		}
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			switch {
			case s.Virtual:
				synctest.Test(t, func(t *testing.T) { s.runCheck(t, c) })
			case c.long:
				t.Skip("needs minutes: runs in virtual time only")
			default:
				s.runCheck(t, c)
			}
		})
	}
}

func allChecks() []check {
	return slices.Concat(sendChecks(), limitChecks(), receiptChecks(), visibilityChecks(), deadLetterChecks(),
		delayChecks(), pollChecks(), fifoChecks(), deduplicationChecks(), queueChecks())
}

// examine runs one check and judges how it went.
func (s *Suite) runCheck(t *testing.T, c check) {
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	defer cancel()
	server := s.Start(t)
	e := &checkRun{ctx: ctx, server: server, repeats: s.Repeats, uncountsUnread: s.TakesBack, prefix: prefix(c.name)}
	for tries := 1; !e.execute(c); tries++ {
		if tries == 5 {
			t.Fatal("the machine was too slow, five times, to look while a message was hidden for a second or two")
		}
		e = &checkRun{ctx: ctx, server: server, repeats: s.Repeats, uncountsUnread: s.TakesBack, prefix: prefix(c.name)}
	}
	reason, known := s.Differs[c.name]
	errs, skip := outcome(e.failures, known, reason)
	for _, err := range errs {
		t.Error(err)
	}
	if skip != "" {
		t.Skip(skip)
	}
}

// judge turns the faults of a check into errors, or into the reason to skip it
// when it is known to differ.
func outcome(failures []string, known bool, reason string) (errs []string, skip string) {
	switch {
	case !known:
		return failures, ""
	case len(failures) == 0:
		return []string{"passes, though it is listed as a difference (" + reason + "): take it off the list"}, ""
	}
	return nil, "known difference: " + reason + "\nseen: " + strings.Join(failures, "\n")
}

// prefix makes queue names that no other check uses, nor another run against a
// server that outlives this process.
func prefix(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
	return fmt.Sprintf("%.40s-%s", clean, strconv.FormatInt(time.Now().UnixNano(), 36))
}
