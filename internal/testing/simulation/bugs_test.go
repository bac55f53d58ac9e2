package simulation

import (
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/faultfs"
)

type bug string

const (
	bugLoseSends       bug = "a send is acknowledged and lost"
	bugPostTwice       bug = "a receive is posted twice"
	bugDeleteEarly     bug = "a message is deleted before its success"
	bugForgetDeletes   bug = "a delete is confirmed and not made"
	bugTooMany         bug = "more POSTs at once than configured"
	bugOutOfOrder      bug = "a group is not kept in order"
	bugDeadLetterEarly bug = "a receive less than configured"
	bugLeadTwice       bug = "each daemon leads"
	bugRunTwice        bug = "a run is enqueued twice"
	bugRunEarly        bug = "a run is enqueued early"
	bugMissRuns        bug = "a run is confirmed and not enqueued"
	bugRetryEarly      bug = "a failed message comes again at once"
	bugNeverHealed     bug = "receives fail for good"
	bugPurge           bug = "a message is deleted behind the back of the ledger's reader"
	bugLoseChange      bug = "a change of the desired state is confirmed and not stored"
	bugSilentLeader    bug = "the leader does not announce changes of the desired state"
	bugIgnorePause     bug = "a daemon receives from a paused queue"
	bugForgetState     bug = "a daemon forgets the desired state when it starts"
	bugServeWithdrawn  bug = "a daemon keeps delivering to a withdrawn version"
	bugNoBatches       bug = "a deployment has no batches"
	bugSettingsAtOnce  bug = "settings have no batches"
	bugBlindLeader     bug = "the leader does not see unhealthy daemons"
	bugReportEarly     bug = "a daemon reports a version before it runs it"
	bugKeepSettings    bug = "a daemon confirms settings that it does not apply"
	bugLoseLog         bug = "the disk loses the log at a power failure"
)

func operating(all ...operation) func(*plan) {
	return func(p *plan) {
		p.Daemons, p.Messages = 3, 400
		for i, op := range all {
			op.At = seconds(60 + 60*i)
			p.Operations = append(p.Operations, op)
		}
	}
}

func TestTheOracleFindsBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("the bugs are the test's own, and take 50 runs on one processor: not with -short")
	}
	fs := faultfs.NewDefault(t)
	for _, c := range []struct {
		bug
		finds string
		set   func(*plan)
	}{
		{bugLoseSends, "is lost", nil},
		{bugPostTwice, "posted twice for one receive", nil},
		{bugDeleteEarly, "deleted without a success", nil},
		{bugForgetDeletes, "posted again after its success", nil},
		{bugTooMany, "POSTs at once", func(p *plan) { p.Connections, p.Messages = 1, 400 }},
		{bugOutOfOrder, "of its group is in work", func(p *plan) { p.FIFO, p.Groups, p.Messages = true, 2, 400 }},
		{bugDeadLetterEarly, "is in the dead-letter queue after 3 receives, 4 are configured", nil},
		{bugLeadTwice, "lead at once", nil},
		{bugRunTwice, "is in the queue twice", nil},
		{bugRunEarly, "early", nil},
		{bugMissRuns, "@", nil},
		{bugRetryEarly, "too early", nil},
		{bugNeverHealed, "not drained", nil},
		{bugPurge, "the ledger does not balance", nil},
		{bugLoseChange, "has not applied revision", operating(operation{Kind: pauseQueue}, operation{Kind: resumeQueue})},
		{bugSilentLeader, "has not applied revision", operating(operation{Kind: pauseQueue})},
		{bugIgnorePause, "although its queue is paused", operating(operation{Kind: pauseQueue}, operation{Kind: resumeQueue})},
		{bugForgetState, "applies revision 0 after revision", func(p *plan) {
			operating(operation{Kind: setSettings})(p)
			p.Faults = []fault{{Kind: killDaemon, At: seconds(100), For: seconds(20), Daemon: 1},
				{Kind: cutRegistry, At: seconds(90), For: seconds(60), Daemon: 1, Chance: 1}}
		}},
		{bugServeWithdrawn, "has learned of its rollback", operating(operation{Kind: deployGood}, operation{Kind: rollBack})},
		{bugNoBatches, "at once, 1 are allowed", operating(operation{Kind: deployGood, Batch: 1})},
		{bugSettingsAtOnce, "daemons are switching to the settings", operating(operation{Kind: setSettings, Batch: 1})},
		{bugBlindLeader, "are the current ones", operating(operation{Kind: setUnhealthy, Batch: 1})},
		{bugBlindLeader, "is the current one", operating(operation{Kind: deployUnhealthy, Batch: 1})},
		{bugReportEarly, "is finished, and daemon", operating(operation{Kind: deployBrokenOnOne, On: 1})},
		{bugKeepSettings, "has the settings", operating(operation{Kind: setSettings})},
		{bugLoseLog, "is lost", func(p *plan) {
			p.Faults = []fault{{Kind: powerFailure, At: 200 * time.Second, For: time.Second}}
		}},
	} {
		t.Run(string(c.bug), func(t *testing.T) {
			p := &plan{Seed: 1, Daemons: 2, Connections: 5, Messages: 100, Groups: 5, MaxReceives: 4, Visibility: seconds(20),
				ErrorVisibility: seconds(10), Inactivity: seconds(30), Shutdown: seconds(30), Length: seconds(300),
				Poison: 0.05, Failing: 0.2, Tasks: true}
			if c.set != nil {
				c.set(p)
			}
			if out := run(t, fs, p, ""); len(out.violations) > 0 {
				t.Fatalf("without the bug: %v", out.violations)
			}
			out := run(t, fs, p, c.bug)
			if !strings.Contains(strings.Join(out.violations, "\n"), c.finds) {
				t.Errorf("not found: want %q, got %v", c.finds, out.violations)
			}
		})
	}
}
