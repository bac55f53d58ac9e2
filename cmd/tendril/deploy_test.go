package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/deploy"
	"tendril/internal/console"
	"tendril/internal/observe/health"
)

type rehearsal struct {
	states []api.Deployment
	paths  chan string
	begun  chan struct{}
	over   chan struct{}
	looked int
}

func (r *rehearsal) deploy(ctx context.Context, path string) (api.DeployResult, error) {
	r.paths <- path
	close(r.begun)
	select {
	case <-r.over:
	case <-ctx.Done():
		return api.DeployResult{}, ctx.Err()
	}
	return api.DeployResult{From: "version 1", To: "version 2", DurationMS: 3200}, nil
}

func (r *rehearsal) status() api.Status {
	st := api.Status{Deployment: &api.Deployment{State: api.DeployDone, To: "version 1",
		Since: time.Unix(1, 0)}}
	select {
	case <-r.begun:
	default:
		return st
	}
	d := r.states[min(r.looked, len(r.states)-1)]
	d.From, d.To, d.Since = "version 1", "version 2", time.Unix(2, 0)
	if r.looked++; r.looked == len(r.states) {
		close(r.over)
	}
	st.Deployment = &d
	return st
}

func TestDeployReportsProgress(t *testing.T) {
	t.Parallel()
	r := &rehearsal{paths: make(chan string, 1), begun: make(chan struct{}), over: make(chan struct{}),
		states: []api.Deployment{
			{State: api.DeployPreparing}, {State: api.DeployPreparing, Step: "build: make\x1b"},
			{State: api.DeployPreparing, Step: "build: make\x1b"},
			{State: api.DeployStarting}, {State: api.DeployFinishing, Step: "10.sh"},
			{State: api.DeployDone},
		}}
	s := newStage(t, func(o *console.Options, _ *api.Instance) { o.Deploy, o.Status = r.deploy, r.status })
	app := writeFiles(t, filepath.Join(t.TempDir(), "letters"),
		map[string]string{"Procfile": "web: sh -c true\n", ".ebextensions/a.config": "packages: {yum: {git: []}}\n"})
	out, talk, code := s.tendril("", "deploy", app)
	want := "warning: " + app +
		"/.ebextensions/a.config:1: packages are not installed: install them on this machine, or in a script in " +
		".platform/hooks/prebuild; or add --machine-sections=apply (packages: yum)\n" +
		"preparing version 2\n" +
		"preparing version 2: build: make\\x1b\n" +
		"starting version 2 beside version 1\n" +
		"version 2 has the messages; version 1 is finishing its work; 10.sh\n" +
		"environment \"photos\" now runs version 2 (took 3.2s)\n"
	if code != 0 || out != "" || talk != want {
		t.Errorf("exit %d, %q\n%s\nwant\n%s", code, out, talk, want)
	}
	if path := <-r.paths; path != app {
		t.Errorf("asked to deploy %s, want %s", path, app)
	}
}

func TestDeployNamesWhatIsMeant(t *testing.T) {
	t.Parallel()
	var paths []string
	s := newStage(t, func(o *console.Options, _ *api.Instance) {
		o.Deploy = func(_ context.Context, path string) (api.DeployResult, error) {
			paths = append(paths, path)
			return api.DeployResult{To: "version 2"}, nil
		}
	})
	archive := writeArchive(t, "letters.zip", map[string]string{"Procfile": "web: ./app\n"})
	s.must("deploy")
	s.must("deploy", archive)
	out := s.must("deploy", "testdata/../testdata", "-o", "json")
	var done api.DeployResult
	if err := json.Unmarshal([]byte(out), &done); err != nil || done.To != "version 2" {
		t.Errorf("printed %q: %v", out, err)
	}
	here, err := filepath.Abs("testdata")
	if want := []string{"", archive, here}; err != nil || !slices.Equal(paths, want) {
		t.Errorf("asked to deploy %q, want %q", paths, want)
	}
}

