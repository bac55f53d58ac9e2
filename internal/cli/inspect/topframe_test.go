package inspect

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
)

var update = flag.Bool("update", false, "write the golden files anew")

func topFrames() map[string]*topFrame {
	now := time.Date(2026, 3, 1, 14, 5, 12, 0, time.UTC)
	points := func(values ...float32) series.Values { return values }
	busy := &topFrame{now: now, status: api.Status{Environment: "shop", State: api.StateRunning,
		Backend: api.BackendEmbedded, StartedAt: now.Add(-12 * time.Minute),
		Health: &health.Report{Status: health.Degraded, Since: now.Add(-3 * time.Minute), Details: []health.Cause{
			{Status: health.Degraded, Since: now.Add(-4 * time.Minute), Remedy: "tendril message 42", Text: "35.0 % of the deliveries " +
				"from jobs in the last 5 minutes (35 of 100) are erroring with HTTP 4xx. The last reason: missing customer_id \x1b[31mred."},
			{Status: health.Warning, Since: now.Add(-2 * time.Hour), Until: now.Add(-20 * time.Second), Text: "12 messages in jobs-dead.",
				Remedy: "tendril dead reasons -q jobs"}}},
		Queues: []api.Queue{
			{Name: "jobs", DeadLetterQueue: "jobs-dead", OldestSeconds: 75,
				Progress: api.Progress{DrainSeconds: 147, LongestDeliverySeconds: 3.2},
				Ledger:   api.Ledger{Visible: 1204, InFlight: 5}},
			{Name: "jobs-dead", OldestSeconds: 7200, Ledger: api.Ledger{Visible: 12, Live: 12}},
			{Name: "mail", OldestSeconds: 3, Ledger: api.Ledger{Visible: 7}}},
		Workers: []api.Worker{
			{Queue: "jobs", Concurrency: 5, InWork: 5, Receiving: true,
				Progress: api.Progress{State: api.QueueRunning, Why: "at its maximum of 5 in flight"}, RecentDeliveries: 100,
				RecentFailed: 35},
			{Queue: "mail", Concurrency: 5, Progress: api.Progress{State: api.QueuePaused, Paused: true,
				Why: "by owner since 12:00 UTC: moving the mail server to another building"}}},
		App: []api.Process{{Name: "web", State: "running", PID: 4711, Ready: true, Since: now.Add(-3 * time.Minute)},
			{Name: "web.2", State: "starting", PID: 4800, Since: now.Add(-2 * time.Second), Restarts: 4,
				LastExit: "exit status 1"}},
		Tasks: &api.TasksStatus{Tasks: []api.Task{
			{Name: "report", Words: "every 10 minutes", Next: []time.Time{now.Add(288 * time.Second)}},
			{Name: "cleanup", Words: "every day at 03:00", Next: []time.Time{now.Add(13 * time.Hour)}},
			{Name: "idle", Paused: true, Next: []time.Time{now.Add(time.Second)}}}},
		Problems: []api.Problem{{Queue: "jobs", Reason: "HTTP 422 missing customer_id", Count: 11,
			First: now.Add(-3 * time.Minute), Last: now.Add(-4 * time.Second)}},
	}, curves: series.Curves{Series: series.Environment{
		Traffic: series.Traffic{In: points(1, 4, 9, 120.4, 130), Out: points(0, 2, 8, 9.8, 1)},
		P95MS:   points(90, 110, 120, 1250, 9), OldestSeconds: points(1, 2, 3, 75, 76)},
		Queues: map[string]series.Traffic{"jobs": {In: points(1, 120.4, 0), Out: points(1, 8.2, 0)}}}}
	environment := health.EnvironmentOf([]health.InstanceHealth{{Name: "one (7)", Status: health.Ok},
		{Name: "two (7)", Status: health.Ok}, health.Unreachable("three\x1b (7)", 95*time.Second)})
	return map[string]*topFrame{
		"busy": busy,
		"fleet": {now: now, status: api.Status{Environment: "shop", State: api.StateRunning, Backend: api.BackendSQS,
			Health: &health.Report{Status: health.Ok, Since: now.Add(-2 * time.Hour), Environment: &environment}}},
		"calm": {now: now, status: api.Status{Environment: "shop", State: api.StateRunning,
			Backend: api.BackendSQS, Health: &health.Report{Status: health.Ok, Since: now.Add(-2 * time.Hour)},
			Queues: []api.Queue{{Name: "a-queue-whose-name-is-as-long-as-names-of-queues-may-become-on-amazon"}}}},
		"serve": {now: now, status: api.Status{Environment: "queues"},
			lost:   "No response, retrying: connection refused",
			footer: "This process does not receive from queues."},
	}
}

