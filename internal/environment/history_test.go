package environment

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tendril/api"
	"tendril/internal/autoscale"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/cron/periodic"
	"tendril/internal/instances"
	"tendril/internal/observe/event"
	"tendril/internal/observe/eventlog"
	"tendril/internal/observe/logging"
	"tendril/internal/worker"
	"tendril/queue"
)

func openHistory(t *testing.T) (*history, string) {
	t.Helper()
	dir := t.TempDir()
	log := eventlog.Open(dir, func(err error) { t.Error(err) })
	t.Cleanup(func() { _ = log.Close() })
	h := &history{recent: eventlog.NewLines()}
	h.lost.events = h
	h.log.Store(log)
	return h, dir
}

func eventsOf(t *testing.T, h *history) (list []string) {
	t.Helper()
	events, err := h.log.Load().Read(eventlog.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		text := e.Kind + ": " + e.Text
		for _, name := range []string{"queue", "messages", "reason", "trial_in", "from", "desired", "not_applied", "who",
			"subject", "action", "component", "hint"} {
			if value := e.Fields[name]; value != "" {
				text += " " + name + "=" + value
			}
		}
		list = append(list, text)
	}
	return list
}

func TestLogLinesBecomeEvents(t *testing.T) {
	t.Parallel()
	h, _ := openHistory(t)
	l := logging.New(logging.Options{Out: &safeBuffer{}, Level: slog.LevelDebug})
	l.Observe(h.recordLine, h)
	event.Task.Log(l.Logger, slog.LevelDebug, "scheduled runs skipped", "task", "tidy") // below the level of events
	event.Breaker.Log(l.With("component", "limit"), slog.LevelWarn, "breaker open", "trial_in_ms", 5000, "hint", "wait")
	l.Warn("breaker open in a text that is no event")
	l.Info("receiving started", "queue", "jobs")
	l.AppOutput("web", "stdout", []byte("breaker open")) // an app's output is not an event
	h.recordDecision(autoscale.Decided{Decision: autoscale.Decision{From: 1, Desired: 3, Why: "backlog"}, Applied: true})
	h.recordDecision(autoscale.Decided{Decision: autoscale.Decision{From: 1, Desired: 3, Why: "backlog"}, NotApplied: "denied"})
	h.recordDecision(autoscale.Decided{Decision: autoscale.Decision{From: 1, Desired: 1}})
	h.recordAction(console.Act{Who: "owner", Path: "/api/v1/queues/jobs/purge", Text: "queue purged", Subject: "jobs", Count: 7, Status: 200})
	h.recordAction(console.Act{Who: "owner", Text: "bodies read", Subject: "jobs", Count: 2, Status: 200, Read: true})
	h.recordAction(console.Act{Who: "nobody", Status: 401, Refused: "this needs the console's token"})
	want := []string{"breaker: breaker open trial_in=5s",
		"scaling: size changed reason=backlog from=1 desired=3",
		"scaling: size not changed reason=backlog from=1 desired=3 not_applied=denied",
		"act: console action messages=7 who=owner subject=jobs action=queue purged",
		"read: console action messages=2 who=owner subject=jobs action=bodies read",
		"act: console action rejected reason=this needs the console's token who=nobody"}
	if diff := cmp.Diff(want, eventsOf(t, h)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	var lines []string
	for _, line := range h.recent.Read(eventlog.LineQuery{}) {
		lines = append(lines, line.Process+": "+line.Text)
	}
	if diff := cmp.Diff([]string{"tendril: breaker open  trial_in=5s  hint: wait",
		"tendril: breaker open in a text that is no event", "tendril: receiving started  queue=jobs",
		"web: breaker open"}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestLossesAreGrouped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, _ := openHistory(t)
		for range 1000 {
			h.lost.addLoss(deadText, "jobs", "jobs-dead", "", 2)
		}
		h.lost.addLoss(deadText, "mails", "mails-dead", "", 1)
		h.lost.addLoss(expiredText, "jobs", "", "", 4)
		time.Sleep(lossInterval + time.Second)
		synctest.Wait()
		q := &workQueue{name: "orders", embedded: true}
		h.recordEnding(q, &worker.Settled{Outcome: queue.Failed}, "orders-dead")
		h.lost.addLoss(deadText, "jobs", "jobs-dead", "HTTP 500", 3)
		h.lost.flush()
		want := map[string]int{"dead-letter: messages dead-lettered queue=jobs messages=2000": 1,
			"dead-letter: messages dead-lettered queue=mails messages=1":                      1,
			"dead-letter: messages past their retention period deleted queue=jobs messages=4": 1,
			"dead-letter: messages dead-lettered queue=jobs messages=3 reason=HTTP 500":       1}
		got := map[string]int{}
		for _, e := range eventsOf(t, h) {
			got[e]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestPausesAreKeptInAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), pausedFile)
	log := logging.New(logging.Options{Out: &safeBuffer{}}).Logger
	jobs, mails := &pipeline{queue: &workQueue{name: "jobs"}}, &pipeline{queue: &workQueue{name: "mails"}}
	f := readOrPauseAll(path, []string{"jobs", "mails"}, []string{"tidy", "sweep"}, log)
	holds := func(step string, want storedPauses) {
		t.Helper()
		for place, got := range map[string]storedPauses{"memory": f.stored, "file": readOrPauseAll(path, nil, nil, log).stored} {
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(instances.Pause{})); diff != "" {
				t.Errorf("%s: the %s (-want +got):\n%s", step, place, diff)
			}
		}
	}
	lunch := newPause("lunch", "owner")
	if err := errors.Join(f.setQueues([]*pipeline{jobs}, lunch), f.setQueues([]*pipeline{mails}, newPause("", "")),
		f.setQueues([]*pipeline{mails}, instances.Pause{}), f.SetPaused(t.Context(), "tidy", "audit", true)); err != nil {
		t.Fatal(err)
	}
	want := storedPauses{Queues: map[string]instances.Pause{"jobs": lunch}, Tasks: map[string]string{"tidy": "audit"}}
	holds("changes", want)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	text, err := os.ReadFile(path)
	if err := errors.Join(err, os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	var refused *api.Error
	for step, err := range map[string]error{
		"pause a queue":  f.setQueues([]*pipeline{mails}, lunch),
		"resume a queue": f.setQueues([]*pipeline{jobs}, instances.Pause{}),
		"pause a task":   f.SetPaused(t.Context(), "sweep", "", true),
		"resume a task":  f.SetPaused(t.Context(), "tidy", "", false),
	} {
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, path) || refused.Hint == "" {
			t.Errorf("%s: %v", step, err)
		}
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	holds("changes that were refused", want)
}

func TestPausesOfAnEarlierVersionAreAdopted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), pausedFile)
	text := `{"queues": {"jobs": "lunch", "mails": ""}, "tasks": {"tidy": "audit"}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := &safeBuffer{}
	stored := readOrPauseAll(path, []string{"jobs", "mails", "more"}, nil, logging.New(logging.Options{Out: lines}).Logger).stored
	mails, paused := stored.Queues["mails"]
	if len(stored.Queues) != 2 || stored.Queues["jobs"].Reason != "lunch" || !paused || stored.Tasks["tidy"] != "audit" {
		t.Errorf("paused: %+v", stored)
	}
	if mails.At.IsZero() || lines.String() != "" {
		t.Errorf("paused since %v; the log: %s", mails.At, lines.String())
	}
}

func TestUnreadablePausesPauseEverything(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "{", "\x00\x00", "[]"} {
		t.Run(strconv.Quote(content), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), pausedFile)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			lines := &safeBuffer{}
			log := logging.New(logging.Options{Out: lines}).Logger
			f := readOrPauseAll(path, []string{"jobs", "mails"}, []string{"tidy"}, log)
			if tasks, err := f.Paused(t.Context()); err != nil || tasks["tidy"] == "" {
				t.Errorf("tasks paused: %v, %v", tasks, err)
			}
			if err := f.setQueues([]*pipeline{{queue: &workQueue{name: "jobs"}}}, instances.Pause{}); err != nil {
				t.Fatal(err)
			}
			again := readOrPauseAll(path, []string{"jobs", "mails"}, []string{"tidy"}, log).stored
			if _, jobs := again.Queues["jobs"]; jobs || again.Queues["mails"].Reason == "" || again.Tasks["tidy"] == "" {
				t.Errorf("after jobs was resumed, %+v is paused", again)
			}
			if text := lines.String(); strings.Count(text, "pauses not read") != 1 || !strings.Contains(text, path) ||
				!strings.Contains(text, "queues and tasks are paused") || !strings.Contains(text, "tendril queues resume'") ||
				!strings.Contains(text, "tendril tasks resume NAME'") {
				t.Errorf("it says %s", text)
			}
		})
	}
}

func TestAnUnreadablePauseFilePausesOnlyTheTasksItStores(t *testing.T) {
	t.Parallel()
	file := &periodic.File{Tasks: []periodic.Task{{Name: "tidy"}}}
	log := func(lines *safeBuffer) *slog.Logger { return logging.New(logging.Options{Out: lines}).Logger }
	for leader, backends := range map[string]map[string]string{
		config.LeaderLocal: {config.BackendSQS: "[tidy]", config.BackendEmbedded: "[]"},
		"elect":            {config.BackendSQS: "[]", config.BackendEmbedded: "[]"},
	} {
		for backend, want := range backends {
			path := filepath.Join(t.TempDir(), pausedFile)
			if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := &config.Settings{Leader: leader,
				Queues: []config.QueueSettings{{PerQueue: config.PerQueue{Backend: backend}, Name: "jobs"}}}
			lines := &safeBuffer{}
			stored := readOrPauseAll(path, []string{"jobs"}, tasksOfPauseFile(s, file), log(lines)).stored
			paused := slices.Sorted(maps.Keys(stored.Tasks))
			if fmt.Sprint(paused) != want || strings.Contains(lines.String(), "tasks") != (len(paused) > 0) {
				t.Errorf("leader %s, backend %s: %v are paused, want %s; the log: %s", leader, backend, paused, want, lines)
			}
		}
	}
}
