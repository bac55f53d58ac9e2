package acceptance

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/testing/testpeer"
)

type sharedQueue struct {
	endpoint string
	queue    *watchedQueue
	app      *script
	env      []string
	args     []string
}

func newSharedQueue(t *testing.T) *sharedQueue {
	t.Helper()
	return newSharedQueueOf(t, program(t).Path)
}

func newSharedQueueOf(t *testing.T, path string) *sharedQueue {
	t.Helper()
	const token = "0123456789abcdef-token"
	served := launchCommand(t, exec.Command(path, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off",
		"--registry-token", token)).await(t, "it started", func(e event) bool { return e.Msg == "started" })
	f := newFleetQueue(t, served.Endpoint)
	f.env = append(f.env, "TENDRIL_REGISTRY_TOKEN="+token)
	f.args = []string{"--registry-insecure"}
	return f
}

func newFleetQueue(t *testing.T, endpoint string) *sharedQueue {
	t.Helper()
	f := &sharedQueue{endpoint: endpoint}
	c := client(endpoint)
	f.queue = &watchedQueue{Client: c, url: createQueue(t, c, "jobs", nil)}
	f.app = newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("fleet-key-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.env = []string{"TENDRIL_FLEET_KEY_FILE=" + key}
	return f
}

type member struct {
	*process
	path, dir string
}

func (f *sharedQueue) up(t *testing.T, dir, endpoint string, app ...string) *member {
	t.Helper()
	return f.upOf(t, program(t).Path, dir, endpoint, app...)
}

func (f *sharedQueue) upOf(t *testing.T, path, dir, endpoint string, app ...string) *member {
	t.Helper()
	if app == nil {
		app = []string{"--target", f.app.URL}
	}
	cmd := exec.Command(path, slices.Concat([]string{"up", "--queue-url", strings.Replace(f.queue.url, f.endpoint, endpoint, 1),
		"--data-dir", dir, "--console", "127.0.0.1:0", "--lease", "5s"}, f.args, app)...)
	cmd.Env = f.env
	p := launchCommand(t, cmd)
	p.await(t, "it started", func(e event) bool { return e.Msg == "started" })
	return &member{p, path, dir}
}

func (m *member) tendril(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(m.path, append(args, "--data-dir", m.dir)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tendril %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (m *member) paused(t *testing.T) (paused bool, reason string) {
	t.Helper()
	var st api.Status
	if err := json.Unmarshal([]byte(m.tendril(t, "status", "-o", "json")), &st); err != nil {
		t.Fatal(err)
	}
	return st.Workers[0].Paused, st.Workers[0].Why
}

func TestPauseAppliesToAllInstances(t *testing.T) {
	long(t)
	t.Parallel()
	f := newSharedQueue(t)
	proxy := newFaultProxy(t, f.endpoint, 1)
	first, second := f.up(t, t.TempDir(), f.endpoint), f.up(t, t.TempDir(), f.endpoint)
	cut := f.up(t, t.TempDir(), proxy.URL)
	all := []*member{first, second, cut}
	allPaused := func(want bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(all, func(m *member) bool { paused, _ := m.paused(t); return paused != want })
		}
	}
	eventually(t, "all instances are known", func() bool {
		return strings.Count(first.tendril(t, "instances"), "running") == len(all)
	})

	out := first.tendril(t, "queues", "pause", "--reason", "database upgrade")
	if !strings.Contains(out, "applied by 3 instances") || !allPaused(true)() {
		t.Errorf("the pause printed %q; all are paused: %t", out, allPaused(true)())
	}
	for _, m := range all {
		if _, reason := m.paused(t); !strings.HasPrefix(reason, "by owner since ") || !strings.HasSuffix(reason, ": database upgrade") {
			t.Errorf("the reason is %q", reason)
		}
	}

	f.queue.put(t, "waits")
	all = append(all, f.up(t, t.TempDir(), f.endpoint))
	time.Sleep(3 * time.Second)
	if posts := f.app.all(); len(posts) > 0 || !allPaused(true)() {
		t.Errorf("while all are paused and one started later, %d messages were posted", len(posts))
	}

	proxy.inject(faultPlan{fault: silence, share: 1})
	for _, m := range []*member{first, second, all[3]} {
		if m.count(func(e event) bool { return e.Msg == "leadership acquired" }) > 0 {
			m.kill()
			all = slices.DeleteFunc(all, func(one *member) bool { return one == m })
			break
		}
	}
	connected := slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return m == cut })
	resume := program(t, "queues", "resume", "--data-dir", connected[0].dir) // waits for the unreachable instance
	if err := resume.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resume.Process.Kill(); resume.Wait() })
	eventually(t, "the connected instances receive again", func() bool {
		return !slices.ContainsFunc(connected, func(m *member) bool { paused, _ := m.paused(t); return paused })
	})
	if paused, _ := cut.paused(t); !paused {
		t.Error("the instance that is cut off forgot its last known state")
	}
	proxy.inject(faultPlan{})
	eventually(t, "the instance that was cut off resumes", allPaused(false))
	eventually(t, "the message is posted", func() bool { return len(f.app.all()) == 1 })

	connected[0].tendril(t, "queues", "pause", "--this")
	time.Sleep(5 * time.Second)
	for _, m := range all {
		if paused, _ := m.paused(t); paused != (m == connected[0]) {
			t.Errorf("with --this on another instance, paused is %t", paused)
		}
	}
}