func TestTopFrameIsThatOfTheGoldenFile(t *testing.T) {
	t.Parallel()
	for name, f := range topFrames() {
		for _, size := range [][2]int{{80, 24}, {120, 30}, {80, 0}} {
			file := filepath.Join("testdata", "top", fmt.Sprintf("%s-%dx%d", name, size[0], size[1]))
			got := strings.Join(f.lines(size[0], size[1]), "\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", file, diff)
			}
		}
	}
}

func TestTopFrameFitsEveryWindow(t *testing.T) {
	t.Parallel()
	for name, f := range topFrames() {
		for _, color := range []bool{false, true} {
			for width := 1; width <= 140; width += 3 {
				for _, height := range []int{1, 2, 5, 24} {
					f.color = color
					lines := f.lines(width, height)
					if len(lines) != height {
						t.Fatalf("%s at %dx%d has %d lines", name, width, height, len(lines))
					}
					for _, l := range lines {
						for _, code := range []string{"0", "1", "2", "31", "32", "33", "36"} {
							if color {
								l = strings.ReplaceAll(l, "\x1b["+code+"m", "")
							}
						}
						if strings.ContainsFunc(l, unicode.IsControl) || uniseg.StringWidth(l) > width {
							t.Fatalf("%s at %dx%d: %q", name, width, height, l)
						}
					}
				}
			}
		}
	}
}

func TestTopScrollsWithinTheFrame(t *testing.T) {
	t.Parallel()
	w := &topWatch{frame: *topFrames()["busy"]}
	top := strings.Join(w.frame.lines(80, 12), "\n")
	for _, key := range []string{base.KeyEnd, base.KeyDown, base.KeyPageDown} {
		w.handleKey(key, 12)
		w.frame.lines(80, 12)
	}
	bottom := strings.Join(w.frame.lines(80, 12), "\n")
	if !strings.Contains(bottom, "11     3m    4s  HTTP 422") || strings.Contains(bottom, "more ↓") {
		t.Errorf("the end of the frame is\n%s", bottom)
	}
	for _, key := range []string{base.KeyUp, base.KeyPageUp, base.KeyHome, base.KeyUp} {
		w.handleKey(key, 12)
	}
	if got := strings.Join(w.frame.lines(80, 12), "\n"); got != top {
		t.Errorf("after scrolling back: %s", cmp.Diff(top, got))
	}
}

func TestTopAsksBeforeItPauses(t *testing.T) {
	t.Parallel()
	w := &topWatch{frame: *topFrames()["busy"]}
	w.frame.status.Workers[1].Paused = false
	for _, answer := range []string{"n", base.KeyEscape, "q"} {
		w.handleKey("p", 24)
		if !strings.Contains(w.frame.footer, "Pause all queues?") {
			t.Fatalf("the footer is %q", w.frame.footer)
		}
		if act, quit := w.handleKey(answer, 24); act != nil || quit {
			t.Errorf("%q: acts %t, quits %t", answer, act != nil, quit)
		}
	}
	w.handleKey("p", 24)
	if act, _ := w.handleKey("y", 24); act == nil {
		t.Error("y does nothing")
	}
	w.frame.status.Workers[0].Paused = true
	if w.handleKey("p", 24); !strings.Contains(w.frame.footer, "Resume all queues?") {
		t.Errorf("the footer is %q", w.frame.footer)
	}
	w.handleKey("n", 24)
	for _, key := range []string{"q", "Q", base.KeyInterrupt} {
		if _, quit := w.handleKey(key, 24); !quit {
			t.Errorf("%q does not quit", key)
		}
	}
}

func TestKeysOfATerminal(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string][]string{
		"q": {"q"}, "\x1b[A\x1bOBq": {base.KeyUp, base.KeyDown, "q"}, "\x1b": {base.KeyEscape}, "\x1b[5~\x1b[6~": {base.KeyPageUp, base.KeyPageDown},
		"\x1b[1;5Cq": {"q"}, "\x1b[": nil, "\x03": {base.KeyInterrupt}, "\x1b[99~p": {"p"}, "": nil,
	} {
		if diff := cmp.Diff(want, base.KeysOf([]byte(sent))); diff != "" {
			t.Errorf("%q (-want +got)\n%s", sent, diff)
		}
	}
}

func TestShortDurationsAreBelowAThousandMilliseconds(t *testing.T) {
	t.Parallel()
	for ms, want := range map[float32]string{0.4: "0 ms", 9: "9 ms", 999.4: "999 ms", 999.6: "1.0 s", 1000: "1.0 s", 1250: "1.2 s"} {
		if got := shortDuration(ms); got != want {
			t.Errorf("%g ms is shown as %q, want %q", ms, got, want)
		}
	}
}
