package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

type scalingGroup struct {
	*httptest.Server
	mu      sync.Mutex
	desired int
	sizes   []int
}

func newScalingGroup(t *testing.T, desired int) *scalingGroup {
	g := &scalingGroup{desired: desired}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *scalingGroup) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	g.mu.Lock()
	defer g.mu.Unlock()
	action, result := form.Get("Action"), ""
	switch action {
	case "DescribeAutoScalingGroups":
		instances := ""
		for i := range g.desired {
			instances += fmt.Sprintf("<member><InstanceId>i-%d</InstanceId><LifecycleState>InService</LifecycleState>"+
				"<HealthStatus>Healthy</HealthStatus></member>", i)
		}
		result = fmt.Sprintf("<AutoScalingGroups><member><AutoScalingGroupName>workers</AutoScalingGroupName>"+
			"<MinSize>1</MinSize><MaxSize>9</MaxSize><DesiredCapacity>%d</DesiredCapacity><Instances>%s</Instances></member>"+
			"</AutoScalingGroups>", g.desired, instances)
	case "SetDesiredCapacity":
		g.desired, _ = strconv.Atoi(form.Get("DesiredCapacity"))
		g.sizes = append(g.sizes, g.desired)
	}
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, `<%[1]sResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><%[1]sResult>%[2]s</%[1]sResult>`+
		`<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></%[1]sResponse>`, action, result)
}

func (g *scalingGroup) requested() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]int(nil), g.sizes...)
}

func TestSentencesScaling(t *testing.T) {
	t.Parallel()
	up := func(t *testing.T, group *scalingGroup, args ...string) *process {
		q := watchQueue(t, "jobs", nil)
		app := newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
		p, _ := startWith(t, []string{"AWS_ENDPOINT_URL_AUTO_SCALING=" + group.URL}, append([]string{"up", "--queue-url", q.watched,
			"--target", app.URL, "--console", "off", "--scale-target", "asg:workers", "--scale-measure-name", "CPUUtilization",
			"--scale-period", "2s", "--scale-cooldown", "0s", "--leader", "local", "--verbose"}, args...)...)
		return p
	}
	busy := func(stop <-chan struct{}) {
		for stopped := false; !stopped; {
			select {
			case <-stop:
				stopped = true
			default:
			}
		}
	}
	t.Run("out", func(t *testing.T) {
		t.Parallel()
		stop := make(chan struct{})
		defer close(stop)
		go busy(stop)
		group := newScalingGroup(t, 1)
		up(t, group, "--scale-lower-threshold", "0", "--scale-upper-threshold", "0.01", "--scale-upper-breach-scale-increment", "3")
		for _, id := range []string{"A48", "A50", "A51", "A54"} {
			row(t, id, func(t *testing.T) {
				eventually(t, "the group grows", func() bool { return len(group.requested()) > 0 })
				if group.requested()[0] != 4 {
					t.Errorf("the group was told %v, want 4 first: 1 and the increment 3", group.requested())
				}
			})
		}
	})
	t.Run("in", func(t *testing.T) {
		t.Parallel()
		group := newScalingGroup(t, 1)
		group.desired = 3
		p := up(t, group, "--scale-lower-threshold", "200", "--scale-upper-threshold", "1000",
			"--scale-lower-breach-scale-increment=-2")
		row(t, "A52", func(t *testing.T) {
			p.await(t, "why the group does not shrink, or that it does", func(e event) bool {
				return len(group.requested()) > 0 || e.attribute("component") == "scale" && strings.Contains(e.Reason, "below 200 for")
			})
		})
	})
	t.Run("between", func(t *testing.T) {
		t.Parallel()
		group := newScalingGroup(t, 2)
		p := up(t, group, "--scale-lower-threshold", "0", "--scale-upper-threshold", "1000")
		time.Sleep(4 * time.Second)
		row(t, "A49", func(t *testing.T) {
			breaches := p.count(func(e event) bool {
				return strings.Contains(e.Reason, ", above ") || strings.Contains(e.Reason, ", below ")
			})
			if sizes := group.requested(); len(sizes) > 0 || breaches > 0 {
				t.Errorf("between the thresholds the group was told %v, with %d breaches", sizes, breaches)
			}
		})
	})
}

