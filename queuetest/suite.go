package queuetest

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

// Suite is about ninety checks of SQS behavior, documented or observed, and of behavior that this module relies on.
type Suite struct {
	// Start returns the server for a check, which may be the same each time.
	Start func(t testing.TB) Server
	// Virtual runs each check in a testing/synctest bubble, which must include the server. Otherwise, checks that
	// take minutes are skipped.
	Virtual bool
	// Differs maps checks that the server is known to fail to a description of its behavior. They are reported as
	// skipped, and fail if they pass.
	Differs map[string]string
	// Repeats allows concurrent receives of a standard queue to return a message twice, as SQS may ("at-least-once
	// delivery"). Every message must still be received.
	Repeats bool
	// UncountsUnread requires that a receive returned with [queue.VisibilityChange].Unread does not count. Otherwise,
	// it must count.
	UncountsUnread bool
}

var checks = [...]map[string]check{sendChecks, limitChecks, receiptChecks, visibilityChecks, deadLetterChecks, delayChecks,
	pollChecks, fifoChecks, deduplicationChecks, queueChecks, longChecks}

func allChecks() map[string]check {
	all := map[string]check{}
	for _, some := range checks {
		maps.Copy(all, some)
	}
	return all
}

// Run runs every check as a parallel subtest. In real time, checks mostly wait, so use a high -parallel.
func (s *Suite) Run(t *testing.T) {
	all := allChecks()
	for name := range s.Differs {
		if all[name] == nil {
			t.Errorf("Differs contains %q, which is not a check", name)
		}
	}

	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch {
			case s.Virtual:
				synctest.Test(t, func(t *testing.T) { s.runCheck(t, name, c) })
			case longChecks[name] != nil:
				t.Skip("needs minutes: runs in virtual time only")
			default:
				s.runCheck(t, name, c)
			}
		})
	}
}

func (s *Suite) runCheck(t *testing.T, name string, c check) {
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	defer cancel()
	server := s.Start(t)
	reason, known := s.Differs[name]
	for attempt := range 5 {
		e := &checkRun{suite: *s, ctx: ctx, server: server, expectsFailure: known, prefix: prefix(name),
			short: time.Duration(attempt+1) * time.Second}
		if inTime := e.execute(c); !inTime {
			continue
		}

		errs, skip := outcome(e.failures, known, reason)
		for _, err := range errs {
			t.Error(err)
		}
		if skip != "" {
			t.Skip(skip)
		}
		return
	}
	t.Fatal("the machine was too slow, five times, to look while a message was invisible, at last for ten seconds")
}

// The absence of a known failure is an error.
func outcome(failures []string, known bool, reason string) (errs []string, skip string) {
	switch {
	case !known:
		return failures, ""
	case len(failures) == 0:
		return []string{"passes, but is listed as a difference (" + reason + "): remove it from the list"}, ""
	}
	return nil, "known difference: " + reason + "\nobserved: " + strings.Join(failures, "\n")
}

// Queue names are unique to the check and the run, because a server may outlive the process.
func prefix(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '-'
	}, name)
	return fmt.Sprintf("%.40s-%s", clean, strconv.FormatInt(time.Now().UnixNano(), 36))
}
