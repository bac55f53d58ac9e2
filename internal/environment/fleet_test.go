package environment

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/autoscale/fleet"
	"tendril/queue"
)

func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	c := startCloud(t)
	for name, test := range map[string]func(*testing.T, *amazon){
		"a member": testMember, "a leader would set is idle": testIdleLeader, "publishing": testPublishing, "not a member": testNotAMember,
		"the group's own bounds": testOwnBounds, "tasks that nobody schedules": testNotScheduled,
		"tasks that come later": testTasksInAFleet, "the group's metric": testGroupMetric,
	} {
		c.reset(t)
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

func testMember(t *testing.T, c *amazon) {
	id := makeFleet(t, c)
	var leaving atomic.Bool
	startMetadata(t, id, &leaving)
	queueURL := makeQueue(t, c, 20)
	app, release := slowApp(t)

	r := run(t, map[string]string{
		"queue-url": queueURL, "target": app, "http-connections": "1", "scale-target": "asg:workers", "scale-cooldown": "0",
		"scale-max-size":     "3",
		"scale-measure-name": "BacklogPerProcess", "scale-lower-threshold": "1", "scale-upper-threshold": "5",
		"scale-period": "1s",
	}, func(e *Environment) {
		e.scale.fleetTiming = fleet.Timing{ProtectAfter: -1, Look: 50 * time.Millisecond, Poll: 50 * time.Millisecond}
	})

	eventually(t, "a group of three", func() bool { return group(t, c).Desired == 3 })
	eventually(t, "protection of this instance, and of no other", func() bool {
		return fmt.Sprint(group(t, c).protected()) == fmt.Sprint([]string{id})
	})
	eventually(t, "the size in the status", func() bool { return r.scale.scalingStatus().Desired == 3 })
	st := r.scale.scalingStatus()
	if st.Target != "asg:workers" || st.MaxSize != 3 || st.Desired != 3 || !st.IsLeader || st.Problem != "" ||
		len(st.Decisions) == 0 {
		t.Errorf("the status is %+v", st)
	}
	eventually(t, "all members, and this one in place of itself", func() bool {
		known := r.members.knownInstances()
		self := known.Instances[0]
		return len(known.Instances) == 3 && strings.HasPrefix(self.Name, id+", ") && self.Protected != nil &&
			*self.Protected && self.State == "running, InService" && known.Instances[1].Source == "asg:workers" &&
			known.Instances[1].Version == "" && !known.Instances[1].SeenAt.IsZero()
	})
	if made := r.scale.scaleDecisions(); made.Advice || len(made.Decisions) == 0 || made.Decisions[0].Inputs == nil ||
		made.Decisions[0].Inputs.Backlog == nil {
		t.Errorf("the decisions are %+v", made)
	}
	if scale := r.scale.scale(); scale.Desired != 3 || scale.Backlog == 0 || scale.Queues["jobs"].Backlog != scale.Backlog {
		t.Errorf("a scaler outside reads %+v", scale)
	}
	if !strings.Contains(r.log.String(), "assuming that no other instance") {
		t.Error("it should say that it assuming that no other instance")
	}

	leaving.Store(true)
	<-r.life.draining
	if calls := c.lifecycle(); len(calls) > 0 {
		t.Errorf("the group was told before the drain: %v", calls)
	}
	release()
	if err := <-r.done; err != nil {
		t.Errorf("the end: %v", err)
	}
	calls := c.lifecycle()
	if len(calls) != 1 || calls[0].Get("Action") != "CompleteLifecycleAction" || calls[0].Get("InstanceId") != id ||
		calls[0].Get("LifecycleHookName") != "drain" || calls[0].Get("LifecycleActionResult") != "CONTINUE" {
		t.Errorf("the group was told %v", calls)
	}
	if left := group(t, c).protected(); len(left) > 0 {
		t.Errorf("still protected: %v", left)
	}
	if !strings.Contains(r.log.String(), "instance drained, its group may terminate it") {
		t.Error("the log should tell of the departure")
	}
}

// One instance's load must not scale in a group of three.
func testIdleLeader(t *testing.T, c *amazon) {
	startMetadata(t, makeFleet(t, c), new(atomic.Bool))
	c.ask(t, "autoscaling", "SetDesiredCapacity", "AutoScalingGroupName", "workers", "DesiredCapacity", "3")
	app, release := slowApp(t)
	release()
	r := run(t, map[string]string{"queue-url": makeQueue(t, c, 0), "target": app, "scale-target": "asg:workers",
		"scale-cooldown": "0", "scale-measure-name": "BusyShare", "scale-period": "1s", "scale-breach-duration": "1s"}, nil)

	eventually(t, "a held scale-in", func() bool { return strings.Contains(r.scale.scalingStatus().Problem, "scale-in is held") })
	if d := group(t, c).Desired; d != 3 {
		t.Errorf("the group has %d instances, want 3", d)
	}
	made := r.scale.scaleDecisions().Decisions // a later one may lack a reading
	held := slices.IndexFunc(made, func(d api.ScaleDecision) bool { return d.Rule == "scale-in held" })
	if held < 0 || !strings.Contains(made[held].Why, "only this one of 3 instances") {
		t.Errorf("the decisions are %+v", made)
	}
	eventually(t, "a cause of the health", func() bool {
		return strings.Contains(strings.Join(r.observe.monitor.Report().Causes, " "), "The group keeps its size. Scale-in is held")
	})
	if !strings.Contains(r.log.String(), `"msg":"scale-in held"`) {
		t.Error("the log does not say that scale-in is held")
	}
}

func testGroupMetric(t *testing.T, c *amazon) {
	startMetadata(t, makeFleet(t, c), new(atomic.Bool))
	app, release := slowApp(t)
	release()
	queueURL := makeQueue(t, c, 0)
	for _, test := range []struct {
		metric, statistic string
		samples           int
		rule              string
		size              int
	}{
		{"low", "Average", 3, "in", 2}, {"high", "Maximum", 3, "out", 4}, {"low in one instance", "Average", 1, "scale-in held", 3},
		{"missing", "Average", 0, "missing", 3},
	} {
		t.Run(test.metric, func(t *testing.T) {
			c.ask(t, "autoscaling", "SetDesiredCapacity", "AutoScalingGroupName", "workers", "DesiredCapacity", "3")
			metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var in struct{ EndTime float64 }
				body, _ := io.ReadAll(r.Body)
				if err := json.Unmarshal(body, &in); err != nil || !strings.Contains(string(body), `"workers"`) {
					t.Errorf("the request is %s: %v", body, err)
				}
				answer := "{}"
				if test.samples > 0 { // an average of 4 percent and a maximum of 95
					answer = fmt.Sprintf(`{"Datapoints":[{"Timestamp":%.0f,"SampleCount":%d,"Sum":%d,"Minimum":1,"Maximum":95}]}`,
						in.EndTime-60, test.samples, 4*test.samples)
				}
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				io.WriteString(w, answer)
			}))
			t.Cleanup(metrics.Close)
			t.Setenv("AWS_ENDPOINT_URL_CLOUDWATCH", metrics.URL)
			r := run(t, map[string]string{"queue-url": queueURL, "target": app, "scale-target": "asg:workers", "scale-cooldown": "0",
				"scale-measure-name": "CPUUtilization", "scale-cpu-source": "cloudwatch", "scale-statistic": test.statistic,
				"scale-lower-threshold": "5", "scale-upper-threshold": "90", "scale-period": "60s"}, nil)
			eventually(t, "a decision", func() bool { return len(r.scale.scaleDecisions().Decisions) > 0 })
			made := r.scale.scaleDecisions().Decisions
			if first := made[len(made)-1]; first.Rule != test.rule || first.Desired != test.size {
				t.Errorf("the decision is %s to %d: %s, want %s to %d", first.Rule, first.Desired, first.Why, test.rule, test.size)
			}
			if d := group(t, c).Desired; d != test.size {
				t.Errorf("the group has %d instances, want %d", d, test.size)
			}
			if err := r.end(); err != nil {
				t.Errorf("the end: %v", err)
			}
		})
	}
}