func TestSentencesPublishedCPU(t *testing.T) {
	t.Parallel()
	q := watchQueue(t, "jobs", nil)
	app := newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
	published := []chan float64{make(chan float64, 1), make(chan float64, 1)}
	for _, values := range published {
		cloudWatch := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var in struct {
				Namespace  string
				MetricData []struct {
					MetricName, Unit string
					Dimensions       []struct{ Name, Value string }
					StatisticValues  struct{ SampleCount, Sum float64 }
				}
			}
			json.NewDecoder(r.Body).Decode(&in)
			for _, d := range in.MetricData {
				if in.Namespace == "ElasticBeanstalk/SQSD" && d.MetricName == "CPUUtilization" && d.Unit == "Percent" &&
					fmt.Sprint(d.Dimensions) == "[{EnvironmentName shop}]" && d.StatisticValues.SampleCount == 1 {
					select {
					case values <- d.StatisticValues.Sum:
					default:
					}
				}
			}
		}))
		t.Cleanup(cloudWatch.Close)
		startWith(t, []string{"AWS_ENDPOINT_URL_CLOUDWATCH=" + cloudWatch.URL}, "up", "--queue-url", q.watched, "--target", app.URL,
			"--console", "off", "--environment-name", "shop", "--cloudwatch", "on", "--metrics-interval", "1s")
	}
	row(t, "A82", func(t *testing.T) {
		for i, values := range published {
			select {
			case percent := <-values:
				if percent < 0 || percent > 100 {
					t.Errorf("instance %d published a CPU utilization of %g %%", i, percent)
				}
			case <-time.After(waitsFor()):
				t.Fatalf("instance %d did not publish its CPU utilization", i)
			}
		}
	})
}

type dynamo struct {
	*httptest.Server
	mu     sync.Mutex
	items  map[string]map[string]any
	writes []string
}

func newDynamo(t *testing.T) *dynamo {
	d := &dynamo{items: map[string]map[string]any{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func dynamoText(item map[string]any, name string) string {
	value, _ := item[name].(map[string]any)
	s, _ := value["S"].(string)
	return s
}

func (d *dynamo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct {
		Key, ExpressionAttributeValues        map[string]any
		ExpressionAttributeNames              map[string]string
		ConditionExpression, UpdateExpression string
	}
	body, _ := io.ReadAll(r.Body)
	json.Unmarshal(body, &in)
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	answer := map[string]any{}
	switch action {
	case "DescribeTable":
		answer["Table"] = map[string]any{"TableStatus": "ACTIVE", "KeySchema": []any{map[string]any{"AttributeName": "id", "KeyType": "HASH"}},
			"AttributeDefinitions": []any{map[string]any{"AttributeName": "id", "AttributeType": "S"}}}
	case "DescribeTimeToLive":
		answer["TimeToLiveDescription"] = map[string]any{"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
	case "GetItem":
		if item := d.items[dynamoText(in.Key, "id")]; item != nil {
			answer["Item"] = item
		}
	case "UpdateItem":
		id := dynamoText(in.Key, "id")
		old := d.items[id]
		fits := old == nil
		if _, value, found := strings.Cut(in.ConditionExpression, " = "); found { // a condition on the version
			fits = dynamoText(old, "version") == dynamoText(in.ExpressionAttributeValues, value)
		}
		if !fits {
			answer["__type"], answer["Item"] = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", old
			answer["message"] = "The conditional request failed"
			break
		}
		item := maps.Clone(in.Key)
		for set := range strings.SplitSeq(strings.TrimPrefix(in.UpdateExpression, "SET "), ", ") {
			name, value, _ := strings.Cut(set, " = ")
			item[in.ExpressionAttributeNames[name]] = in.ExpressionAttributeValues[value]
		}
		d.items[id] = item
		if !strings.Contains(id, "/instances") { // skips the instances' own records
			d.writes = append(d.writes, dynamoText(item, "owner"))
		}
	}
	text, _ := json.Marshal(answer)
	w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE(text)))
	if answer["__type"] != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	w.Write(text)
}

func (d *dynamo) owners() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.writes...)
}

