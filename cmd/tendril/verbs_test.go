package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/cli"
	"tendril/internal/cli/base"
	"tendril/internal/console"
	"tendril/internal/migrate"
	"tendril/internal/observe/health"
	"tendril/queue"
)

type stage struct {
	t   *testing.T
	dir string
	b   *broker.Broker
	ds  *console.Deliveries
}

// edit may change the console's options and instance.json.
func newStage(t *testing.T, edit func(*console.Options, *api.Instance)) *stage {
	t.Helper()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if err := b.CreateQueue(t.Context(), "jobs-dead", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.CreateQueue(t.Context(), "jobs",
		map[string]string{"RedrivePolicy": migrate.RedrivePolicy(b.ARN("jobs-dead"), 1)}, nil); err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, dir: t.TempDir(), b: b, ds: &console.Deliveries{}}
	opts := &console.Options{Environment: "photos", Version: "1.2.3", Broker: b, Deliveries: s.ds,
		Token: api.NewToken()}
	instance := &api.Instance{PID: os.Getpid(), Environment: "photos", Endpoint: "http://127.0.0.1:1",
		Queues: []api.InstanceQueue{{Name: "jobs", DeadLetterQueue: "jobs-dead", Embedded: true}}}
	if edit != nil {
		edit(opts, instance)
	}
	server := console.New(opts)
	srv := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		srv.Close()
	})
	if instance.Console == "" {
		instance.Console = srv.Listener.Addr().String()
	}
	claim(t, s.dir)
	if err := errors.Join(instance.Write(s.dir), api.WriteToken(s.dir, opts.Token)); err != nil {
		t.Fatal(err)
	}
	return s
}

func claim(t *testing.T, dir string) {
	t.Helper()
	release, err := api.Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release() })
}

func (s *stage) tendril(input string, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	var out, talk bytes.Buffer
	c := &base.CLI{In: strings.NewReader(input), Out: &out, Err: &talk,
		Environ: []string{"TENDRIL_DATA_DIR=" + s.dir, "HOME=" + s.dir}}
	code = cli.Execute(c, args)
	return out.String(), talk.String(), code
}

func (s *stage) must(args ...string) string {
	s.t.Helper()
	out, talk, code := s.tendril("", args...)
	if code != 0 {
		s.t.Fatalf("tendril %s: exit %d\n%s%s", strings.Join(args, " "), code, out, talk)
	}
	return out
}

func (s *stage) deadLetter(bodies ...string) []string {
	s.t.Helper()
	var ids []string
	for _, body := range bodies {
		ids = append(ids, strings.TrimSpace(s.must("send", body)))
	}
	now := time.Duration(0)
	for {
		got, err := s.b.Queue("jobs").Receive(s.t.Context(), queue.ReceiveRequest{Max: 10, Wait: &now, Visibility: &now})
		if err != nil {
			s.t.Fatal(err)
		}
		if dead, err := s.b.Ledger("jobs-dead"); err != nil || len(got) == 0 && dead.Live >= int64(len(bodies)) {
			return ids
		}
	}
}

func (s *stage) live(name string) int {
	s.t.Helper()
	l, err := s.b.Ledger(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return int(l.Live)
}

func TestSendFromEverywhere(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	file := filepath.Join(s.dir, "body")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		input string
		args  []string
		want  string
	}{
		{"", []string{"send", "an argument"}, "an argument"},
		{"a pipe\n", []string{"send"}, "a pipe\n"},
		{"a dash", []string{"send", "-"}, "a dash"},
		{"", []string{"send", "--file", file}, "from a file\n"},
		{"a file dash", []string{"send", "-f", "-", "--attr", "kind=x", "--delay", "1"}, "a file dash"},
	} {
		out, talk, code := s.tendril(c.input, c.args...)
		if code != 0 {
			t.Errorf("%v: exit %d: %s", c.args, code, talk)
			continue
		}
		m, err := s.b.Message(t.Context(), "jobs", strings.TrimSpace(out))
		if err != nil || m.Body != c.want {
			t.Errorf("%v: sent %q, %v; want %q", c.args, m.Body, err, c.want)
		}
		if len(c.args) > 5 && (m.Attribute("kind") != "x" || m.State != broker.Delayed) {
			t.Errorf("%v: %+v", c.args, m)
		}
	}
}

func TestSendRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	for want, args := range map[string][]string{
		"use only one of them":       {"send", "x", "--file", "y"},
		"no such file":               {"send", "--file", filepath.Join(s.dir, "nothing")},
		"such as 30s, 15m or 72h":    {"send", "x", "--delay", "soon"},
		"whole seconds":              {"send", "x", "--delay", "1500ms"},
		"same deduplication ID":      {"send", "--ndjson", "--dedup", "d"},
		"MaximumNArgs|at most 1 arg": {"send", "x", "y"},
		"name:Number=3":              {"send", "x", "--attr", "n"},
		"invalid queue":              {"send", "x", "--queue", "no queue"},
		"auto, embedded or sqs":      {"send", "x", "--backend", "kafka"},
		"table, json, yaml or name":  {"send", "x", "-o", "toml"},
		"would never return":         {"send", "x", "--wait", "--queue", "jobs-dead"},
	} {
		out, talk, code := s.tendril("", args...)
		if code != base.ExitUsage || out != "" || !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool {
			return strings.Contains(talk, w)
		}) {
			t.Errorf("%v: exit %d, said %q; want a usage error with %q", args, code, talk, want)
		}
	}
	if _, talk, code := s.tendril("", "send", "x", "-q", "nothing"); code != base.ExitNotFound ||
		!strings.Contains(talk, `"nothing"`) || !strings.Contains(talk, "queues list") {
		t.Errorf("no such queue: exit %d, %s", code, talk)
	}
	if _, talk, code := s.tendril("", "send", ""); code == 0 || !strings.Contains(talk, "tendril: ") {
		t.Errorf("an empty body: exit %d, %s", code, talk)
	}
	if s.live("jobs") != 0 {
		t.Errorf("%d messages were sent", s.live("jobs"))
	}
}

func TestSendMany(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	var lines strings.Builder
	for i := range 25 {
		fmt.Fprintf(&lines, "{\"n\":%d}\n", i)
	}
	out, talk, code := s.tendril(lines.String(), "send", "--ndjson", "--attr", "kind=x")
	if code != 0 || strings.Count(out, "\n") != 25 || s.live("jobs") != 25 {
		t.Fatalf("exit %d, %d ids, %d in the queue: %s", code, strings.Count(out, "\n"), s.live("jobs"), talk)
	}
	last := strings.Fields(out)[24]
	if m, err := s.b.Message(t.Context(), "jobs", last); err != nil || m.Body != `{"n":24}` || m.Attribute("kind") != "x" {
		t.Errorf("the last message: %+v, %v", m, err)
	}
	out, talk, code = s.tendril("1\n{\"body\":\"\"}\n3\n", "send", "--ndjson")
	if code != base.ExitFailed || strings.Count(out, "\n") != 2 || !strings.Contains(talk, "line 2:") ||
		!strings.Contains(talk, "1 of 3 messages rejected") {
		t.Errorf("a refused line: exit %d\n%s%s", code, out, talk)
	}
	out, talk, code = s.tendril("1\n2\nnonsense\n", "send", "--ndjson", "-o", "json")
	if code != base.ExitUsage || strings.Count(out, "message_id") != 2 ||
		!strings.Contains(talk, "2 messages sent before this") || !strings.Contains(talk, "line 3") {
		t.Errorf("a line that is not JSON: exit %d\n%s%s", code, out, talk)
	}
}