func testPublishing(t *testing.T, c *amazon) {
	t.Setenv("TENDRIL_INSTANCE_ID", makeFleet(t, c))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	c.ask(t, "autoscaling", "SetDesiredCapacity", "AutoScalingGroupName", "workers", "DesiredCapacity", "4")
	app, release := slowApp(t)
	r := run(t, map[string]string{"name": "shop", "queue-url": makeQueue(t, c, 20), "target": app,
		"http-connections": "1", "scale-target": "publish"}, nil)
	eventually(t, "figures", func() bool { return c.metrics() != "" })
	release()
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	got := regexp.MustCompile(`"Maximum":([0-9.]+)`).FindStringSubmatch(c.metrics())
	if !strings.Contains(c.metrics(), `"tendril/shop"`) || !strings.Contains(c.metrics(), `"BacklogPerInstance"`) ||
		len(got) == 0 {
		t.Fatalf("published: %s", c.metrics())
	}
	// One of the 20 messages is in flight, the group has 4 instances, and SQS counts are approximate.
	if got[1] != "4.75" && got[1] != "5" {
		t.Errorf("the backlog of each is %s, want 19 or 20 divided by 4", got[1])
	}
}

// An instance outside the group must still scale it.
func testNotAMember(t *testing.T, c *amazon) {
	makeFleet(t, c)
	t.Setenv("TENDRIL_INSTANCE_ID", "i-00000000000000000")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	server := run(t, nil, func(e *Environment) { e.opts.QueuesOnly = true })
	makeDead(t, server, 2)
	t.Setenv("AWS_ENDPOINT_URL_SQS", server.queues.endpoint)
	app, release := slowApp(t)
	defer release()
	r := run(t, map[string]string{
		"queue-url": server.queues.endpoint + "/000000000000/jobs", "target": app, "scale-target": "asg:workers",
		"scale-min-size":     "2",
		"scale-measure-name": "BusyShare", "scale-period": "1s", // short, because the first readings precede the election
	}, nil)
	eventually(t, "a group of two", func() bool { return group(t, c).Desired == 2 })
	eventually(t, "a warning", func() bool {
		return strings.Contains(r.log.String(), "instance not found in any Auto Scaling group") &&
			strings.Contains(r.scale.scalingStatus().Problem, "is not in the group workers")
	})
	if log := r.log.String(); !strings.Contains(log, `"msg":"leadership acquired","component":"leader","lease":"periodic:jobs"`) ||
		strings.Contains(log, "assuming that no other instance") {
		t.Error("a leader should be elected")
	}
	eventually(t, "the dead letters", func() bool {
		d, known := r.work.depths.read("jobs", time.Now())
		return known && d.hasDeadLetters && d.deadLetters == 2 && d.deadLettered == 2 && d.backlog == 0 && d.hasAge
	})
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if r.scale.fleet.IsLeader() || !strings.Contains(r.log.String(), `"msg":"leadership lost","component":"leader","lease":"periodic:jobs"`) {
		t.Error("the lease should be given back")
	}
	if got := group(t, c).protected(); len(got) > 0 || len(c.lifecycle()) > 0 {
		t.Errorf("protected: %v, told: %v", got, c.lifecycle())
	}
}

