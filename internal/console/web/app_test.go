package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/observe/event"
	"tendril/internal/observe/eventlog"
	"tendril/internal/observe/health"
)

func TestAppShowsProcessesAndTheirLines(t *testing.T) {
	s := newSite(t)
	wantText(t, s.get("/app"), "No app runs here: messages go to", "http://127.0.0.1:8080/", "tendril up DIR")
	s.status.App = []api.Process{
		{Name: "web", State: "running", PID: 4711, Ready: true, Since: time.Now().Add(-time.Hour), Memory: 3 << 20,
			CPUPercent: 12.4},
		{Name: "web-2", State: "running", PID: 4712, NotReady: hostile, Restarts: 3, LastExit: "killed by SIGSEGV"},
		{Name: "mailer", State: "waiting"},
	}
	for _, line := range []eventlog.Line{{Process: eventlog.Own, Text: "receiving started"},
		{Process: "web", Text: `\x1b]0;app\a\x1b[1;31mlistening\x1b[0m`},
		{Process: "web-2", Stream: "stderr", Text: hostile},
		{Process: "mailer", Text: "no letters"}} {
		line.At = time.Now()
		s.history.Lines.Add(line)
	}
	page := s.get("/app")
	wantText(t, page, "4711", "3.0 MiB", "12 %", "1 h 0 min", "not ready", "&lt;script&gt;", "killed by SIGSEGV",
		"restarting", "listening", "stderr", "no letters", `<span class="badge attention">3</span>`)
	if strings.Contains(page, "receiving started") || strings.Count(page, ">listening<") != 1 {
		t.Errorf("lines of tendril, or a line twice:\n%s", page)
	}
	page = s.get("/app?process=web")
	wantText(t, page, "listening", "&lt;script&gt;", `href="/logs?process=web"`)
	if strings.Contains(page, "no letters") {
		t.Errorf("lines of another process:\n%s", page)
	}
}

func TestOneProcessIsRestarted(t *testing.T) {
	s := newSite(t)
	s.status.App = []api.Process{{Name: "web", State: "running"}, {Name: "mailer", State: "running"}}
	wantText(t, s.get("/app"), `action="/app/web/restart"`, `action="/app/mailer/restart"`)
	s.deploy = func(context.Context) (api.DeployResult, error) { return api.DeployResult{}, nil }
	back := url.Values{"back": {"/app"}}
	wantText(t, s.post("/app/web/restart", back), "web was restarted as web-2.")
	s.deploy = func(context.Context) (api.DeployResult, error) {
		return api.DeployResult{}, &api.Error{Status: http.StatusUnprocessableEntity, Message: "web is not ready",
			Hint: "the previous process is still serving"}
	}
	wantText(t, s.post("/app/web/restart", back), "web is not ready", "still serving")
	if got := strings.Join(s.deployed, ", "); got != "process web, process web" {
		t.Errorf("the environment was asked for %s", got)
	}
	release := make(chan struct{})
	ended := make(chan error, 1)
	s.pages.patience = time.Millisecond
	s.deploy = func(ctx context.Context) (api.DeployResult, error) {
		<-release
		ended <- ctx.Err()
		return api.DeployResult{}, nil
	}
	wantText(t, s.post("/app/mailer/restart", back), "The restart is in progress.")
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the restart ended with the form: %v", err)
	}
}