func TestSendWaits(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	done := make(chan struct{})
	go func() { // an app that succeeds once and fails once
		defer close(done)
		for i := range 2 {
			wait := 10 * time.Second
			got, err := s.b.Queue("jobs").Receive(context.Background(), queue.ReceiveRequest{Max: 1, Wait: &wait})
			if err != nil || len(got) != 1 {
				t.Error(got, err)
				return
			}
			s.ds.Record(api.Delivery{MessageID: got[0].ID, Queue: "jobs", Outcome: []string{"done", "failed"}[i],
				Status: 200 + 300*i, Reason: []string{"", "HTTP 500"}[i]})
		}
	}()
	out, talk, code := s.tendril("", "send", "good", "--wait")
	if code != 0 || !strings.Contains(out, " done: HTTP 200") || strings.Count(out, "\n") != 1 {
		t.Errorf("exit %d\n%s%s", code, out, talk)
	}
	out, talk, code = s.tendril("", "send", "bad", "--wait", "-o", "json")
	if code != base.ExitFailed || !strings.Contains(out, `"outcome":"failed"`) ||
		!strings.Contains(talk, "hint: failed messages are retried") {
		t.Errorf("exit %d\n%s%s", code, out, talk)
	}
	<-done
	if out, talk, code = s.tendril("", "send", "never", "--wait", "--timeout", "1ms"); code != base.ExitFailed ||
		!strings.Contains(out, "unknown: no attempt within 1ms") {
		t.Errorf("exit %d\n%s%s", code, out, talk)
	}
}

func TestPeekShowsAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	if _, talk, code := s.tendril("", "peek"); code != 0 || !strings.Contains(talk, "no messages") {
		t.Errorf("an empty queue: exit %d, %s", code, talk)
	}
	s.must("send", "--attr", "raw:Binary=AAE=", "--attr", "n:Number=3", "apple \u009b31m")
	s.must("send", strings.Repeat("x", 100))
	s.must("send", "--delay", "15m", "apple pie")
	out := s.must("peek")
	if strings.Count(out, "\n") != 4 || strings.Contains(out, "\u009b") || !strings.Contains(out, "… (100 B)") ||
		!strings.Contains(out, "delayed") {
		t.Errorf("peek:\n%s", out)
	}
	out = s.must("peek", "--full", "-n", "1")
	for _, want := range []string{`apple \u009b31m`, "attribute raw", "2 bytes (Binary)", "3 (Number)", "receives",
		"waiting"} {
		if !strings.Contains(out, want) {
			t.Errorf("peek --full lacks %q:\n%s", want, out)
		}
	}
	var got []api.Message
	if err := json.Unmarshal([]byte(s.must("peek", "jobs", "-o", "json", "--match", "apple", "--state", "delayed")),
		&got); err != nil || len(got) != 1 || got[0].Body != "apple pie" || got[0].ReceiveCount != 0 {
		t.Errorf("peek -o json: %+v, %v", got, err)
	}
	if _, talk, code := s.tendril("", "peek", "--state", "dead"); code != base.ExitUsage ||
		!strings.Contains(talk, "visible (waiting)") {
		t.Errorf("an unknown state: exit %d, %s", code, talk)
	}
	if _, talk, code := s.tendril("", "peek", "-n", "0"); code != base.ExitUsage || !strings.Contains(talk, "out of range") {
		t.Errorf("-n 0: exit %d, %s", code, talk)
	}
}

