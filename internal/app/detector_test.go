package app

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func from(queue string, ids ...string) (messages []delivered) {
	for _, id := range ids {
		messages = append(messages, delivered{id: id, queue: queue})
	}
	return messages
}

func TestExactlyThePoisonMessagesAreDetected(t *testing.T) {
	t.Parallel()
	const messages, slots, maxReceives = 10_000, 10, 3
	random := rand.New(rand.NewPCG(1, 2))
	crashes := func(n int) bool { return n%100 == 42 }
	d := newDetector(slog.New(slog.DiscardHandler))
	now := time.Unix(0, 0)
	tries, deadLettered, done := map[int]int{}, 0, 0
	backlog := random.Perm(messages)
	for len(backlog) > 0 {
		now = now.Add(time.Second)
		var together []int
		for len(together) < slots && len(backlog) > 0 && !d.isQuarantined(fmt.Sprint(backlog[0])) {
			together, backlog = append(together, backlog[0]), backlog[1:]
		}
		if len(together) == 0 {
			n := backlog[0]
			backlog = backlog[1:]
			tries[n]++
			if !crashes(n) {
				d.survived(fmt.Sprint(n), true)
				done++
				continue
			}
			d.crashed(from("jobs", fmt.Sprint(n)), now)
			if tries[n] < maxReceives {
				backlog = append(backlog, n)
			} else {
				deadLettered++
				d.forget(fmt.Sprint(n))
			}
			continue
		}
		var ids []string
		for _, n := range together {
			ids = append(ids, fmt.Sprint(n))
			tries[n]++
		}
		if slices.ContainsFunc(together, crashes) {
			d.crashed(from("jobs", ids...), now)
			backlog = append(backlog, together...)
			continue
		}
		for _, id := range ids {
			d.survived(id, false)
			done++
		}
	}
	for n, times := range tries {
		if want := 2; !crashes(n) && times > want {
			t.Errorf("message %d was delivered %d times", n, times)
		}
	}
	if deadLettered != messages/100 || done != messages-deadLettered {
		t.Errorf("%d dead-lettered, %d done", deadLettered, done)
	}
	if s := d.poison(); s != (PoisonStatus{}) {
		t.Errorf("status at the end: %+v", s)
	}
}

func TestQuarantineEndsWithASurvivedDelivery(t *testing.T) {
	t.Parallel()
	log := &records{}
	d := newDetector(slog.New(log))
	now := time.Unix(0, 0)
	d.crashed(nil, now)
	d.survived("x", true)
	d.crashed(from("jobs", "a", "b"), now)
	d.survived("a", false)
	if !d.isQuarantined("a") || !d.isQuarantined("b") || d.isQuarantined("c") {
		t.Error("want a and b quarantined, and no other message")
	}
	if s := d.poison(); s != (PoisonStatus{Quarantined: 2}) {
		t.Errorf("status %+v before one has crashed the app alone", s)
	}
	d.survived("a", true)
	d.crashed(from("jobs", "b"), now)
	d.crashed(from("jobs", "b"), now)
	if d.isQuarantined("a") || !d.isQuarantined("b") {
		t.Error("want b quarantined, and not a")
	}
	if s := d.poison(); s != (PoisonStatus{Quarantined: 1, Poison: 1}) {
		t.Errorf("status %+v", s)
	}
	d.forget("b")
	d.crashed([]delivered{{"c", "mail", "tidy"}}, now)
	const hint = " hint=it is delivered alone until its queue dead-letters it"
	for message, want := range map[string][]string{
		"app crashed, messages quarantined": {"messages=2"},
		"message left the quarantine":       {"queue=jobs message_id=a"},
		"poison message detected": {"queue=jobs message_id=b crashes=1" + hint, "queue=jobs message_id=b crashes=2" + hint,
			"queue=mail message_id=c task=tidy crashes=1" + hint},
	} {
		if got := log.of(message); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

func TestTheAppIsBrokenAfterTenDifferentMessages(t *testing.T) {
	t.Parallel()
	d := newDetector(slog.New(slog.DiscardHandler))
	now := time.Unix(0, 0)
	for range 50 {
		d.crashed(from("jobs", "poison"), now)
	}
	if d.isBroken() {
		t.Error("broken after 50 crashes with the same message")
	}
	d.survived("harmless", false)
	for i := range brokenAfter - 1 {
		d.crashed(from("jobs", fmt.Sprint(i)), now)
	}
	if d.isBroken() {
		t.Error("broken one message too early")
	}
	d.crashed(from("jobs", "last"), now)
	if !d.isBroken() {
		t.Error("not broken after ten different messages in a row")
	}
	d.survived("harmless", false)
	if d.isBroken() {
		t.Error("still broken after a survived delivery")
	}
}

func TestSurvivedDeliveryResetsTheStreakOfCrashes(t *testing.T) {
	t.Parallel()
	d := newDetector(slog.New(slog.DiscardHandler))
	crash := func(id string) {
		d.crashed(from("jobs", id), time.Unix(0, 0))
		d.forget(id)
	}
	for i := range brokenAfter - 1 {
		crash(fmt.Sprint(i))
	}
	d.survived("harmless", false)
	if crash("one more"); d.isBroken() {
		t.Error("broken after one message in a row")
	}
}

func TestOldestMessageIsForgottenAboveTheMaximum(t *testing.T) {
	t.Parallel()
	d := newDetector(slog.New(slog.DiscardHandler))
	var ids []string
	for i := range maxQuarantined - 1 {
		ids = append(ids, fmt.Sprint(i))
	}
	d.crashed(from("jobs", "oldest"), time.Unix(0, 0))
	d.crashed(from("jobs", ids...), time.Unix(1, 0))
	d.crashed(from("jobs", "newest"), time.Unix(2, 0))
	if s := d.poison(); s.Quarantined != maxQuarantined || !d.isQuarantined("newest") || d.isQuarantined("oldest") {
		t.Errorf("status %+v", s)
	}
}
