package eventlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func openTestEndings(t *testing.T, dir string, segment int64) *Endings {
	t.Helper()
	return openEndings(dir, segment, func(err error) { t.Log("failed:", err) })
}

func closeEndings(t *testing.T, l *Endings) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantEnding(t *testing.T, l *Endings, id, queue, outcome, by string) (since time.Time) {
	t.Helper()
	e, since, err := l.Find(id, queue)
	if err != nil || e.Outcome != outcome || e.By != by {
		t.Errorf("ending of %q: %+v, %v; want %q by %q", id, e, err, outcome, by)
	}
	return since
}

func TestEndingsSurviveARestartAndATornLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTestEndings(t, dir, maxEndings)
	l.Add(Ending{MessageID: "m1", Queue: "jobs", Outcome: "done", Receives: 2})
	l.Add(Ending{MessageID: "m2", Queue: "jobs", Outcome: "deleted", By: "token \"ci\"\t\n" + strings.Repeat("x", maxField)})
	wantEnding(t, l, "m1", "", "done", "")
	closeEndings(t, l)

	path := filepath.Join(dir, EndingsFile)
	whole, err := os.ReadFile(path)
	if err != nil || strings.Count(string(whole), "\n") != 2 {
		t.Fatalf("%q, %v", whole, err)
	}
	for cut := range len(whole) - strings.IndexByte(string(whole), '\n') - 1 {
		torn := whole[:len(whole)-1-cut]
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		l := openTestEndings(t, dir, maxEndings)
		l.Add(Ending{MessageID: "m3", Queue: "jobs", Outcome: "expired"})
		if e, _, err := l.Find("m1", ""); err != nil || e.Receives != 2 || e.At.IsZero() {
			t.Fatalf("cut %d: %+v, %v", cut, e, err)
		}
		if e, _, _ := l.Find("m2", ""); (e.Outcome == "deleted") != (cut == 0) {
			t.Fatalf("cut %d: %+v", cut, e)
		}
		wantEnding(t, l, "m3", "", "expired", "")
		closeEndings(t, l)
	}
}

func TestEndingsAreBoundedAndSayHowFarBackTheyGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, start := t.TempDir(), time.Now()
		const segment, n = 4 << 10, 1000
		l := openTestEndings(t, dir, segment)
		for i := range n {
			l.Add(Ending{MessageID: fmt.Sprintf("message-%d", i), Queue: "jobs", Outcome: "done"})
			time.Sleep(time.Second)
		}
		wantEnding(t, l, "message-0", "", "", "")
		wantEnding(t, l, fmt.Sprint("message-", n-1), "", "done", "")
		since := wantEnding(t, l, "no message", "", "", "")
		oldest := int(since.Sub(start) / time.Second)
		if oldest < n/2 || oldest > n-50 {
			t.Errorf("the history starts with message %d of %d", oldest, n)
		}
		wantEnding(t, l, fmt.Sprint("message-", oldest), "", "done", "")
		wantEnding(t, l, fmt.Sprint("message-", oldest-1), "", "", "")
		closeEndings(t, l)
		for _, name := range []string{EndingsFile, OlderEndingsFile} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() > segment || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	})
}

func TestEndingsOfABusyQueueDoNotWaitForTheSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := openTestEndings(t, dir, maxEndings)
		id := func(i int) string { return fmt.Sprint("message-", i) }
		const batch = 10
		for n, stored := 0, 0; n < 10*storeSize; n += batch * len("message-0") {
			l.AddAll(batch, func(i int) Ending { return Ending{MessageID: id(n + i), Queue: "jobs", Outcome: "done"} })
			synctest.Wait()
			info, err := os.Stat(filepath.Join(dir, EndingsFile))
			if err == nil {
				stored = int(info.Size())
			}
			if waiting := len(l.unstored); waiting >= storeSize || cap(l.unstored) > 2*storeSize || stored+waiting < n {
				t.Fatalf("%d bytes wait, %d are stored, %v", waiting, stored, err)
			}
		}
		wantEnding(t, l, id(0), "", "done", "")
		closeEndings(t, l)
	})
}

func TestEndingOfAMessageComesBeforeThatOfItsQueue(t *testing.T) {
	t.Parallel()
	l := openTestEndings(t, t.TempDir(), maxEndings)
	l.Add(Ending{Queue: "jobs", Outcome: "deleted", By: "session 1"})
	l.Add(Ending{MessageID: "m1", Queue: "jobs", Outcome: "done"})
	l.Add(Ending{Queue: "jobs", Outcome: "deleted", By: "owner"})
	l.Add(Ending{Queue: "mail", Outcome: "deleted", By: "owner"})
	wantEnding(t, l, "m1", "jobs", "done", "")
	wantEnding(t, l, "m2", "jobs", "deleted", "owner")
	wantEnding(t, l, "m2", "other", "", "")
	wantEnding(t, l, "m2", "", "", "")
	closeEndings(t, l)
}

