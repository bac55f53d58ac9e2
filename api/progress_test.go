package api

import (
	"testing"
	"time"
)

func TestExplainNamesWhyMessagesWait(t *testing.T) {
	t.Parallel()
	at := time.Now().UTC().Add(-time.Minute)
	clock := at.Format("15:04 UTC")
	full := Worker{Queue: "payments", Receiving: true, Concurrency: 20, InWork: 20, Slots: 20}
	limits := []Limit{{Queues: []string{"jobs", "mail"}, Rate: 2.5, Concurrency: 3}}
	for name, c := range map[string]struct {
		worker     Worker
		others     []Worker
		state, why string
	}{
		"nothing waits":        {Worker{Receiving: true, Concurrency: 5, InWork: 5}, nil, QueueRunning, ""},
		"nothing is in flight": {Worker{Receiving: true, Concurrency: 5, Waiting: 1}, nil, QueueRunning, ""},
		"paused": {Worker{Progress: Progress{Paused: true, PausedBy: "owner", PausedAt: at, PauseReason: "audit"}, LastError: "x"},
			nil, QueuePaused, "by owner since " + clock + ": audit"},
		"paused long ago": {Worker{Progress: Progress{Paused: true, PausedAt: time.Unix(0, 0)}}, nil, QueuePaused,
			"since 1970-01-01 00:00 UTC"},
		"paused for a reason only": {Worker{Progress: Progress{Paused: true, PauseReason: "audit"}}, nil, QueuePaused, "audit"},
		"gate closed": {Worker{GateReasons: []string{"app not ready", "breaker"}, Waiting: 1}, nil, QueueWaiting,
			"app not ready"},
		"unreachable": {Worker{Receiving: true, LastError: "access denied"}, nil, QueueFailing, "access denied"},
		"rate":        {Worker{Queue: "mail", Receiving: true, LimitedBy: "rate"}, nil, QueueWaiting, "rate limited to 2.5/s"},
		"adaptive limit": {Worker{Queue: "jobs", Receiving: true, LimitedBy: "concurrency", InWork: 3}, nil, QueueRunning,
			"limited to 3 in flight until the app responds faster"},
		"other limit": {Worker{Receiving: true, LimitedBy: "tokens"}, nil, QueueWaiting, "held back by the limit of tokens"},
		"own maximum": {Worker{Receiving: true, Concurrency: 4, InWork: 4, Waiting: 1, Slots: 20}, []Worker{full}, QueueRunning,
			"at its maximum of 4 in flight"},
		"after an outage": {Worker{Receiving: true, Concurrency: 4, Limit: 1, InWork: 1, Waiting: 1}, nil, QueueRunning,
			"resuming gradually after an outage: at most 1 in flight"},
		"another queue holds all slots": {Worker{Receiving: true, Concurrency: 20, Waiting: 3, Slots: 20}, []Worker{full},
			QueueWaiting, "no free slot: payments holds 20 of 20"},
		"several queues hold all slots": {Worker{Queue: "mail", Receiving: true, Concurrency: 20, Waiting: 3, Slots: 20, InWork: 2},
			[]Worker{{Queue: "reports", InWork: 3}, {Queue: "payments", InWork: 15}}, QueueRunning,
			"no free slot: payments holds 15, reports 3 and mail 2 of 20"},
		"a slot is free": {Worker{Receiving: true, Concurrency: 20, Waiting: 3, Slots: 21}, []Worker{full}, QueueRunning, ""},
		"message group at work": {Worker{FIFO: true, Receiving: true, Concurrency: 20, Waiting: 3, InWork: 1, LongestGroup: "user-7",
			Progress: Progress{LongestDeliverySeconds: 40.2}}, nil, QueueRunning,
			`blocked by message group "user-7", in flight for 40s`},
		"message group just started": {Worker{FIFO: true, Receiving: true, Concurrency: 20, Waiting: 3, InWork: 1, InFlight: 1,
			LongestGroup: "user-7"}, nil, QueueRunning, ""},
		"message group waits for a retry": {Worker{FIFO: true, Receiving: true, Concurrency: 20, Waiting: 3, InFlight: 1}, nil,
			QueueWaiting, "blocked by a message group: its first message is hidden until its next attempt"},
		"standard queue with a retry": {Worker{Receiving: true, Concurrency: 20, Waiting: 3, InFlight: 1}, nil, QueueRunning, ""},
		"one message not due yet": {Worker{Receiving: true, Concurrency: 20, InFlight: 1}, nil, QueueRunning,
			"1 message waits for its next attempt, or another consumer has it"},
		"messages not due yet": {Worker{Receiving: true, Concurrency: 20, InFlight: 30}, nil, QueueRunning,
			"30 messages wait for their next attempt, or another consumer has them"},
		"all in flight here": {Worker{Receiving: true, Concurrency: 20, InWork: 3, InFlight: 3}, nil, QueueRunning, ""},
	} {
		workers := append([]Worker{c.worker}, c.others...)
		Explain(workers, limits)
		if w := workers[0]; w.State != c.state || w.Why != c.why {
			t.Errorf("%s: %q %q, want %q %q", name, w.State, w.Why, c.state, c.why)
		}
	}
}