func TestSettingsApplyToAllInstances(t *testing.T) {
	minutes(t)
	t.Parallel()
	f := newSharedQueue(t)
	app := writeBundle(t, map[string]string{"Procfile": appLine(filepath.Join(t.TempDir(), "journal"), "1")})
	up := func(env []string, args ...string) *member {
		dir := t.TempDir()
		p, _ := startWith(t, append(env, f.env...), append([]string{"up", app, "--queue-url", f.queue.url, "--data-dir", dir,
			"--console", "127.0.0.1:0", "--port", testpeer.FreePort(t), "--lease", "5s", "--registry-insecure"}, args...)...)
		p.await(t, "its app is ready", func(e event) bool { return e.Msg == "process ready" })
		return &member{p, program(t).Path, dir}
	}
	limited := up(nil, "--backoff-max", "1m")
	all := []*member{limited, up([]string{"TENDRIL_MIME_TYPE=text/plain"}), up(nil)}
	overriding, other := all[1], all[2]
	isSet := func(t *testing.T, when, option string, want ...string) {
		t.Helper()
		for i, m := range all {
			var shown api.Configuration
			if err := json.Unmarshal([]byte(m.tendril(t, "config", "show", option, "-o", "json")), &shown); err != nil {
				t.Fatal(err)
			}
			if o := shown.Options[0]; o.Value != want[min(i, len(want)-1)] || (o.Overridden != "") != (m == overriding && option == "mime-type") {
				t.Errorf("%s: instance %d has %s %q, overridden here by %q", when, i, option, o.Value, o.Overridden)
			}
		}
	}
	settledAt := func(path string) func() bool {
		return func() bool {
			return slices.ContainsFunc(all, func(m *member) bool {
				return m.count(func(e event) bool {
					return e.Msg == "settled" && e.Outcome == "done" && strings.Contains(e.raw, path)
				}) > 0
			})
		}
	}
	eventually(t, "all instances are known", func() bool {
		return strings.Count(limited.tendril(t, "instances"), "running") == len(all)
	})

	out := other.tendril(t, "config", "set", "http-path=/all", "mime-type=text/csv", "app-grace=3s", "--yes")
	if !strings.Contains(out, "applied by 3 instances") {
		t.Errorf("the change printed %q", out)
	}
	isSet(t, "after a change", "http-path", "/all")
	isSet(t, "after a change", "mime-type", "text/csv", "text/plain", "text/csv")
	isSet(t, "after a change", "app-grace", "3s")
	isRestart := func(e event) bool { return e.Msg == "process restarted" }
	for i, m := range all {
		m.await(t, "its process was restarted", isRestart)
		if n := m.count(isRestart); n != 1 {
			t.Errorf("instance %d restarted %d processes", i, n)
		}
	}

	other.tendril(t, "config", "set", "http-path of jobs=/only", "--yes")
	isSet(t, "after a change for one queue", "http-path", "/all")
	f.queue.put(t, "first")
	eventually(t, "the message is posted to the path of its queue", settledAt("/only"))
	other.tendril(t, "config", "unset", "http-path of jobs", "--yes")
	other.tendril(t, "config", "set", "rollout-policy=Rolling", "rollout-batch-size-type=Fixed", "rollout-batch-size=1", "--yes")
	if out := other.tendril(t, "config", "set", "app-grace=4s", "--yes"); !strings.Contains(out, "applied by 2 of 3 reachable instances, in batches") ||
		!strings.Contains(out, "applied by 3 instances") {
		t.Errorf("the change in batches printed %q", out)
	}
	isSet(t, "after a change in batches", "app-grace", "4s")
	var at []time.Time
	for _, m := range all {
		eventually(t, "the second restart is logged", func() bool { return m.count(isRestart) >= 2 })
		m.count(func(e event) bool {
			restarted, _ := time.Parse(time.RFC3339, e.attribute("time"))
			if isRestart(e) {
				at = append(at, restarted)
			}
			return false
		})
	}
	slices.SortFunc(at, time.Time.Compare)
	if len(at) != 6 || at[4].Sub(at[3]) < 15*time.Second || at[5].Sub(at[4]) < 15*time.Second {
		t.Errorf("the processes were restarted at %v: want batches of one instance, which stays healthy for 20 s", at)
	}
	failing, err := program(t, "config", "set", "app-limit=nofile=3", "--yes", "--data-dir", other.dir).CombinedOutput()
	if err == nil || !strings.Contains(string(failing), "rolled back on all instances") {
		t.Errorf("the change with which no app starts printed %q, %v", failing, err)
	}
	tried := func() (n int) {
		for _, m := range all {
			n += m.count(func(e event) bool {
				return e.Msg == "settings for all instances rejected, the previous ones still apply"
			})
		}
		return n
	}
	eventually(t, "an instance tried to start an app that cannot start", func() bool { return tried() > 0 })
	if n := tried(); n != 1 {
		t.Errorf("%d instances tried to start an app that cannot start, want one", n)
	}
	isSet(t, "after a batch failed", "app-limit", "")

	rejected, err := program(t, "config", "set", "http-path=/wrong", "backoff-min=2m", "--yes", "--data-dir", other.dir).CombinedOutput()
	if err == nil || !strings.Contains(string(rejected), "rolled back on all instances") || !strings.Contains(string(rejected), "backoff-max 60s is shorter") {
		t.Errorf("the change that one instance rejects printed %q, %v", rejected, err)
	}
	eventually(t, "all instances have rolled back", func() bool {
		return !slices.ContainsFunc(all, func(m *member) bool {
			return m.count(func(e event) bool {
				return e.Msg == "settings for all instances rolled back" && strings.Contains(e.raw, "backoff-max")
			}) != 1
		})
	})
	isSet(t, "after the rollback", "http-path", "/all")

	all = append(all, up(nil))
	isSet(t, "with an instance that starts later", "http-path", "/all")
	f.queue.put(t, "waits")
	eventually(t, "the message is posted to the new path", settledAt("/all"))
}

