package health

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type sources struct {
	queues                   []QueueState
	app                      AppState
	runs                     bool
	leader                   LeaderState
	dataDir                  DataDirState
	started, ready, draining chan struct{}
	log                      bytes.Buffer
}

func newSources() *sources {
	return &sources{
		queues: []QueueState{{Name: "jobs", Known: true, Receiving: true, Retention: time.Hour}},
		leader: LeaderState{Known: true}, started: make(chan struct{}), ready: make(chan struct{}),
		draining: make(chan struct{}),
	}
}

func (w *sources) monitor() *Monitor {
	return NewMonitor(Options{
		Began: time.Now(), Started: w.started, AppReady: w.ready, Draining: w.draining,
		Queues: func(time.Time) []QueueState { return w.queues },
		App:    func() (AppState, bool) { return w.app, w.runs },
		Leader: func() LeaderState { return w.leader }, Tasks: func() []TaskState { return nil },
		DataDir: func() DataDirState { return w.dataDir },
		Scaling: func() string { return "" },
		Log:     slog.New(slog.NewTextHandler(&w.log, nil)),
	})
}

func TestReportIsPendingDuringTheStartAndNoDataWhenTheRoundsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newSources().monitor()
		if r := m.Report(); r.Status != Pending {
			t.Errorf("before the first round: %v", r)
		}
		m.evaluate(time.Now(), true)
		begun := time.Now()
		if r := m.Report(); r.Status != Pending || !m.Live()[0].OK {
			t.Errorf("right after one: %v", r)
		}
		time.Sleep(maxSilence)
		if r := m.Report(); r.Status == NoData {
			t.Errorf("a minute after one: %v", r)
		}
		time.Sleep(time.Minute)
		if r := m.Report(); r.Status != NoData || !r.Since.Equal(begun) || r.Color == Green || m.Live()[0].OK ||
			r.Causes[0] != "No data. Last seen 2 minutes ago." {
			t.Errorf("long after one: %v", r)
		}
	})
}

func TestAppThatStaysUnreadyIsSevereAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSources()
		m := w.monitor()
		close(w.started)
		run, stop := context.WithCancel(t.Context())
		defer stop()
		go m.Run(run)
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := m.Report(); r.Status != Ok {
			t.Errorf("at first: %v", r)
		}
		w.queues = []QueueState{{Name: "jobs", Known: true, Retention: time.Hour,
			NotReady: []Problem{{Since: time.Now(), Reason: "it exited"}}}}
		m.JudgeSoon()
		synctest.Wait()
		if r := m.Report(); r.Status != Warning {
			t.Errorf("for a moment: %v", r)
		}
		time.Sleep(notReadyGrace)
		synctest.Wait()
		if got := w.log.String(); !strings.Contains(got, `level=ERROR msg="health changed" status=Severe was=Warning`) {
			t.Errorf("the log is %s", got)
		}
	})
}

func TestOnlyQueuesWithoutAReadyAppAreNamed(t *testing.T) {
	t.Parallel()
	app := appInputs{Ready: true}
	app.addNotReady(&QueueState{Name: "jobs"})
	app.addNotReady(&QueueState{Name: "mail", NotReady: []Problem{{Since: noon, Reason: "it exited"}}})
	if !slices.Equal(app.Queues, []string{"mail"}) || app.Ready || !app.Since.Equal(noon) || app.Reason != "it exited" {
		t.Errorf("the app is %+v", app)
	}
}

