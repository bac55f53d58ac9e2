package losscheck

import (
	"slices"
	"testing"
)

func TestCheckFindsEachKindOfProblem(t *testing.T) {
	t.Parallel()
	var l Log
	for _, key := range []string{"kept", "lost", "unknown", "worked on", "undeleted", "gone"} {
		l.Sending(key)
	}
	for _, key := range []string{"kept", "lost", "worked on", "undeleted", "gone"} {
		l.Sent(key)
	}
	for _, key := range []string{"worked on", "undeleted", "gone"} {
		l.Deleting(key)
	}
	l.Deleted("undeleted")
	l.Deleted("gone")

	got := l.Check(map[string]int{"kept": 2, "invented": 1, "undeleted": 1})
	want := []string{`"invented" is there, and was never sent`, `"kept" is there 2 times`,
		`"lost" was acknowledged, and is lost`, `"undeleted" is there, and its delete was acknowledged`}
	if !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
	if got := l.Check(map[string]int{"kept": 1, "lost": 1, "unknown": 1, "worked on": 1}); len(got) > 0 {
		t.Errorf("problems %q, want none", got)
	}
	if sends, deletes := l.Acknowledged(); sends != 5 || deletes != 2 {
		t.Errorf("%d sends and %d deletes acknowledged, want 5 and 2", sends, deletes)
	}
}

func TestAttemptsAfterASnapshotExcuseButDoNotOblige(t *testing.T) {
	t.Parallel()
	var l Log
	l.Sending("before")
	l.Sent("before")
	seen := l.Snapshot()
	l.Sending("after")
	l.Sent("after")
	l.Deleting("before")
	seen.AddAttempts(&l)
	for _, stored := range []map[string]int{{}, {"before": 1}, {"after": 1}} {
		if got := seen.Check(stored); len(got) > 0 {
			t.Errorf("with %v: problems %q, want none", stored, got)
		}
	}
}
