package console

import (
	"testing"

	"tendril/api"
	"tendril/broker"

	"pgregory.net/rapid"
)

func TestAccountCountsDeadLettersApartFromLive(t *testing.T) {
	t.Parallel()
	queues := []api.Queue{
		{Name: "jobs", DeadLetterQueue: "jobs-dead", Ledger: api.Ledger{Live: 3}},
		{Name: "jobs-dead", Ledger: api.Ledger{Live: 2}},
		{Name: "mail", Ledger: api.Ledger{Live: 1}},
	}
	total := broker.Ledger{Sent: 10, Done: 2, DeadLettered: 5, MovedIn: 8, MovedOut: 3, Expired: 1, Purged: 1, Live: 6}
	want := api.Account{Sent: 10, Done: 2, DeadLettered: 2, Expired: 1, Purged: 1, Live: 4}
	if got := newAccount(total, queues); *got != want || got.Off() != 0 {
		t.Errorf("account %+v is off by %d, want %+v", got, got.Off(), want)
	}
	if off := (api.Account{Sent: 3, Done: 1}).Off(); off != 2 {
		t.Errorf("Off() = %d, want 2", off)
	}
}

// Queues are counted slightly before the total, so the numbers may not match.
func TestAccountBalancesWhateverTheQueuesSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) int64 { return rapid.Int64Range(0, 100).Draw(t, name) }
		total := broker.Ledger{Done: n("done"), Expired: n("expired"), Purged: n("purged"), Live: n("live")}
		total.Sent = total.Done + total.Expired + total.Purged + total.Live
		queues := []api.Queue{{Name: "a", DeadLetterQueue: "b"}, {Name: "b", Ledger: api.Ledger{Live: n("dead")}}}
		if got := newAccount(total, queues); got.Off() != 0 || got.Live < 0 {
			t.Fatalf("%+v is off by %d", got, got.Off())
		}
	})
}