func TestDeploymentsAreListedAndRolledBack(t *testing.T) {
	s := newSite(t)
	wantText(t, s.get("/deployments"), "No version has served yet.", "tendril deploy app.zip",
		"Nothing was deployed yet.")
	s.versions = []api.AppVersion{
		{Number: 4, State: api.VersionLive, Source: "/srv/shop", Folder: "/srv/shop", InPlace: true, By: "owner",
			Size: 12, DeployedAt: time.Now().Add(-time.Minute)},
		{Number: 3, State: api.VersionFailed, Source: "/srv/three.zip", By: "token ci", Error: hostile},
		{Number: 2, State: api.VersionKept, Of: 1, Source: "/srv/one.zip", Folder: "/data/versions/x/one", By: "start"},
	}
	s.history.Events.Add(string(event.Deploy), "new version is serving", map[string]string{"version": "4"})
	s.history.Events.Add(string(event.Pause), "queue paused", nil)
	page := s.get("/deployments")
	wantText(t, page, "Version 4", "in place", "token ci", "&lt;script&gt;", "1 again", "version 4 is serving",
		`<input type="hidden" name="version" value="2">`)
	if strings.Count(page, `action="/deployments/rollback"`) != 1 || strings.Contains(page, "queue paused") {
		t.Errorf("only version 2 can be rolled back to, and only deployments are told:\n%s", page)
	}
	back := url.Values{"version": {"2"}, "back": {"/deployments"}}
	s.deploy = func(context.Context) (api.DeployResult, error) { return api.DeployResult{To: "version 5"}, nil }
	wantText(t, s.post("/deployments/rollback", back), "The environment runs version 5 now.")
	s.deploy = func(context.Context) (api.DeployResult, error) {
		return api.DeployResult{}, &api.DeployError{Err: errors.New("web ended 3 times")}
	}
	wantText(t, s.post("/deployments/deploy", url.Values{"path": {"/srv/six.zip"}}), "web ended 3 times",
		"the previous version is still serving")
	if got := strings.Join(s.deployed, ", "); got != "version 2, /srv/six.zip" {
		t.Errorf("the environment was asked for %s", got)
	}
	wantText(t, s.post("/deployments/rollback", url.Values{"version": {"two"}}),
		"version &#34;two&#34; is not a whole number")
}

func TestADeploymentToAllInstancesShowsWhoHasIt(t *testing.T) {
	s := newSite(t)
	s.versions = []api.AppVersion{{Number: 3, State: api.VersionDeploying, Source: "three.zip"},
		{Number: 2, State: api.VersionLive, Source: "two.zip", Digest: "b"},
		{Number: 1, State: api.VersionKept, Source: "one.zip", Digest: "a"}}
	s.instances = api.Instances{Instances: []api.KnownInstance{{Name: "a (1)", TakesVersions: true, AppNumber: 3},
		{Name: "b (2)", TakesVersions: true, AppNumber: 2}}}
	wantText(t, s.get("/deployments"), "version 3 runs on 1 of 2 instances, not yet on b (2)", `action="/deployments/abort"`,
		`<input type="hidden" name="version" value="1">`)

	s.versions = s.versions[1:]
	if page := s.get("/deployments"); strings.Contains(page, "runs on") || strings.Contains(page, "/deployments/abort") {
		t.Errorf("without a deployment:\n%s", page)
	}
}

func TestTheHeaderShowsTheHealthOfTheEnvironment(t *testing.T) {
	s := newSite(t)
	const header = `<strong class="environment">shop</strong>
  <span class="state ok">Ok</span>`
	s.health.Status = health.Severe
	if strings.Contains(s.get("/events"), header) {
		t.Error("the header of a single instance does not show its health")
	}
	s.health.Environment = &health.Environment{Status: health.Ok, Instances: map[health.Status]int{health.Ok: 2, health.Severe: 1}}
	wantText(t, s.get("/events"), header)
}

func TestFormsDoNotWaitForADeployment(t *testing.T) {
	s := newSite(t)
	ended := make(chan error, 1)
	release := make(chan struct{})
	s.pages.patience = time.Millisecond
	s.deploy = func(ctx context.Context) (api.DeployResult, error) {
		<-release
		ended <- ctx.Err()
		return api.DeployResult{}, nil
	}
	s.status.Deployment = &api.Deployment{State: api.DeployPreparing, Step: "make", From: "version 1",
		To: "version 2", Since: time.Now()}
	page := s.post("/deployments/rollback", url.Values{"version": {"1"}, "back": {"/deployments"}})
	wantText(t, page, "The deployment is in progress.", "Preparing version 2", "make")
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the deployment ended with the form: %v", err)
	}
	s.status.Deployment = &api.Deployment{State: api.DeployRolledBack, To: "version 2", Error: "exit status 9",
		Ended: time.Now()}
	wantText(t, s.get("/deployments"), "version 2: rolled back", "exit status 9")
}