func leaderOf(all []*member) (leader *member, others []*member) {
	for _, m := range all {
		if m.count(func(e event) bool { return e.Msg == "leadership acquired" }) > m.count(func(e event) bool { return e.Msg == "leadership lost" }) {
			leader = m
		} else {
			others = append(others, m)
		}
	}
	return leader, others
}

func (m *member) known(t *testing.T) []api.KnownInstance {
	t.Helper()
	var all api.Instances
	if err := json.Unmarshal([]byte(m.tendril(t, "instances", "-o", "json")), &all); err != nil {
		t.Fatal(err)
	}
	return all.Instances
}

func (m *member) running(t *testing.T) (versions []int) {
	t.Helper()
	for _, one := range m.known(t) {
		if one.TakesVersions && !one.Unreachable {
			versions = append(versions, one.AppNumber)
		}
	}
	return versions
}

func TestDeploymentReachesAllInstances(t *testing.T) {
	minutes(t)
	t.Parallel()
	f, journal := newSharedQueue(t), filepath.Join(t.TempDir(), "journal")
	version := func(name string) string { return writeBundle(t, map[string]string{"Procfile": appLine(journal, name)}) }
	first := version("1")
	up := func() *member {
		return f.up(t, t.TempDir(), f.endpoint, "--name", "jobs", "--port", testpeer.FreePort(t), "--rollout-policy", "Rolling",
			"--rollout-batch-size-type", "Fixed", "--rollout-batch-size", "1", "--rollout-ignore-health", first)
	}
	all := []*member{up(), up(), up()}
	runAll := func(m *member, number, instances int) func() bool {
		return func() bool { return slices.Equal(m.running(t), slices.Repeat([]int{number}, instances)) }
	}
	eventually(t, "all instances run version 1", runAll(all[0], 1, 3))
	f.queue.put(t, "first")
	leader, others := (*member)(nil), []*member(nil)
	eventually(t, "one leads", func() bool { leader, others = leaderOf(all); return leader != nil })

	deploying := program(t, "deploy", version("2"), "--data-dir", others[0].dir)
	if err := deploying.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first batch runs version 2", func() bool { return slices.Contains(others[0].running(t), 2) })
	leader.kill()
	others = append(others, up())
	if err := deploying.Wait(); err != nil {
		t.Errorf("the deployment: %v\n%s", err, others[0].tendril(t, "versions"))
	}

	// Other instances may not have seen the end of the deployment yet.
	out, err := program(t, "deploy", writeBundle(t, map[string]string{"Procfile": "web: exit 3\n"}), "--data-dir", others[1].dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "version 3 was rolled back on all instances: ") {
		t.Errorf("deploying a broken version: %v, %s", err, out)
	}
	if got := others[2].tendril(t, "rollback"); !strings.Contains(got, "now runs version 4 ") {
		t.Errorf("the rollback: %s", got)
	}
	eventually(t, "all run version 4", runAll(others[0], 4, 3)) // the killed one is already unreachable
	f.queue.put(t, "last")
	eventually(t, "the messages are done by version 1", func() bool {
		_, versions := readJournal(t, journal)
		return versions["1"] == 2
	})

	again := up()
	again.await(t, "it runs version 4", func(e event) bool { return e.Msg == "started" })
	eventually(t, "the new instance runs version 4", runAll(others[0], 4, 4))
	if out := again.tendril(t, "versions"); !strings.Contains(out, "4 (1 again)  live") || !strings.Contains(out, "3            failed") {
		t.Errorf("the versions are\n%s", out)
	}
}

