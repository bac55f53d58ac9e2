package poison

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestKillersAreFound runs 10,000 messages through an app of ten slots that
// some of them kill: exactly those are found, and nobody else is tried more
// than twice.
func TestKillersAreFound(t *testing.T) {
	t.Parallel()
	const messages, slots, most = 10_000, 10, 3
	random := rand.New(rand.NewPCG(1, 2))
	kills := func(n int) bool { return n%100 == 42 }
	f := New(nil)
	now := time.Unix(0, 0)
	tries, dead, done := map[int]int{}, 0, 0
	work := random.Perm(messages)
	for len(work) > 0 {
		now = now.Add(time.Second)
		var together []int
		for len(together) < slots && len(work) > 0 && !f.Quarantined(fmt.Sprint(work[0])) {
			together, work = append(together, work[0]), work[1:]
		}
		if len(together) == 0 { // the head of the line is a suspect
			n := work[0]
			work = work[1:]
			tries[n]++
			if !kills(n) {
				f.Survived(fmt.Sprint(n), true)
				done++
				continue
			}
			f.Crashed([]string{fmt.Sprint(n)}, now)
			if tries[n] < most {
				work = append(work, n)
			} else {
				dead++
				f.Forget(fmt.Sprint(n))
			}
			continue
		}
		var ids []string
		for _, n := range together {
			ids = append(ids, fmt.Sprint(n))
			tries[n]++
		}
		if slices.ContainsFunc(together, kills) {
			f.Crashed(ids, now)
			work = append(work, together...)
			continue
		}
		for _, id := range ids {
			f.Survived(id, false)
			done++
		}
	}
	for n, times := range tries {
		if want := 2; !kills(n) && times > want {
			t.Errorf("message %d was tried %d times", n, times)
		}
	}
	if dead != messages/100 || done != messages-dead {
		t.Errorf("%d dead, %d done", dead, done)
	}
	if s := f.Status(); s != (Status{}) {
		t.Errorf("at the end: %+v", s)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	var heard []string
	hear := func(format string, args ...any) { heard = append(heard, fmt.Sprintf(format, args...)) }
	f := New(&Options{Events: Events{
		Quarantined: func(ids []string) { hear("suspected %v", ids) },
		Cleared:     func(id string) { hear("cleared %s", id) },
		Detected:    func(id string, times int) { hear("found %s %d", id, times) },
		Broken:      func(b bool) { hear("broken %t", b) },
	}})
	now := time.Unix(0, 0)
	f.Crashed(nil, now)
	f.Survived("x", true)
	f.Crashed([]string{"a", "b"}, now)
	f.Survived("a", false) // not alone: says nothing about a
	if !f.Quarantined("a") || !f.Quarantined("b") || f.Quarantined("c") {
		t.Error("a and b are suspects, and nobody else")
	}
	f.Survived("a", true)
	f.Crashed([]string{"b"}, now)
	f.Crashed([]string{"b"}, now)
	if f.Quarantined("a") || !f.Quarantined("b") || f.Kills("b") != 2 || f.Kills("a") != 0 {
		t.Error("b kills, a does not")
	}
	if s := f.Status(); s != (Status{Quarantined: 1, Poison: 1}) {
		t.Errorf("%+v", s)
	}
	f.Forget("b")
	want := []string{"suspected [a b]", "cleared a", "found b 1", "found b 2"}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

// TestItIsTheApp: many messages that kill one after the other are no killers,
// the same one many times is.
func TestItIsTheApp(t *testing.T) {
	t.Parallel()
	f := New(nil)
	now := time.Unix(0, 0)
	for range 50 {
		f.Crashed([]string{"poison"}, now)
	}
	if f.Broken() {
		t.Error("one message makes no broken app")
	}
	f.Survived("fine", false)
	for i := range enough - 1 {
		f.Crashed([]string{fmt.Sprint(i)}, now)
	}
	if f.Broken() {
		t.Error("too early")
	}
	f.Crashed([]string{"last"}, now)
	if !f.Broken() {
		t.Error("ten in a row are the app's fault")
	}
	f.Survived("fine", false)
	if f.Broken() {
		t.Error("it lives")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	f := New(&Options{Most: 3})
	for i := range 10 {
		f.Crashed([]string{fmt.Sprint(i), fmt.Sprint(i, "b")}, time.Unix(int64(i), 0))
	}
	if s := f.Status(); s.Quarantined != 3 || !f.Quarantined("9") || f.Quarantined("0") {
		t.Errorf("%+v", s)
	}
}