func TestDeploymentsThatFailSayWhy(t *testing.T) {
	t.Parallel()
	var answer error
	asked := 0
	s := newStage(t, func(o *console.Options, _ *api.Instance) {
		o.Deploy = func(context.Context, string) (api.DeployResult, error) {
			asked++
			return api.DeployResult{}, answer
		}
	})
	for _, c := range []struct {
		answer error
		code   int
		says   []string
	}{
		{&api.DeployError{Step: "10.sh", Output: []string{"migrating", "no \x1b[1mtable"},
			Err: errors.New("rolled back: exit status 1")}, base.ExitFailed,
			[]string{"last output of 10.sh:\n  | migrating\n  | no \\x1b[1mtable\n", "tendril: rolled back: exit status 1\n",
				"hint: the previous version is still serving"}},
		{&api.DeployError{Switched: true, Err: errors.New("a hook failed")}, base.ExitFailed,
			[]string{"tendril: a hook failed\n", "hint: the new version is serving"}},
		{errors.New("another deployment is under way"), base.ExitConflict,
			[]string{"tendril: another deployment is under way\n", "'tendril status'"}},
		{&api.Error{Status: 400, Message: "the bundle is wrong",
			Details: []api.Detail{{Text: "Procfile:1: no colon", Hint: "write one"}}}, base.ExitUsage,
			[]string{"tendril: Procfile:1: no colon\nhint: write one\ntendril: the bundle is wrong\n"}},
	} {
		answer = c.answer
		out, talk, code := s.tendril("", "deploy")
		if code != c.code || out != "" {
			t.Errorf("%v: exit %d, %q; want %d", c.answer, code, out, c.code)
		}
		for _, want := range c.says {
			if !strings.Contains(talk, want) {
				t.Errorf("%v: said\n%s\nwant %q", c.answer, talk, want)
			}
		}
	}
	asked = 0
	bad := writeArchive(t, "bad.zip", map[string]string{"Procfile": "web ./app\n"})
	for path, says := range map[string]string{bad: bad + "/Procfile:1:",
		filepath.Join(s.dir, "nothing"): "nothing not found"} {
		if _, talk, code := s.tendril("", "deploy", path); code != base.ExitUsage || !strings.Contains(talk, says) || asked != 0 {
			t.Errorf("%s: exit %d, asked %d times: %s", path, code, asked, talk)
		}
	}
	if _, talk, code := s.tendril("", "deploy", "--data-dir", t.TempDir()); code != base.ExitNotFound ||
		!strings.Contains(talk, "no environment is running on") {
		t.Errorf("nothing runs: exit %d, %s", code, talk)
	}
	if _, talk, code := newStage(t, nil).tendril("", "deploy"); code != base.ExitConflict ||
		!strings.Contains(talk, "no app runs here") {
		t.Errorf("no app: exit %d, %s", code, talk)
	}
}

func TestAnInterruptedDeployGoesOn(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	s := newStage(t, func(o *console.Options, _ *api.Instance) {
		o.Deploy = func(ctx context.Context, _ string) (api.DeployResult, error) {
			interrupt()
			<-ctx.Done()
			return api.DeployResult{}, ctx.Err()
		}
	})
	var talk bytes.Buffer
	c := &base.CLI{Out: &talk, Err: &talk, Environ: []string{"TENDRIL_DATA_DIR=" + s.dir}}
	cmd := deploy.NewDeploy(c)
	cmd.SetArgs([]string{})
	cmd.SetErr(&talk)
	cmd.SetOut(&talk)
	err := cmd.ExecuteContext(ctx)
	if base.ExitCode(err) != 130 || !strings.Contains(err.Error(), "the deployment continues") {
		t.Errorf("exit %d: %v", base.ExitCode(err), err)
	}
}