func TestEndingsFollowAMessageFromQueueToQueue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		endings []Ending
		want    string
	}{
		{"dead letter purged", []Ending{{MessageID: "m", Queue: "jobs", Outcome: "dead-lettered", To: "dead"},
			{Queue: "jobs", Outcome: "deleted", By: "wrong queue"}, {Queue: "dead", Outcome: "deleted", By: "owner"}}, "deleted owner"},
		{"moved back and done", []Ending{{MessageID: "m", Queue: "jobs", Outcome: "dead-lettered", To: "dead"},
			{MessageID: "m", Queue: "dead", Outcome: "moved", To: "jobs"}, {MessageID: "m", Queue: "jobs", Outcome: "done"},
			{Queue: "dead", Outcome: "deleted"}, {Queue: "jobs", Outcome: "deleted"}}, "done "},
		{"filtered, then deleted by its receipt handle", []Ending{{MessageID: "m", Queue: "jobs", Outcome: Filtered},
			{MessageID: "m", Queue: "jobs", Outcome: "done"}}, Filtered + " "},
		{"another queue purged", []Ending{{Queue: "other", Outcome: "deleted"}}, " "},
	} {
		l := openTestEndings(t, t.TempDir(), maxEndings)
		for _, e := range c.endings {
			l.Add(e)
		}
		if e, _, err := l.Find("m", "jobs"); e.Outcome+" "+e.By != c.want || err != nil {
			t.Errorf("%s: %+v, %v", c.name, e, err)
		}
		closeEndings(t, l)
	}
}

func TestIDsOfEndingsAreFoundByTheirStart(t *testing.T) {
	t.Parallel()
	l := openTestEndings(t, t.TempDir(), maxEndings)
	for _, id := range []string{"abcd-1", "abcd-2", "abcd-1", "abce-1", "", "abcd-3"} {
		l.Add(Ending{MessageID: id, Queue: "jobs", Outcome: "done"})
	}
	for start, want := range map[string]string{"abcd": "abcd-1 abcd-2", "abce": "abce-1", "bcd": "", "abcd-3": "abcd-3"} {
		if ids, err := l.IDs(start, 2); strings.Join(ids, " ") != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", start, ids, err, want)
		}
	}
	closeEndings(t, l)
}

func TestEndingsThatDoNotFitAreLostAndTheHistoryStartsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reports []error
		dir := t.TempDir()
		l := openEndings(dir, maxEndings, func(err error) { reports = append(reports, err) })
		l.Add(Ending{MessageID: "early", Queue: "jobs", Outcome: "done"})
		time.Sleep(2 * storeEvery)
		l.writing.Lock()
		_ = l.file.file.Close()
		l.file.file, _ = os.Open(filepath.Join(dir, EndingsFile))
		l.writing.Unlock()

		filler := Ending{MessageID: "x", Queue: "jobs", Outcome: "deleted", By: strings.Repeat("x", maxField)}
		l.Add(Ending{MessageID: "first", Queue: "jobs", Outcome: "done"})
		time.Sleep(2 * storeEvery)
		wantEnding(t, l, "first", "", "done", "")
		for range maxUnstored/maxField + 1 {
			l.Add(filler)
		}
		time.Sleep(2 * storeEvery)
		lostAt := time.Now()
		l.Add(Ending{MessageID: "last", Queue: "jobs", Outcome: "done"})
		if since := wantEnding(t, l, "first", "", "", ""); since.After(lostAt) || lostAt.Sub(since) > 5*storeEvery {
			t.Errorf("the history starts at %v, want %v", since, lostAt)
		}

		l.writing.Lock()
		_ = l.file.file.Close()
		l.file.file = nil
		l.writing.Unlock()
		time.Sleep(2 * storeEvery)
		closeEndings(t, l)
		if len(reports) != 2 || !errors.Is(reports[0], syscall.EBADF) || reports[1] != nil {
			t.Errorf("reports %v", reports)
		}
		l = openTestEndings(t, dir, maxEndings)
		wantEnding(t, l, "early", "", "done", "")
		wantEnding(t, l, "last", "", "done", "")
		if since := wantEnding(t, l, "first", "", "", ""); since.Before(lostAt.Add(-10 * storeEvery).Truncate(time.Millisecond)) {
			t.Errorf("after a restart, the history starts at %v", since)
		}
		closeEndings(t, l)
	})
}
