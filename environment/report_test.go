package environment

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tendril/queue"
	"tendril/worker"
)

// TestTextOfOthersStaysInItsLine: an endpoint's error or a leader's name can hold anything,
// and must neither reach a terminal as it is nor look like a line of ours.
func TestTextOfOthersStaysInItsLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := &report{text: true, out: &out, log: slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))}
	r.note(slog.LevelWarn, "worker", "receiving failed: \x1b[2Jx\n12:00:00 · all is well\u202e")
	r.line(func(b *bytes.Buffer) {
		r.settledText(b, worker.Settled{ID: "m1", Outcome: queue.Failed, Attempt: 2, Reason: "no\x1b[8m\n12:00:00 ✓",
			Answer: "\u202e"}, afterFailure{}, time.Now())
	})
	got := out.String()
	if strings.ContainsAny(got, "\x1b\u202e") || strings.Contains(got, "\n12:00:00") {
		t.Errorf("printed %q", got)
	}
	for _, want := range []string{`! receiving failed: \x1b[2Jx` + "\n  12:00:00", `attempt 2: no\x1b[8m\n12:00:00`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}