func TestPauseWaitsForTheOtherInstances(t *testing.T) {
	t.Parallel()
	var this []bool
	asked := 0
	s := newStage(t, func(o *console.Options, _ *api.Instance) {
		o.Receiving.Pause = func(_ context.Context, _ string, why api.Reason, _ string) (api.Paused, error) {
			if this = append(this, why.This); why.This {
				return api.Paused{Paused: true}, nil
			}
			return api.Paused{Paused: true, Revision: 7}, nil
		}
		o.Views.Instances = func() api.Instances {
			asked++
			second := int64(6)
			if asked > 1 {
				second = 7
			}
			return api.Instances{Revision: 7, Instances: []api.KnownInstance{{Name: "a", This: true, Source: "process", Revision: 7},
				{Name: "b", Source: "registry", Revision: second}, {Name: "c", Source: "registry", Unreachable: true, Revision: 2},
				{Name: "i-1", Source: "asg:workers"}}}
		}
	})
	_, talk, code := s.tendril("", "queues", "pause")
	if code != 0 || asked != 2 || !strings.Contains(talk, "applied by 2 instances\n") ||
		!strings.Contains(talk, "c is unreachable: it applies this once it reaches the registry\n") {
		t.Errorf("exit %d after %d questions: %s", code, asked, talk)
	}
	if _, talk, code := s.tendril("", "queues", "pause", "--this"); code != 0 || strings.Contains(talk, "applied") || asked != 2 {
		t.Errorf("--this: exit %d after %d questions: %s", code, asked, talk)
	}
	if !slices.Equal(this, []bool{false, true}) {
		t.Errorf("this was %v", this)
	}
	if out := s.must("instances"); !strings.Contains(out, "behind: applied revision 2 of 7") {
		t.Errorf("instances printed %s", out)
	}
}

func TestQueuesVerbs(t *testing.T) {
	t.Parallel()
	paused := ""
	s := newStage(t, func(o *console.Options, _ *api.Instance) {
		o.Receiving.Pause = func(_ context.Context, name string, why api.Reason, _ string) (api.Paused, error) {
			paused = name + " " + why.Reason
			return api.Paused{}, nil
		}
		o.Receiving.Resume = func(context.Context, string, bool) (api.Paused, error) { paused = ""; return api.Paused{}, nil }
	})
	if out := s.must("queues", "create", "mails", "--fifo", "--dead-letter", "mails-dead", "--max-receives", "3", "-a",
		"VisibilityTimeout=7"); out != "mails.fifo\n" {
		t.Errorf("create printed %q", out)
	}
	s.must("queues", "create", "mails.fifo", "--dead-letter", "mails-dead.fifo", "--max-receives", "3", "-a",
		"VisibilityTimeout=7")
	if out := s.must("queues", "list", "--prefix", "mails"); !strings.Contains(out, "mails.fifo") ||
		!strings.Contains(out, "mails-dead.fifo") || strings.Contains(out, "jobs") {
		t.Errorf("list:\n%s", out)
	}
	out := s.must("queues", "show", "mails.fifo")
	for _, want := range []string{"mails-dead.fifo after 3 receives", "VisibilityTimeout",
		"sent 0 + moved in 0 = done 0"} {
		if !strings.Contains(out, want) {
			t.Errorf("show lacks %q:\n%s", want, out)
		}
	}
	var q api.Queue
	if err := json.Unmarshal([]byte(s.must("queues", "show", "-o", "json")), &q); err != nil || q.Name != "jobs" ||
		q.MaxReceives != 1 {
		t.Errorf("show -o json: %+v, %v", q, err)
	}
	if s.must("queues", "pause", "--reason", "deploy"); paused != "jobs deploy" {
		t.Errorf("paused %q", paused)
	}
	if s.must("queues", "resume", "jobs"); paused != "" {
		t.Errorf("still paused: %q", paused)
	}
	s.must("send", "x")
	if _, talk, code := s.tendril("", "queues", "purge", "jobs"); code != base.ExitUsage ||
		!strings.Contains(talk, "--yes") || s.live("jobs") != 1 {
		t.Errorf("purge without a word: exit %d, %s", code, talk)
	}
	if s.must("queues", "purge", "jobs", "--yes"); s.live("jobs") != 0 {
		t.Error("not purged")
	}
	for want, args := range map[string][]string{
		"no = between":      {"queues", "create", "x", "-a", "y"},
		"1 to 1000":         {"queues", "create", "x", "--dead-letter", "y", "--max-receives", "0"},
		"has no effect":     {"queues", "create", "x", "--no-dead-letter-queue", "--max-receives", "3"},
		"unknown command":   {"queues", "destroy"},
		"no queue given":    {"queues", "purge"},
		"unknown flag":      {"queues", "list", "--everything"},
		"invalid queue":     {"queues", "pause", "a b"},
		"Unknown Attribute": {"queues", "create", "x", "-a", "Nonsense=1"},
	} {
		if _, talk, code := s.tendril("", args...); code != base.ExitUsage || !strings.Contains(talk, want) {
			t.Errorf("%v: exit %d, %s; want a usage error with %q", args, code, talk, want)
		}
	}
	if _, talk, code := s.tendril("", "queues", "create", "jobs", "-a", "VisibilityTimeout=7"); code != base.ExitConflict {
		t.Errorf("a queue with another value: exit %d, %s", code, talk)
	}
}