func TestSentencesAverageOfInstances(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a new leader watches the others for 90 s before it decides: not with -short")
	}
	table, group := newDynamo(t), newScalingGroup(t, 2)
	q := watchQueue(t, "jobs", nil)
	release, let := context.WithCancel(t.Context())
	app := newScript(t, func(http.ResponseWriter, *http.Request, posted) { <-release.Done() })
	q.put(t, "busy until the release")
	up := func() *process {
		p, _ := startWith(t, []string{"AWS_ENDPOINT_URL_DYNAMODB=" + table.URL, "AWS_ENDPOINT_URL_AUTO_SCALING=" + group.URL},
			"up", "--queue-url", q.watched, "--target", app.URL, "--console", "off", "--registry-table", "instances",
			"--http-connections", "1", "--scale-target", "asg:workers", "--scale-measure-name", "BusyShare", "--scale-period", "2s",
			"--scale-cooldown", "0s", "--verbose")
		return p
	}
	both := []*process{up(), up()}
	decisions := func(reason string) (n int) {
		for _, p := range both {
			n += p.count(func(e event) bool { return strings.Contains(e.Reason, reason) })
		}
		return n
	}
	long := func(what string, holds func() bool) {
		t.Helper()
		eventuallyWithin(t, 4*time.Minute, what, holds)
	}
	row(t, "A53", func(t *testing.T) {
		long("the leader watches the other one first", func() bool { return decisions("the loads of all instances") > 0 })
		alone := decisions("in the last complete period of 2s, between")
		long("the leader decides by both", func() bool { return decisions("in the last complete period of 2s, between") > alone })
		time.Sleep(5 * time.Second) // the size could change after each period
		if sizes := group.requested(); len(sizes) > 0 {
			t.Errorf("with one busy and one idle instance the group was told %v", sizes)
		}
		let()
		long("the group shrinks once both are idle", func() bool { return len(group.requested()) > 0 })
		if sizes := group.requested(); sizes[0] != 1 {
			t.Errorf("the group was told %v, want 1", sizes)
		}
	})
}

// IgnoreHealthCheck lets the rollout continue although both instances are always unhealthy.
func TestSentencesRollout(t *testing.T) {
	minutes(t)
	t.Parallel()
	f, folder := newSharedQueue(t), t.TempDir()
	started, release := filepath.Join(folder, "started"), filepath.Join(folder, "release")
	version := func(wait string) string {
		return writeBundle(t, map[string]string{
			"Procfile": "web: " + wait + " " + strings.TrimPrefix(appLine(filepath.Join(folder, "journal"), "1"), "web: ") +
				"failing: exit 1\n",
			".ebextensions/rollout.config": `option_settings:
  aws:elasticbeanstalk:command: {DeploymentPolicy: Rolling, BatchSizeType: Fixed, BatchSize: 1, Timeout: 45, IgnoreHealthCheck: true}
`})
	}
	const patience = 2 * time.Minute // mutants let both instances start
	up := func() *member {
		dir := t.TempDir()
		p := launchWith(t, f.env, "up", "--queue-url", f.queue.url, "--data-dir", dir, "--console", "127.0.0.1:0", "--lease", "5s",
			"--registry-insecure", "--name", "jobs", "--port", testpeer.FreePort(t), "--deploy-timeout", "2m", version(""))
		eventuallyWithin(t, patience, "an instance starts", func() bool {
			return p.count(func(e event) bool { return e.Msg == "started" }) > 0
		})
		return &member{p, program(t).Path, dir}
	}
	all := []*member{up(), up()}
	eventuallyWithin(t, patience, "both instances run version 1", func() bool {
		return slices.Equal(all[0].running(t), []int{1, 1})
	})
	eventuallyWithin(t, patience, "both are unhealthy", func() bool {
		return strings.Count(all[0].tendril(t, "instances"), "Degraded") == 2
	})

	waits := func(until string) string {
		return fmt.Sprintf("echo . >>%s; while [ ! -e %s ]; do sleep 0.1; done;", started, until)
	}
	deploying := program(t, "deploy", version(waits(release)), "--data-dir", all[0].dir)
	if err := deploying.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deploying.Process.Kill() })
	starts := func() int {
		text, _ := os.ReadFile(started)
		return strings.Count(string(text), ".")
	}
	row(t, "A83", func(t *testing.T) {
		eventuallyWithin(t, patience, "the first batch starts version 2", func() bool { return starts() > 0 })
		time.Sleep(15 * time.Second) // the other instance would notice and start the version
		if n := starts(); n != 1 {
			t.Errorf("%d instances started the version, and a batch has 1", n)
		}
	})
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	row(t, "A85", func(t *testing.T) {
		if err := deploying.Wait(); err != nil {
			t.Errorf("a deployment to unhealthy instances: %v\n%s", err, all[0].tendril(t, "versions"))
		}
		eventually(t, "both instances know that the deployment is complete", func() bool {
			return !slices.ContainsFunc(all, func(m *member) bool {
				return !strings.Contains(m.tendril(t, "versions"), "2        live")
			})
		})
	})
	row(t, "A84", func(t *testing.T) {
		out, err := program(t, "deploy", version(waits("/never")), "--data-dir", all[1].dir).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "not complete after 45s") {
			t.Errorf("deploying a version that is never ready: %v, %s", err, out)
		}
	})
}