func TestADeploymentIsAbortedBeforeItServes(t *testing.T) {
	s := newSite(t)
	const form = `action="/deployments/abort"`
	s.status.Deployment = &api.Deployment{State: api.DeployFinishing, From: "version 1", To: "version 2",
		Since: time.Now()}
	if page := s.get("/deployments"); strings.Contains(page, form) {
		t.Errorf("a version that serves can be aborted:\n%s", page)
	}
	s.status.Deployment.State = api.DeployStarting
	wantText(t, s.get("/deployments"), form)
	wantText(t, s.post("/deployments/abort", url.Values{"back": {"/deployments"}}),
		"The deployment of version 2 was aborted.")
	if got := strings.Join(s.deployed, ", "); got != "abort" {
		t.Errorf("the environment was asked for %s", got)
	}
}

func TestScalingShowsDecisionsWithWhatTheyWereMadeBy(t *testing.T) {
	s := newSite(t)
	s.decisions.Advice = true
	wantText(t, s.get("/scaling"), "The size is fixed", "--processes-max 4", "1 min", "No decisions yet")
	backlog, busy := 40.0, 80.0
	s.decisions = api.ScaleDecisions{Decisions: []api.ScaleDecision{
		{From: 1, Desired: 3, Rule: "out", Why: "40 messages wait " + hostile, NotApplied: "another instance is the leader",
			Until: time.Now(), Times: 2,
			Inputs: &api.ScaleInputs{Ready: 1, Backlog: &backlog, BusyPercent: &busy}},
		{From: 1, Desired: 1, Rule: "missing", Why: "not counted", Until: time.Now(), Times: 1,
			Inputs: &api.ScaleInputs{Ready: 1}}}}
	s.status.Scaling = &api.Scaling{Target: "asg:workers", MinSize: 1, MaxSize: 4, Desired: 3, Ready: 1,
		Protection: "on"}
	page := s.get("/scaling")
	wantText(t, page, "Instances of the Auto Scaling group workers", "another instance", "of 1 to 4",
		"Scale-in protection", "→ <b>3</b>", "2 times", "&lt;script&gt;", "80 %", "not applied")
	if strings.Contains(page, "The size is fixed") || strings.Count(page, "–") < 5 {
		t.Errorf("what is not known is not a dash:\n%s", page)
	}
}

func TestInstancesShowWhatIsKnownAndWhyNotMore(t *testing.T) {
	s := newSite(t)
	off := false
	none := 0
	cpu := 41.6
	s.instances = api.Instances{Election: "lease in the DynamoDB table registry",
		Notes: []string{"others are not known"}, Revision: 4, Instances: []api.KnownInstance{
			{Name: "a (1)", This: true, Source: "process", State: "running", Version: "1.2.3", InFlight: &none,
				Protected: &off, Revision: 3, CPUPercent: &cpu},
			{Name: "b (2)", Source: "registry", Revision: 4},
			{Name: "c (3)", Source: "registry", State: "running", Revision: 3, Unreachable: true},
			{Name: hostile, Source: "lease", Leads: true, Term: 3, LeaseAgeSeconds: 2}}}
	page := s.get("/instances")
	wantText(t, page, "this one", "not protected from scale-in", "behind: applied revision 3 of 4",
		"Revision 4 of the environment is applied by 1 of 2 reachable instances, not yet by a (1); unreachable: c (3).", ">CPU 42 %", "term 3, lease seen 2 s ago", "others are not known",
		`unreachable</span> <span class="why">last reported:</span> <span class="state ok">running`, "&lt;script&gt;", "elected by a lease in the DynamoDB table registry", `data-label="Load">0 <`,
		`registry <span class="why">0 s ago</span>`)
}

func TestScreensOfTheAppNeedARight(t *testing.T) {
	s := newSite(t)
	s.status.App = []api.Process{{Name: "web", State: "running"}}
	for _, path := range []string{"/app", "/deployments", "/scaling", "/instances"} {
		resp, err := s.client.Get(s.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a right: %d", path, resp.StatusCode)
		}
	}
	resp, err := s.client.PostForm(s.server.URL+"/deployments/rollback", url.Values{"version": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || len(s.deployed) > 0 {
		t.Errorf("a rollback without a right: %d, %q", resp.StatusCode, s.deployed)
	}
}
