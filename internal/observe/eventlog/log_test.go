package eventlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func ids(events []Event) (list []int64) {
	for _, e := range events {
		list = append(list, e.ID)
	}
	return list
}

func mustOpen(t *testing.T, dir string, segment int64) *Log {
	t.Helper()
	return open(eventFiles(dir), segment, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
}

func mustClose(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string, q Query) []Event {
	t.Helper()
	events, err := Read(dir, q)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestEventsSurviveARestartAndIdsGrow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for run := range 3 {
		l := mustOpen(t, dir, maxSegment)
		l.Add("start", "environment started", map[string]string{"run": fmt.Sprint(run)})
		l.Add("stop", "environment stopped", nil)
		mustClose(t, l)
	}
	events := read(t, dir, Query{})
	if got, want := ids(events), []int64{1, 2, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Fatalf("ids %v, want %v", got, want)
	}
	if e := events[4]; e.Kind != "start" || e.Text != "environment started" || e.Fields["run"] != "2" || e.At.IsZero() {
		t.Errorf("read %+v", e)
	}
	info, err := os.Stat(filepath.Join(dir, CurrentFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := mustOpen(t, dir, maxSegment)
	for i := range 10 {
		kind := []string{"pause", "act"}[i%2]
		l.Add(kind, "something happened", map[string]string{"queue": fmt.Sprintf("Jobs-%d", i)})
	}
	for name, c := range map[string]struct {
		q    Query
		want []int64
	}{
		"all":              {Query{}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"the oldest":       {Query{Range: Range{Limit: 2}}, []int64{1, 2}},
		"the newest":       {Query{Range: Range{Limit: 3, Newest: true}}, []int64{10, 9, 8}},
		"after an id":      {Query{Range: Range{After: 8}}, []int64{9, 10}},
		"before an id":     {Query{Range: Range{Before: 6, Limit: 2, Newest: true}}, []int64{5, 4}},
		"of a kind":        {Query{Range: Range{After: 4}, Kinds: []string{"act"}}, []int64{6, 8, 10}},
		"newest of a kind": {Query{Range: Range{Newest: true, Limit: 2}, Kinds: []string{"pause", "stop"}}, []int64{9, 7}},
		"with a text":      {Query{Match: "jobs-7"}, []int64{8}},
		"of the future":    {Query{Since: time.Now().Add(time.Hour)}, nil},
		"after the end":    {Query{Range: Range{After: 99}}, nil},
	} {
		got, err := l.Read(c.q)
		if err != nil || !slices.Equal(ids(got), c.want) {
			t.Errorf("%s: %v, %v, want %v", name, ids(got), err, c.want)
		}
	}
	mustClose(t, l)
	if got := ids(read(t, dir, Query{Range: Range{Newest: true, Limit: 3}})); !slices.Equal(got, []int64{10, 9, 8}) {
		t.Errorf("the newest of the files: %v", got)
	}
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testLogIsBounded)
}

func testLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	const segment = 256 << 10
	l := mustOpen(t, dir, segment)
	const n = 20 * keptEvents
	for i := range n {
		l.Add("act", "something happened", map[string]string{"text": strings.Repeat("x", 40)})
		if i%100 == 0 {
			synctest.Wait()
		}
	}
	synctest.Wait()
	all, err := l.Read(Query{})
	if err != nil || len(all) < 2*keptEvents || len(all) == n {
		t.Fatalf("%d events, %v", len(all), err)
	}
	for i := range all {
		if want := int64(n - len(all) + 1 + i); all[i].ID != want {
			t.Fatalf("event %d has id %d, want %d", i, all[i].ID, want)
		}
	}
	if got, err := l.Read(Query{Range: Range{After: all[3].ID, Limit: 2}}); err != nil ||
		!slices.Equal(ids(got), []int64{all[4].ID, all[5].ID}) {
		t.Errorf("old ones: %v, %v", ids(got), err)
	}
	mustClose(t, l)
	for _, name := range []string{CurrentFile, OlderFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() > segment {
			t.Errorf("%s: %v, %v", name, info.Size(), err)
		}
	}
	l = mustOpen(t, dir, segment)
	l.Add("start", "environment started", nil)
	mustClose(t, l)
	if last := read(t, dir, Query{Range: Range{Newest: true, Limit: 1}}); last[0].ID != n+1 {
		t.Errorf("the id after a restart is %d", last[0].ID)
	}
}

func TestMalformedLinesAreSkipped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const whole = `{"id":7,"at":"2026-01-02T03:04:05Z","kind":"start","text":"environment started"}` + "\n"
	garbage := "\n{}\n{\"id\":1}\nnull\n\x00\x00\x00\n" + strings.Repeat("x", 3*maxLine) + "\n"
	torn := `{"id":8,"at":"2026-01-02T03:04:05Z","kind":"st`
	tooLong := strings.Repeat("x", maxLine) + `{"id":9,"at":"2026-01-02T03:04:05Z","kind":"start"}`
	for _, last := range []string{tooLong, torn} {
		if err := os.WriteFile(filepath.Join(dir, CurrentFile), []byte(garbage+whole+last), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ids(read(t, dir, Query{})); !slices.Equal(got, []int64{7}) {
			t.Errorf("before %.20s... at the end, read %v", last, got)
		}
	}
	l := mustOpen(t, dir, maxSegment)
	l.Add("stop", "environment stopped", nil)
	mustClose(t, l)
	if got := ids(read(t, dir, Query{})); !slices.Equal(got, []int64{7, 8}) {
		t.Errorf("read %v after a torn line", got)
	}
}

func TestEventsAreKeptWhileTheDiskRejectsWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var reported []error
		l := open(eventFiles(dir), 200, func(err error) { reported = append(reported, err) })
		l.Add("start", strings.Repeat("x", 150), nil)
		synctest.Wait()
		obstacle := filepath.Join(dir, OlderFile, "obstacle")
		if err := os.MkdirAll(obstacle, 0o700); err != nil {
			t.Fatal(err)
		}
		for range 3 * keptEvents {
			l.Add("act", "something happened", nil)
		}
		synctest.Wait()
		if len(reported) != 1 || !errors.Is(reported[0], syscall.EEXIST) && !errors.Is(reported[0], syscall.EISDIR) {
			t.Fatalf("reported %v", reported)
		}
		if err := os.RemoveAll(filepath.Join(dir, OlderFile)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(retryAfter + time.Second)
		synctest.Wait()
		if len(reported) != 2 || reported[1] != nil {
			t.Errorf("reported %v", reported)
		}
		mustClose(t, l)
		if last := read(t, dir, Query{Range: Range{Newest: true, Limit: 1}}); last[0].ID != 3*keptEvents+1 {
			t.Errorf("the last event on disk is %v", ids(last))
		}
	})
}

func TestFollowersAreWoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, t.TempDir(), maxSegment)
		defer mustClose(t, l)
		changed, woken := l.Changed(), false
		go func() { <-changed; woken = true }()
		synctest.Wait()
		if woken {
			t.Fatal("woken before there was an event")
		}
		l.Add("start", "environment started", nil)
		synctest.Wait()
		if !woken {
			t.Error("not woken")
		}
	})
}

func TestLongValuesAreCut(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, t.TempDir(), maxSegment)
	defer mustClose(t, l)
	given := map[string]string{"reason": strings.Repeat("é", maxField)}
	l.Add("act", "something happened", given)
	events, err := l.Read(Query{})
	if err != nil || len(events[0].Fields["reason"]) > maxField+3 || len(given["reason"]) != 2*maxField {
		t.Errorf("%d bytes, %v", len(events[0].Fields["reason"]), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":7,"at":"2026-01-02T03:04:05Z","kind":"start","text":"environment started"}` + "\n"))
	f.Add([]byte("{\"id\":2,\"kind\":\"act\"}\n{\"id\":1,\"kind\":\"act\"}\n\x00\n{\"id\":9,"))
	f.Add([]byte("{\"id\":9223372036854775807,\"kind\":\"act\",\"fields\":{\"a\":\"\\ud800\"}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, CurrentFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		before := read(t, dir, Query{})
		for i := range before {
			if i > 0 && before[i].ID <= before[i-1].ID {
				t.Fatalf("ids %v do not grow", ids(before))
			}
		}
		l := mustOpen(t, dir, maxSegment)
		l.Add("act", "something happened", nil)
		mustClose(t, l)
		after := read(t, dir, Query{})
		if full := len(before) > 0 && before[len(before)-1].ID == maxID-1; !full && len(after) != len(before)+1 {
			t.Fatalf("%d events became %d", len(before), len(after))
		}
	})
}