func TestSentencesElection(t *testing.T) {
	t.Parallel()
	table := newDynamo(t)
	q := watchQueue(t, "jobs", nil)
	app := newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
	cron := filepath.Join(t.TempDir(), "cron.yaml")
	leapDay := "version: 1\ncron:\n - {name: rare, url: /rare, schedule: \"0 0 29 2 *\", missed: skip}\n"
	if err := os.WriteFile(cron, []byte(leapDay), 0o600); err != nil {
		t.Fatal(err)
	}
	up := func() *process {
		p, _ := startWith(t, []string{"AWS_ENDPOINT_URL_DYNAMODB=" + table.URL}, "up", "--queue-url", q.watched, "--target", app.URL,
			"--console", "off", "--cron", cron, "--registry-table", "elections", "--lease", "5s")
		return p
	}
	leads := func(p *process) bool {
		return p.count(func(e event) bool { return strings.Contains(e.Msg, "leadership acquired") }) > 0
	}
	first := up()
	eventually(t, "the first one leads", func() bool { return leads(first) })
	second := up()
	const renewals = 3
	began := len(table.owners())
	for deadline := time.Now().Add(waitsFor()); len(table.owners()) < began+renewals && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	bothLead, owners := leads(second), table.owners()
	first.kill()
	row(t, "A41", func(t *testing.T) {
		if bothLead {
			t.Error("both instances lead")
		}
	})
	row(t, "A42", func(t *testing.T) {
		if len(owners) == 0 || owners[0] == "" {
			t.Errorf("the first one wrote %v", owners)
		}
		for _, owner := range owners {
			if owner != owners[0] {
				t.Errorf("%s wrote to the table, and %s leads", owner, owners[0])
			}
		}
	})
	row(t, "A43", func(t *testing.T) {
		if len(owners) < began+renewals {
			t.Errorf("the leader renewed its lease %d times, want %d", len(owners)-began, renewals)
		}
	})
	row(t, "A44", func(t *testing.T) {
		eventuallyWithin(t, 20*time.Second+waitsFor(), "the other one leads", func() bool { return leads(second) })
	})
}

// It can take a minute until a task is due.
func TestSentencesDueTask(t *testing.T) {
	long(t)
	t.Parallel()
	began := time.Now()
	const token = "0123456789abcdef-token"
	_, served := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off", "--registry-token", token)
	c := client(served.Endpoint)
	q := watch(t, c, createQueue(t, c, "jobs", nil))
	cron := filepath.Join(t.TempDir(), "cron.yaml")
	text := "version: 1\ncron:\n - {name: tick, url: /tick, schedule: \"* * * * *\"}\n"
	if err := os.WriteFile(cron, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[int]*script{}
	for i := range 2 {
		all[i] = newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
		startWith(t, []string{"TENDRIL_REGISTRY_TOKEN=" + token}, "up", "--queue-url", q.watched, "--target", all[i].URL, "--console",
			"off", "--cron", cron, "--registry-insecure") // requests go through the recording server
	}
	ticks := func() (list []posted) {
		for _, app := range all {
			for _, p := range app.all() {
				if p.header.Get("X-Aws-Sqsd-Taskname") == "tick" {
					list = append(list, p)
				}
			}
		}
		return list
	}
	started := time.Now()
	for deadline := started.Add(time.Minute + waitsFor()); len(ticks()) == 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Second) // time for an unwanted second run
	got := ticks()
	row(t, "A38", func(t *testing.T) {
		if len(got) == 0 || got[0].location != "/tick" || len(q.receipts("elasticbeanstalk scheduled job")) < len(got) {
			t.Fatalf("the runs of the task are %v", got)
		}
	})
	row(t, "A39", func(t *testing.T) {
		runs := map[string]int{}
		for _, p := range got {
			runs[p.header.Get("X-Aws-Sqsd-Scheduled-At")]++
		}
		if len(got) == 0 || len(runs) < len(got) {
			t.Errorf("the task did not run, or a run came again: %v", got)
		}
	})
	row(t, "A46", func(t *testing.T) {
		for _, p := range got {
			at, err := time.Parse("2006-01-02T15:04:05Z", p.header.Get("X-Aws-Sqsd-Scheduled-At"))
			if err != nil || !at.Equal(at.Truncate(time.Minute)) || at.Before(began) || at.After(p.at) {
				t.Errorf("a run that came at %v was scheduled for %v, %v", p.at, at, err)
			}
		}
		if len(got) == 0 {
			t.Error("the task did not run")
		}
	})
	row(t, "B10", func(t *testing.T) {
		if len(got) == 0 || got[0].header.Get("X-Aws-Sqsd-Queue") != "jobs" {
			t.Fatalf("the runs of the task are %v", got)
		}
	})
}