func TestDeadVerbs(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	if _, talk, code := s.tendril("", "dead", "list"); code != 0 ||
		!strings.Contains(talk, "no dead letters in jobs-dead") {
		t.Errorf("no dead letters: exit %d, %s", code, talk)
	}
	ids := s.deadLetter("apple", "banana", "cherry", "apple pie", "plum")
	s.b.RecordAttempt("jobs", ids[1], broker.Attempt{At: time.Now(), Outcome: "failed", Status: 422, Reason: "HTTP 422"})
	for _, args := range [][]string{{"dead", "list"}, {"dead", "ls", "-q", "jobs-dead"}} {
		if out := s.must(args...); strings.Count(out, "\n") != 6 || !strings.Contains(out, "HTTP 422") ||
			!strings.Contains(out, " jobs ") {
			t.Errorf("%v:\n%s", args, out)
		}
	}
	if out := s.must("dead", "show", ids[1]); !strings.Contains(out, "banana") ||
		!strings.Contains(out, "dead-lettered from") {
		t.Errorf("show:\n%s", out)
	}
	if _, talk, code := s.tendril("", "dead", "show", "nothing"); code != base.ExitNotFound ||
		!strings.Contains(talk, "has no message nothing") {
		t.Errorf("show nothing: exit %d, %s", code, talk)
	}
	if _, talk, code := s.tendril("", "dead", "redrive", ids[0], "nothing"); code != base.ExitNotFound ||
		!strings.Contains(talk, "1 message moved") || s.live("jobs") != 1 {
		t.Errorf("redrive one: exit %d, %s", code, talk)
	}
	if s.must("dead", "redrive", "--match", "apple", "--rate", "1000/s"); s.live("jobs") != 2 || s.live("jobs-dead") != 3 {
		t.Errorf("redrive a match: %d and %d", s.live("jobs"), s.live("jobs-dead"))
	}
	if s.must("dead", "delete", ids[1]); s.live("jobs-dead") != 2 {
		t.Errorf("delete one: %d left", s.live("jobs-dead"))
	}
	if _, talk, code := s.tendril("", "dead", "delete", "--all"); code != base.ExitUsage || s.live("jobs-dead") != 2 {
		t.Errorf("delete all without a word: exit %d, %s", code, talk)
	}
	s.must("queues", "create", "elsewhere", "--no-dead-letter-queue")
	if s.must("dead", "redrive", "--limit", "1", "--to", "elsewhere") != "" ||
		s.live("elsewhere") != 1 {
		t.Errorf("redrive elsewhere: %d", s.live("elsewhere"))
	}
	if s.must("dead", "delete", "--all", "--yes"); s.live("jobs-dead") != 0 {
		t.Errorf("delete all: %d left", s.live("jobs-dead"))
	}
	for want, args := range map[string][]string{
		"no messages selected": {"dead", "redrive"},
		"use only one of them": {"dead", "delete", "--all", "m1"},
		"invalid --rate":       {"dead", "redrive", "--all", "--rate", "soon"},
		"out of range":         {"dead", "list", "-n", "-1"},
	} {
		if _, talk, code := s.tendril("", args...); code != base.ExitUsage || !strings.Contains(talk, want) {
			t.Errorf("%v: exit %d, %s; want a usage error with %q", args, code, talk, want)
		}
	}
	if _, talk, code := s.tendril("", "dead", "list", "-q", "elsewhere"); code != base.ExitNotFound ||
		!strings.Contains(talk, "has no dead-letter queue") {
		t.Errorf("a queue without one: exit %d, %s", code, talk)
	}
}

func TestExportAndSendAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	s.deadLetter("apple", "banana")
	path := filepath.Join(s.dir, "dead.ndjson")
	s.must("dead", "export", "--file", path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("exported: %v, %v", info.Mode(), err)
	}
	if s.live("jobs-dead") != 2 {
		t.Error("export removed something")
	}
	if _, talk, code := s.tendril("", "dead", "export", "--file", path); code != base.ExitConflict ||
		talk != "tendril: "+path+" exists\nhint: name a new file, or use standard output\n" {
		t.Errorf("a file that exists: exit %d, %s", code, talk)
	}
	s.must("send", "--ndjson", "--file", path)
	if s.live("jobs") != 2 {
		t.Errorf("%d were sent again", s.live("jobs"))
	}
	if out := s.must("dead", "export", "--match", "banana"); strings.Count(out, "\n") != 1 ||
		!strings.Contains(out, `"body":"banana"`) {
		t.Errorf("export a match:\n%s", out)
	}
	if _, talk, code := s.tendril("", "dead", "export", "--file", filepath.Join(path, "x")); code != base.ExitUsage ||
		!strings.Contains(talk, "--file") {
		t.Errorf("a file that cannot be: exit %d, %s", code, talk)
	}
}

func TestExportThatFailsLeavesNoFile(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	ids := s.deadLetter("apple", "banana")
	path := filepath.Join(s.dir, "dead.ndjson")
	_, talk, code := s.tendril("", "dead", "export", "--file", path, ids[0], "nothing")
	if code != base.ExitNotFound || !strings.HasPrefix(talk, "tendril: queue jobs-dead has no message nothing\n") {
		t.Errorf("exit %d, %s", code, talk)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the incomplete file is left: %v", err)
	}
	s.must("dead", "export", "--file", path, ids[0])
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("exported %s, %v", text, err)
	}
}

func TestStatusVerb(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(o *console.Options, _ *api.Instance) {
		o.Status = func() api.Status {
			return api.Status{State: api.StateRunning, StartedAt: time.Now(),
				Workers: []api.Worker{{Queue: "jobs", Concurrency: 50, GateReasons: []string{"app not ready"},
					LastError: "throttled", PerSecond: 2}},
				App: []api.Process{{Name: "web", State: "running", PID: 7, Restarts: 2, LastExit: "status 1"}}}
		}
		o.Probes.Ready = func() []health.Check { return []health.Check{{Name: "app", Detail: "connection refused"}} }
	})
	s.must("send", "x")
	s.ds.Record(api.Delivery{MessageID: "m1", Queue: "jobs", Outcome: "failed", Status: 500, Reason: "HTTP 500", At: time.Now()})
	out := s.must("status")
	for _, want := range []string{"photos: running, NOT READY", "not ready: app: connection refused",
		"ledger: sent 1 = done 0 + dead-lettered 0 + expired 0 + purged 0 + live 1",
		"NOT receiving from jobs: app not ready", "last error: throttled", "2.0/s", "web      running  no     7",
		"HTTP 500"} {
		if !strings.Contains(out, want) {
			t.Errorf("status lacks %q:\n%s", want, out)
		}
	}
	var st api.Status
	if err := json.Unmarshal([]byte(s.must("status", "-o", "json")), &st); err != nil || st.Ledger.Off() != 0 ||
		len(st.Queues) != 2 {
		t.Errorf("status -o json: %+v, %v", st, err)
	}
}