func TestDeploymentThroughS3ReachesAllInstances(t *testing.T) {
	minutes(t)
	t.Parallel()
	moto := testpeer.Moto(t, "sqs", "dynamodb", "s3")
	testpeer.CreateBucket(t, moto, "archives")

	f, journal := newFleetQueue(t, moto), filepath.Join(t.TempDir(), "journal")
	f.env = append(f.env, "AWS_ENDPOINT_URL="+moto, "AWS_ENDPOINT_URL_DYNAMODB="+oneAtATime(t, moto))
	version := func(name string) string { return writeBundle(t, map[string]string{"Procfile": appLine(journal, name)}) }
	first := version("1")
	up := func() *member {
		return f.up(t, t.TempDir(), f.endpoint, "--name", "jobs", "--port", testpeer.FreePort(t), "--registry-table", "fleet",
			"--registry-create", "--versions", "s3://archives/apps", "--rollout-policy", "Rolling", "--rollout-batch-size-type",
			"Fixed", "--rollout-batch-size", "1", "--rollout-ignore-health", first)
	}
	all := []*member{up(), up()}
	for _, m := range all {
		if m.count(func(e event) bool { return e.Level == "ERROR" }) > 0 {
			t.Error("an instance logged an error at the first start")
		}
	}
	runs := func(number, instances int) func() bool {
		return func() bool { return slices.Equal(all[0].running(t), slices.Repeat([]int{number}, instances)) }
	}
	eventually(t, "both run version 1", runs(1, 2))
	out := all[0].tendril(t, "deploy", version("2"))
	if !strings.Contains(out, "version 2 runs on 1 of 2 instances") || !strings.Contains(out, "now runs version 2 ") {
		t.Errorf("the deployment printed %s", out)
	}
	f.queue.put(t, "by version 2")
	all = append(all, up())
	eventually(t, "three run version 2", runs(2, 3))
	eventually(t, "version 2 did the message", func() bool {
		_, versions := readJournal(t, journal)
		return versions["2"] == 1
	})
}

func TestReceivingStopsAfterTheRegistryIsLost(t *testing.T) {
	long(t)
	t.Parallel()
	f := newSharedQueue(t)
	proxy := newFaultProxy(t, f.endpoint, 1)
	m := f.up(t, t.TempDir(), proxy.URL, "--registry-lost-after", "8s", "--target", f.app.URL)
	f.queue.put(t, "before")
	eventually(t, "a message is delivered", func() bool { return len(f.app.all()) == 1 })

	proxy.inject(faultPlan{fault: lostRequest, share: 1, only: "Lease"}) // calls to the registry, not to the queue
	m.await(t, "it stopped receiving", func(e event) bool { return e.Msg == "receiving stopped" && e.Level == "ERROR" })
	const reason = "the shared registry has not responded for 8s (registry-lost-after)"
	if paused, why := m.paused(t); !paused || !strings.Contains(why, reason) {
		t.Errorf("the status is paused: %t, %q", paused, why)
	}
	eventually(t, "health has the cause", func() bool {
		out, _ := program(t, "health", "--data-dir", m.dir).CombinedOutput()
		return strings.Contains(string(out), "Receiving has stopped. T"+reason[1:])
	})
	f.queue.put(t, "meanwhile")
	time.Sleep(2 * time.Second)
	if posts := f.app.all(); len(posts) != 1 {
		t.Errorf("%d messages were delivered while the registry was lost", len(posts))
	}

	proxy.inject(faultPlan{})
	eventually(t, "it receives again", func() bool { return len(f.app.all()) == 2 })
	if paused, why := m.paused(t); paused {
		t.Errorf("it is still paused: %s", why)
	}
}