func testOwnBounds(t *testing.T, c *amazon) {
	t.Setenv("TENDRIL_INSTANCE_ID", makeFleet(t, c))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	c.ask(t, "autoscaling", "UpdateAutoScalingGroup", "AutoScalingGroupName", "workers", "MinSize", "2", "MaxSize", "20",
		"DesiredCapacity", "10")
	app, release := slowApp(t)
	r := run(t, map[string]string{"queue-url": makeQueue(t, c, 5), "target": app, "scale-target": "asg:workers"}, nil)
	eventually(t, "the size of the group", func() bool { return r.scale.scalingStatus().Desired != 0 })
	if st := r.scale.scalingStatus(); st.Desired != 10 || st.MinSize != 2 || st.MaxSize != 20 || group(t, c).Desired != 10 {
		t.Errorf("the group has %d, and the status is %+v", group(t, c).Desired, st)
	}
	eventually(t, "figures of the queue", func() bool {
		all := r.work.queueReadings()
		return len(all) == 1 && all[0].Name == "jobs" && all[0].Visible+all[0].InFlight == 5
	})
	release()
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func testNotScheduled(t *testing.T, c *amazon) {
	cron := writeTasks(t, "version: 1\ncron:\n  - {name: tidy, url: /tidy, schedule: \"0 3 * * *\"}\n")
	r := run(t, map[string]string{"queue-url": makeQueue(t, c, 0), "target": "http://127.0.0.1:1/", "cron": cron}, nil)
	if st := r.cron.tasks.Status(); len(st.Tasks) != 1 || !strings.Contains(st.Off, "--registry-table") {
		t.Errorf("the status is %+v", st)
	}
	if done, err := r.changes.reloadChanged(t.Context()); err != nil || done.File != cron || done.Tasks != 1 ||
		!strings.Contains(done.NotScheduled, "--registry-table") {
		t.Errorf("a reload: %+v, %v", done, err)
	}
	if err := r.cron.tasks.Reload(); err == nil || !strings.Contains(err.Error(), "nothing is scheduled: ") {
		t.Errorf("a reload of the tasks: %v", err)
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func testTasksInAFleet(t *testing.T, c *amazon) {
	startMetadata(t, makeFleet(t, c), new(atomic.Bool))
	r := run(t, map[string]string{"queue-url": makeQueue(t, c, 0), "target": "http://127.0.0.1:1/",
		"scale-target": "publish", "registry-table": "registry", "registry-create": "true"}, nil)
	eventually(t, "somebody in charge", r.scale.fleet.IsLeader)
	if err := r.cron.tasks.Adopt(t.Context(), writeTasks(t, minutely)); err != nil {
		t.Fatal(err)
	}
	if !r.cron.leads() || !r.scale.fleet.IsLeader() {
		t.Error("another one enqueues the tasks")
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if r.cron.leads() || r.scale.fleet.IsLeader() {
		t.Error("it still leads")
	}
}

func makeDead(t *testing.T, server *running, messages int) {
	t.Helper()
	b, ctx := server.queues.broker, t.Context()
	for _, name := range []string{"jobs-dead", "jobs"} {
		if err := b.CreateQueue(ctx, name, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SetAttributes(ctx, "jobs",
		map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":3}`,
			b.ARN("jobs-dead"))}); err != nil {
		t.Fatal(err)
	}
	for range messages {
		if _, err := b.Queue("jobs-dead").Send(ctx, []queue.Outgoing{{Body: "done for"}}); err != nil {
			t.Fatal(err)
		}
	}
}

type fleetGroup struct {
	Desired   int `xml:"DescribeAutoScalingGroupsResult>AutoScalingGroups>member>DesiredCapacity"`
	Instances []struct {
		ID        string `xml:"InstanceId"`
		Protected bool   `xml:"ProtectedFromScaleIn"`
	} `xml:"DescribeAutoScalingGroupsResult>AutoScalingGroups>member>Instances>member"`
}

func (f fleetGroup) protected() (ids []string) {
	for _, i := range f.Instances {
		if i.Protected {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

func group(t *testing.T, c *amazon) (g fleetGroup) {
	t.Helper()
	answer := c.ask(t, "autoscaling", "DescribeAutoScalingGroups", "AutoScalingGroupNames.member.1", "workers")
	if err := xml.Unmarshal([]byte(answer), &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func makeFleet(t *testing.T, c *amazon) (id string) {
	t.Helper()
	c.ask(t, "autoscaling", "CreateLaunchConfiguration", "LaunchConfigurationName", "one", "ImageId", "ami-12c6146b",
		"InstanceType", "t2.micro")
	c.ask(t, "autoscaling", "CreateAutoScalingGroup", "AutoScalingGroupName", "workers", "LaunchConfigurationName", "one",
		"AvailabilityZones.member.1", "eu-west-1a", "MinSize", "1", "MaxSize", "5", "DesiredCapacity", "1")
	c.ask(t, "autoscaling", "PutLifecycleHook", "AutoScalingGroupName", "workers", "LifecycleHookName", "drain",
		"LifecycleTransition", "autoscaling:EC2_INSTANCE_TERMINATING", "HeartbeatTimeout", "300")
	return group(t, c).Instances[0].ID
}

func makeQueue(t *testing.T, c *amazon, messages int) (queueURL string) {
	t.Helper()
	answer := c.ask(t, "sqs", "CreateQueue", "QueueName", "jobs", "Version", "2012-11-05")
	found := regexp.MustCompile(`<QueueUrl>(.+)</QueueUrl>`).FindStringSubmatch(answer)
	if found == nil {
		t.Fatalf("no URL in %s", answer)
	}
	for range messages {
		c.ask(t, "sqs", "SendMessage", "QueueUrl", found[1], "MessageBody", "work", "Version", "2012-11-05")
	}
	return found[1]
}

func startMetadata(t *testing.T, id string, leaving *atomic.Bool) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
			io.WriteString(w, "token")
		case "/latest/meta-data/instance-id":
			io.WriteString(w, id)
		case "/latest/meta-data/autoscaling/target-lifecycle-state":
			io.WriteString(w, map[bool]string{true: "Terminated", false: "InService"}[leaving.Load()])
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
}

func slowApp(t *testing.T) (address string, release func()) {
	t.Helper()
	released := make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(func() {
		release()
		app.Close()
	})
	return app.URL, release
}