func TestSourcesAreCountedPerQueue(t *testing.T) {
	t.Parallel()
	w := newSources()
	w.runs = true
	w.app.Processes = []Process{{Name: "web", Restarts: 2}}
	w.leader = LeaderState{Tasks: 3, Off: true, Error: "no table"}
	w.queues = []QueueState{
		{Name: "jobs", Known: true, Paused: true, InWork: 2, DeliveryLimit: time.Minute, Retention: time.Hour,
			Backlog: 3, Oldest: time.Minute, Embedded: true, HasDeadLetters: true, DeadLetters: 1, DeadLettered: 1},
		{Name: "mail", Known: true, Paused: true, InWork: 1, DeliveryLimit: time.Hour, Retention: 2 * time.Minute,
			Backlog: 4, Oldest: 10 * time.Second, Taken: noon},
	}
	m := w.monitor()
	close(w.started)
	m.Expired("jobs", 5)
	m.Delivered("jobs", Server, time.Second, Failure{MessageID: "42", Reason: "HTTP 500"})
	m.allInputs(noon)
	w.queues[0].DeadLetters, w.queues[0].DeadLettered = 4, 4
	in := m.allInputs(noon.Add(time.Minute))
	jobs, mail := in.Queues[0], in.Queues[1]
	if jobs.DeadLetters != 4 || jobs.NewDeadLetters != 3 || jobs.Expired != 5 ||
		jobs.LastFailed[Server].MessageID != "42" || mail.NewDeadLetters != 0 || mail.Expired != 0 || mail.LastFailed != (lastFailures{}) {
		t.Errorf("queues: %+v", in.Queues)
	}
	if in.App.Processes[0].Restarts != 2 || in.Leader != w.leader || !in.NoLeader.Equal(m.opts.Began) || !in.App.Ready ||
		!in.App.WasReady {
		t.Errorf("the rest: %+v", in)
	}
}

func TestDeadLettersFromBeforeTheStartHaveNoStartTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSources()
		m := w.monitor()
		close(w.started)
		for _, c := range []struct {
			letters, total int64
			want           string
		}{
			{3, 0, "Info"},
			{4, 1, "Warning for 0 seconds"},
			{4, 1, "Info"},
			{0, 1, ""},
			{1, 1, "Info for 0 seconds"},
		} {
			w.queues = []QueueState{{Name: "jobs", Known: true, Receiving: true, Retention: time.Hour, Embedded: true,
				HasDeadLetters: true, DeadLetters: c.letters, DeadLettered: c.total}}
			r, _ := m.evaluate(time.Now(), true)
			head := ""
			if len(r.Details) > 0 {
				head = r.Details[0].Head(time.Now())
			}
			if head != c.want {
				t.Errorf("%d dead letters, %d of them later: %q, want %q", c.letters, c.total, head, c.want)
			}
			time.Sleep(increasePeriod)
		}
	})
}

func TestEnvironmentThatReceivesFromNoQueue(t *testing.T) {
	t.Parallel()
	w := newSources()
	w.queues = nil
	m := w.monitor()
	close(w.started)
	if in := m.allInputs(noon); len(in.Queues) > 0 {
		t.Errorf("queues %+v", in.Queues)
	}
	if got := m.Ready(); len(got) != 1 || got[0] != (Check{Name: "environment", OK: true}) {
		t.Errorf("ready: %+v", got)
	}
}

func TestChangesAreLoggedWithTheirCauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSources()
		m := w.monitor()
		m.evaluate(time.Now(), true)
		if got := w.log.String(); got != "" {
			t.Errorf("at the start: %s", got)
		}
		close(w.started)
		m.evaluate(time.Now(), true)
		if got := w.log.String(); !strings.Contains(got, "status=Ok was=Pending") || strings.Contains(got, "reason") {
			t.Errorf("when it is over: %s", got)
		}
		w.log.Reset()
		w.queues[0].DeadLetters, w.queues[0].HasDeadLetters, w.queues[0].DeadLetterQueue = 1, true, "jobs-dead"
		m.evaluate(time.Now(), true)
		w.queues[0].DeadLettered = 1
		m.evaluate(time.Now(), true)
		if got := w.log.String(); !strings.Contains(got, `status=Warning was=Info reason="1 message in jobs-dead, 1 of them in the last 5 minutes." hint="tendril dead reasons -q jobs"`) {
			t.Errorf("with a dead letter: %s", got)
		}
	})
}

func TestPollFailureLastsUntilAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newSources().monitor()
		m.PollAnswered("jobs")
		begun := time.Now()
		m.PollFailed("jobs", errors.New("no route"), false)
		time.Sleep(time.Minute)
		m.PollFailed("jobs", errors.New("denied"), true)
		m.PollAnswered("others")
		want := pollFailure{Problem{begun, "denied"}, true}
		if got := m.readinessInputs(time.Now(), m.opts.Queues(time.Now())).Queues[0].Poll; got != want {
			t.Errorf("it fails since %+v, want %+v", got, want)
		}
		m.PollAnswered("jobs")
		if got := m.readinessInputs(time.Now(), m.opts.Queues(time.Now())).Queues[0].Poll; got != (pollFailure{}) {
			t.Errorf("after an answer: %+v", got)
		}
	})
}

func TestOnlyRoundsCountAsChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSources()
		w.queues[0].Oldest = 6 * time.Minute
		m := w.monitor()
		run, stop := context.WithCancel(t.Context())
		defer stop()
		go m.Run(run)
		time.Sleep(4 * time.Second)
		close(w.started)
		synctest.Wait()
		close(w.ready)
		for second := 4; second < 20; second++ {
			m.JudgeSoon()
			synctest.Wait()
			if r := m.Report(); r.Status != Ok {
				t.Fatalf("after %d s: %v", second, r)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		if r := m.Report(); r.Status != Warning {
			t.Errorf("after three checks: %v", r)
		}
	})
}

func TestLostDataDirectoryIsReported(t *testing.T) {
	t.Parallel()
	const cause = "/data was removed or moved"
	embedded := []QueueState{{Name: "jobs", Known: true, Receiving: true, Embedded: true, Retention: time.Hour}}
	onSQS := []QueueState{{Name: "jobs", Known: true, Receiving: true, Retention: time.Hour}}
	tests := []struct {
		name    string
		queues  []QueueState
		dataDir DataDirState
		ready   bool
		status  Status
		text    string
	}{
		{"queues and a worker", embedded, DataDirState{cause, true}, false, Severe,
			"The embedded queues do not accept messages. /data was removed or moved."},
		{"queues alone", nil, DataDirState{cause, true}, false, Severe, ""},
		{"queues on Amazon SQS", onSQS, DataDirState{cause, false}, true, Warning, "The data directory is lost: pauses, " +
			"versions and events are not saved, and other commands cannot find this environment. /data was removed or moved."},
		{"not lost", embedded, DataDirState{"", true}, true, Ok, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newSources()
				w.queues, w.dataDir = test.queues, test.dataDir
				m := w.monitor()
				close(w.started)
				ready := true
				for _, check := range m.Ready() {
					ready = ready && check.OK
				}
				if ready != test.ready {
					t.Errorf("ready %v, want %v: %+v", ready, test.ready, m.Ready())
				}
				if r, _ := m.evaluate(time.Now(), true); r.Status != test.status && test.queues != nil ||
					test.text != "" && !slices.Contains(r.Causes, test.text) {
					t.Errorf("health %+v, want %s: %s", r, test.status, test.text)
				}
			})
		})
	}
}

func TestSharedQueueThatFailsLeavesTheInstanceReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSources()
		m := w.monitor()
		close(w.started)
		m.PollFailed("jobs", errors.New("no route"), false)
		time.Sleep(2 * time.Minute)
		got := m.Ready()
		if len(got) != 3 || got[1].Name != "app" || !got[2].OK || !strings.Contains(got[2].Detail, "it is shared") {
			t.Errorf("a shared one: %+v", got)
		}
		w.queues[0].DeletesRefused = Problem{Since: time.Now(), Reason: "deletes are refused"}
		got = m.Ready()
		if len(got) != 3 || got[2] != (Check{Name: "queue", Detail: "jobs: deletes are refused"}) {
			t.Errorf("deletes that are refused: %+v", got)
		}
		w.queues[0].DeletesRefused, w.queues[0].Embedded = Problem{}, true
		got = m.Ready()
		if len(got) != 4 || got[2] != (Check{Name: "store", Detail: "no route"}) || !got[3].OK {
			t.Errorf("its own: %+v", got)
		}
		m.PollAnswered("jobs")
		close(w.draining)
		got = m.Ready()
		if len(got) != 3 || got[0] != (Check{Name: "environment", Detail: "draining"}) || !got[2].OK {
			t.Errorf("during a drain: %+v", got)
		}
	})
}

func TestChangesAreLoggedByTheirSeverity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, now Status
		want        slog.Level
	}{
		{Pending, Ok, slog.LevelInfo}, {Ok, Info, slog.LevelDebug},
		{Info, Ok, slog.LevelDebug},
		{Ok, Warning, slog.LevelWarn}, {Warning, Degraded, slog.LevelWarn},
		{Degraded, Severe, slog.LevelError},
		{Severe, Ok, slog.LevelInfo}, {Ok, NoData, slog.LevelWarn},
		{Warning, Info, slog.LevelInfo},
	} {
		if got := changeLevel(tt.before, tt.now); got != tt.want {
			t.Errorf("%s to %s: %s, want %s", tt.before, tt.now, got, tt.want)
		}
	}
}