func TestDrainVerb(t *testing.T) {
	t.Parallel()
	drain := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	for _, c := range []struct {
		name  string
		drain func(context.Context) error
		args  []string
		code  int
		want  string
	}{
		{"asked for", drain(nil), []string{"drain", "--wait", "0s"}, 0, "is draining"},
		{"drained, and the process lives on", drain(nil), []string{"drain", "--wait", "1ms"}, base.ExitLate,
			"has not stopped within 1ms"},
		{"still going", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, []string{"drain", "--wait", "1ms"}, base.ExitLate, "the drain continues"},
		{"work was cut off", drain(errors.New("2 deliveries were aborted")), []string{"drain"}, base.ExitFailed,
			"2 deliveries were aborted"},
		{"a bad wait", drain(nil), []string{"drain", "--wait", "-1s"}, base.ExitUsage, "out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, func(o *console.Options, _ *api.Instance) { o.Drain = c.drain })
			if out, talk, code := s.tendril("", c.args...); code != c.code || out != "" || !strings.Contains(talk, c.want) {
				t.Errorf("exit %d, %s%s; want %d with %q", code, out, talk, c.code, c.want)
			}
		})
	}
}

func TestVerbsSayWhenNothingRuns(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, dir: t.TempDir()}
	for _, args := range [][]string{
		{"send", "x"}, {"peek"}, {"queues", "list"}, {"queues", "show"}, {"queues", "create", "x"},
		{"queues", "purge", "x"}, {"queues", "pause"}, {"queues", "resume"},
		{"dead", "list"}, {"dead", "show", "m1"}, {"dead", "redrive", "--all"}, {"dead", "delete", "m1"},
		{"dead", "export"}, {"status"}, {"drain"},
	} {
		_, talk, code := s.tendril("", args...)
		want := "tendril: no environment is running on " + s.dir +
			"\nhint: start one with 'tendril up' or use another --data-dir\n"
		if code != base.ExitNotFound || talk != want {
			t.Errorf("%v: exit %d, said %q", args, code, talk)
		}
	}
}

func TestVerbsOfOtherEnvironments(t *testing.T) {
	t.Parallel()
	off := newStage(t, nil)
	i := &api.Instance{PID: os.Getpid(), Environment: "photos", Endpoint: "http://127.0.0.1:1"}
	if err := i.Write(off.dir); err != nil {
		t.Fatal(err)
	}
	if _, talk, code := off.tendril("", "peek"); code != base.ExitUnreachable || !strings.Contains(talk, "console off") ||
		!strings.Contains(talk, "hint: start it with --console") {
		t.Errorf("console off: exit %d, %s", code, talk)
	}
	serve := newStage(t, func(o *console.Options, i *api.Instance) { i.Queues, o.Deliveries = nil, nil })
	if _, talk, code := serve.tendril("", "peek"); code != base.ExitUsage || !strings.Contains(talk, "queues list") {
		t.Errorf("no queue of its own: exit %d, %s", code, talk)
	}
	if _, talk, code := serve.tendril("", "queues", "pause"); code != base.ExitConflict ||
		!strings.Contains(talk, "no worker") {
		t.Errorf("no worker: exit %d, %s", code, talk)
	}
	serve.must("send", "x", "-q", "http://127.0.0.1:1/000000000000/jobs")
	if serve.live("jobs") != 1 {
		t.Error("a queue was not found by its own URL")
	}
	sqs := newStage(t, func(o *console.Options, i *api.Instance) {
		i.Endpoint, o.Broker = "", nil
		const url = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"
		i.Queues = []api.InstanceQueue{{Name: "jobs", URL: url}}
		o.Status = func() api.Status { return api.Status{Queues: []api.Queue{{Name: "jobs", URL: url}}} }
	})
	if out, talk, code := sqs.tendril("", "queues", "list"); code != base.ExitOK || !strings.Contains(out, "\njobs ") {
		t.Errorf("list: exit %d, %s%s", code, out, talk)
	}
	if _, talk, code := sqs.tendril("", "peek", "other"); code != base.ExitNotFound || !strings.Contains(talk, "URL or ARN") {
		t.Errorf("another queue: exit %d, %s", code, talk)
	}
}