func TestHealthExitsAsACheckDoes(t *testing.T) {
	t.Parallel()
	var report health.Report
	s := newStage(t, func(o *console.Options, _ *api.Instance) { o.Views.Health = func() health.Report { return report } })
	for status, want := range map[health.Status]int{
		health.Ok: 0, health.Info: 0, health.Warning: 1, health.Degraded: 2, health.Severe: 2, health.Pending: 3,
		health.NoData: 3,
	} {
		report = health.Report{Status: status, Color: status.Color(), Causes: []string{"a cause\x1b"},
			Since: time.Now().Add(-90 * time.Minute)}
		out, talk, code := s.tendril("", "health")
		if line := string(status) + " (" + string(status.Color()) + ") for 1h\n        " + string(status) + ": a cause\\x1b\n"; code != want ||
			out != line {
			t.Errorf("%s: exit %d, %q; want %d, %q", status, code, out, want, line)
		}
		if (talk == "") != (want == 0) {
			t.Errorf("%s: said %q", status, talk)
		}
		var got health.Report
		out, _, code = s.tendril("", "health", "-o", "json")
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Status != status || code != want {
			t.Errorf("%s: exit %d, printed %s: %v", status, code, out, err)
		}
	}
	environment := health.EnvironmentOf([]health.InstanceHealth{{Name: "a", Status: health.Ok},
		{Name: "b\x1b", Status: health.Severe, Causes: []health.Cause{{Status: health.Severe, Text: "b is down."}}}})
	report = health.Report{Status: health.Ok, Color: health.Green, Environment: &environment}
	const both = "environment: Degraded (Red): 1 of 2 instances Severe, 1 Ok\n        Severe: b is down. [b\\x1b]\nthis instance: Ok (Green)\n"
	for _, args := range [][]string{{"health"}, {"health", "--fleet"}} {
		out, _, code := s.tendril("", args...)
		if want := 2 * (len(args) - 1); code != want || out != both {
			t.Errorf("%v: exit %d, %q; want %d, %q", args, code, out, want, both)
		}
	}
	alone := health.EnvironmentOf([]health.InstanceHealth{{Name: "a", Status: health.Ok}})
	report.Environment = &alone
	if out, _, code := s.tendril("", "health", "--fleet"); code != 0 || out != "Ok (Green)\n" {
		t.Errorf("the only instance: exit %d, %q", code, out)
	}
	if _, _, code := s.tendril("", "health", "--data-dir", t.TempDir()); code != base.ExitNotFound {
		t.Errorf("nothing runs: exit %d", code)
	}
	if _, talk, code := newStage(t, nil).tendril("", "health"); code != base.ExitConflict || !strings.Contains(talk, "readyz") {
		t.Errorf("nobody judges: exit %d, %s", code, talk)
	}
}

func TestStatusShowsEverythingThatHappens(t *testing.T) {
	t.Parallel()
	ago := time.Now().Add(-2*time.Hour - time.Minute)
	st := api.Status{
		Deployment: &api.Deployment{
			State: api.DeployRolledBack, To: "version 3", Ended: ago, Error: "exit status 1",
		},
		PoisonMessages: &api.PoisonMessages{Quarantined: 4, Poison: 1},
		Workers: []api.Worker{
			{Queue: "jobs", Receiving: true, Concurrency: 50, WorkerCounts: api.WorkerCounts{Throttled: 3},
				TurnShare: 0.75, LongestWaitSeconds: 2, Progress: api.Progress{Why: "rate limited to 10/s", DrainSeconds: 245,
					LongestDeliverySeconds: 61}},
			{Queue: "mail", Receiving: true, Concurrency: 50, TurnShare: 1},
		},
		Limits: []api.Limit{{Target: "http://localhost:8080", Rate: 10, InWork: 3, Concurrency: 5, Breaker: "open",
			TrialAt: time.Now().Add(30*time.Hour + 30*time.Minute), Failing: 0.5, Refused: 9}, {Target: "f"}},
	}
	s := newStage(t, func(o *console.Options, _ *api.Instance) {
		o.Status = func() api.Status { return st }
		o.Views.Health = func() health.Report {
			return health.Report{Status: health.Warning, Color: health.Yellow, Since: ago, Causes: []string{"work waits"}}
		}
	})
	out := s.must("status")
	for _, want := range []string{
		"\nhealth: Warning (Yellow) for 2h\n        Warning: work waits\n",
		"\ndeployment: version 3 was rolled back 2h ago: exit status 1\n",
		"\nsuspected poison messages: 4 in quarantine, 1 confirmed\n",
		"expired 0, throttled 3\n" +
			"        rate limited to 10/s, drains in 4m, longest delivery 1m, 75% of the deliveries in the last minute, " +
			"waited up to 2s in the last minute\n",
		"\nlimit: http://localhost:8080\n" +
			"        3 of 5 in flight, at most 10/s, breaker open, next trial in 30h, 50% failing, held back 9 times\n",
		"\nlimit: f\n        0 in flight\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "of the deliveries"); n != 1 {
		t.Errorf("the share of the only queue is told: %d", n)
	}
	st = api.Status{PoisonMessages: &api.PoisonMessages{Broken: true},
		Deployment: &api.Deployment{State: api.DeployStarting, To: "version 2", Since: ago}}
	out = s.must("status")
	for _, want := range []string{"\nevery message crashes the app",
		"\ndeployment: starting version 2 beside the previous version, for 2h\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