func TestSentencesRestarts(t *testing.T) {
	t.Parallel()
	t.Run("apart", func(t *testing.T) {
		t.Parallel()
		p, _, _ := appUp(t, map[string]string{"Procfile": appLine(filepath.Join(t.TempDir(), "journal"), "1") +
			"loop: echo begun; sleep 1.3; exit 3\n"}, "--restart-limit", "1", "--restart-window", "1")
		row(t, "C13", func(t *testing.T) {
			eventually(t, "it was started again", func() bool { return p.count(func(e event) bool { return e.Line == "begun" }) >= 2 })
		})
		row(t, "C16", func(t *testing.T) {
			eventually(t, "it was started four times", func() bool {
				return p.count(func(e event) bool { return e.Line == "begun" }) >= 4 ||
					p.count(func(e event) bool { return e.Msg == "process failed too often" }) > 0
			})
			if p.count(func(e event) bool { return e.Msg == "process failed too often" }) > 0 {
				t.Error("crashes that are more than a second apart were added up")
			}
		})
	})
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		begin := filepath.Join(t.TempDir(), "begin") // a failure during startup would end tendril
		p, _, _ := appUp(t, map[string]string{"Procfile": appLine(filepath.Join(t.TempDir(), "journal"), "1") +
			"loop: until [ -e " + begin + " ]; do sleep 0.05; done; echo begun; exit 3\n"}, "--restart-limit", "2", "--restart-window", "60")
		awaitWeb(t, p)
		if err := os.WriteFile(begin, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"C15", "C17"} {
			row(t, id, func(t *testing.T) {
				p.await(t, "it was given up", func(e event) bool {
					return e.Level == "ERROR" && e.Msg == "process failed too often" && strings.Contains(e.raw, "loop")
				})
				if n := p.count(func(e event) bool { return e.Line == "begun" }); n != 3 {
					t.Errorf("it was started %d times, want 3", n)
				}
			})
		}
	})
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		p, _, _ := appUp(t, map[string]string{"Procfile": appLine(filepath.Join(t.TempDir(), "journal"), "1") +
			"once: echo begun; exit 0\n"})
		awaitWeb(t, p)
		begun := func(e event) bool { return e.Line == "begun" }
		p.await(t, "it ran", begun)
		time.Sleep(1500 * time.Millisecond)
		row(t, "C14", func(t *testing.T) {
			if n := p.count(begun); n != 1 {
				t.Errorf("it was started %d times, want once", n)
			}
		})
	})
}

func TestSentencesUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	journal, port := filepath.Join(dir, "journal"), testpeer.FreePort(t)
	args := []string{"--healthcheck", "HTTP:" + port + "/healthy"}
	line, uid := observerLine(journal, "1"), os.Getuid()
	if uid == 0 {
		line = "web: echo $(id -u) > " + filepath.Join(dir, "uid") + "; exec sleep 1000\n"
		args = []string{"--app-user", "nobody"}
	}
	t.Run("user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("NOT TESTED with another user: it takes root")
		}
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		bundle := writeBundle(t, map[string]string{"Procfile": line})
		for d := bundle; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		start(t, append([]string{"up", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port",
			testpeer.FreePort(t), "--name", "jobs", bundle}, args...)...)
		row(t, "C11", func(t *testing.T) {
			eventually(t, "the app wrote its user down", func() bool {
				text, _ := os.ReadFile(filepath.Join(dir, "uid"))
				return strings.TrimSpace(string(text)) != "" && strings.TrimSpace(string(text)) != "0"
			})
		})
	})
	t.Run("health", func(t *testing.T) {
		p, started, _ := appUp(t, map[string]string{"Procfile": observerLine(journal, "1")}, "--port", port, "--healthcheck",
			"HTTP:"+port+"/healthy")
		awaitWeb(t, p)
		row(t, "C23", func(t *testing.T) {
			for _, path := range []string{"/livez", "/readyz"} {
				if answer, err := http.Get(started.Console + path); err != nil || answer.StatusCode != http.StatusOK {
					t.Errorf("%s: %v, %v", path, answer, err)
				}
			}
			awaitObserver(t, journal, "the app was asked", 1, func(s seenByObserver) bool { return s.Event == "get" && s.URI == "/healthy" })
		})
	})
}
