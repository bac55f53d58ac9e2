package app

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestExactlyThePoisonMessagesAreDetected delivers 10,000 messages to an app with
// ten slots, of which one in a hundred crashes it. Harmless messages are delivered
// at most twice.
func TestExactlyThePoisonMessagesAreDetected(t *testing.T) {
	t.Parallel()
	const messages, slots, maxReceives = 10_000, 10, 3
	random := rand.New(rand.NewPCG(1, 2))
	crashes := func(n int) bool { return n%100 == 42 }
	d := NewDetector(DetectorEvents{})
	now := time.Unix(0, 0)
	tries, deadLettered, done := map[int]int{}, 0, 0
	backlog := random.Perm(messages)
	for len(backlog) > 0 {
		now = now.Add(time.Second)
		var together []int
		for len(together) < slots && len(backlog) > 0 && !d.Quarantined(fmt.Sprint(backlog[0])) {
			together, backlog = append(together, backlog[0]), backlog[1:]
		}
		if len(together) == 0 { // the next message is quarantined
			n := backlog[0]
			backlog = backlog[1:]
			tries[n]++
			if !crashes(n) {
				d.Survived(fmt.Sprint(n), true)
				done++
				continue
			}
			d.Crashed([]string{fmt.Sprint(n)}, now)
			if tries[n] < maxReceives {
				backlog = append(backlog, n)
			} else {
				deadLettered++
				d.Forget(fmt.Sprint(n))
			}
			continue
		}
		var ids []string
		for _, n := range together {
			ids = append(ids, fmt.Sprint(n))
			tries[n]++
		}
		if slices.ContainsFunc(together, crashes) {
			d.Crashed(ids, now)
			backlog = append(backlog, together...)
			continue
		}
		for _, id := range ids {
			d.Survived(id, false)
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
	if s := d.Status(); s != (DetectorStatus{}) {
		t.Errorf("status at the end: %+v", s)
	}
}

func TestQuarantineEndsWithASurvivedDelivery(t *testing.T) {
	t.Parallel()
	var events []string
	record := func(format string, args ...any) { events = append(events, fmt.Sprintf(format, args...)) }
	d := NewDetector(DetectorEvents{
		Quarantined: func(ids []string) { record("quarantined %v", ids) },
		Cleared:     func(id string) { record("cleared %s", id) },
		Detected:    func(id string, crashes int) { record("detected %s %d", id, crashes) },
		Broken:      func(broken bool) { record("broken %t", broken) },
	})
	now := time.Unix(0, 0)
	d.Crashed(nil, now)
	d.Survived("x", true)
	d.Crashed([]string{"a", "b"}, now)
	d.Survived("a", false) // not alone: proves nothing about a
	if !d.Quarantined("a") || !d.Quarantined("b") || d.Quarantined("c") {
		t.Error("want a and b quarantined, and no other message")
	}
	d.Survived("a", true)
	d.Crashed([]string{"b"}, now)
	d.Crashed([]string{"b"}, now)
	if d.Quarantined("a") || !d.Quarantined("b") {
		t.Error("want b quarantined, and not a")
	}
	if s := d.Status(); s != (DetectorStatus{Quarantined: 1, Poison: 1}) {
		t.Errorf("status %+v", s)
	}
	d.Forget("b")
	want := []string{"quarantined [a b]", "cleared a", "detected b 1", "detected b 2"}
	if !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}

// TestTheAppIsBrokenAfterTenDifferentMessages: one message that crashes it many
// times is not enough.
func TestTheAppIsBrokenAfterTenDifferentMessages(t *testing.T) {
	t.Parallel()
	d := NewDetector(DetectorEvents{})
	now := time.Unix(0, 0)
	for range 50 {
		d.Crashed([]string{"poison"}, now)
	}
	if d.Broken() {
		t.Error("broken after 50 crashes with the same message")
	}
	d.Survived("harmless", false)
	for i := range brokenAfter - 1 {
		d.Crashed([]string{fmt.Sprint(i)}, now)
	}
	if d.Broken() {
		t.Error("broken one message too early")
	}
	d.Crashed([]string{"last"}, now)
	if !d.Broken() {
		t.Error("not broken after ten different messages in a row")
	}
	d.Survived("harmless", false)
	if d.Broken() {
		t.Error("still broken after a survived delivery")
	}
}

func TestOldestMessageIsForgottenAboveTheMaximum(t *testing.T) {
	t.Parallel()
	d := NewDetector(DetectorEvents{})
	var ids []string
	for i := range maxQuarantined - 1 {
		ids = append(ids, fmt.Sprint(i))
	}
	d.Crashed([]string{"oldest"}, time.Unix(0, 0))
	d.Crashed(ids, time.Unix(1, 0))
	d.Crashed([]string{"newest"}, time.Unix(2, 0))
	if s := d.Status(); s.Quarantined != maxQuarantined || !d.Quarantined("newest") || d.Quarantined("oldest") {
		t.Errorf("status %+v", s)
	}
}
