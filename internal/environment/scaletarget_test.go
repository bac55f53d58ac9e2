package environment

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"tendril/internal/config"
)

func TestScaleTargetOfTheSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	t.Setenv("MOTO_ECS_SERVICE_RUNNING", "4")
	c := startCloud(t)
	for name, test := range map[string]func(*testing.T, *amazon){
		"a group": testAutoGroup, "a group that is scaled": testScaledGroup, "a group without a leader": testNoLeader,
		"a service": testAutoService, "a service that is scaled": testScaledService,
		"publishing in a service": testCountedTasks,
		"publishing elsewhere":    testPublishingElsewhere, "an instance of no group": testNoGroup,
		"a service by its name": testNamedService,
	} {
		c.reset(t)
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

func sized(t *testing.T, c *amazon, messages int) map[string]string {
	return map[string]string{"queue-url": makeQueue(t, c, messages), "target": "http://127.0.0.1:1/",
		"scale-min-size": "2", "scale-max-size": "3", "registry-table": "registry", "registry-create": "true",
		"scale-measure-name": "BusyShare", "scale-period": "1s"} // short, because the first readings precede the election
}

func wantLeft(t *testing.T, r *running, why string) {
	t.Helper()
	st := r.scale.scalingStatus()
	if st == nil || st.Target != config.ScaleNone || !strings.Contains(st.Problem, why) {
		t.Errorf("the status is %+v, want %q", st, why)
	}
	if log := r.log.String(); !strings.Contains(log, `"msg":"size not changed"`) || !strings.Contains(log, why) {
		t.Errorf("the log does not say %q", why)
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func testAutoGroup(t *testing.T, c *amazon) {
	startMetadata(t, makeFleet(t, c), new(atomic.Bool))
	r := run(t, sized(t, c, 0), nil)
	eventually(t, "a group of two", func() bool { return group(t, c).Desired == 2 })
	if st := r.scale.scalingStatus(); st.Target != "asg:workers" || st.MinSize != 2 || st.MaxSize != 3 {
		t.Errorf("the status is %+v", st)
	}
	if !strings.Contains(r.log.String(), `"msg":"scale target chosen","component":"scale","target":"asg:workers"`) {
		t.Error("the log does not say what is scaled")
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func testScaledGroup(t *testing.T, c *amazon) {
	startMetadata(t, makeFleet(t, c), new(atomic.Bool))
	c.ask(t, "autoscaling", "PutScalingPolicy", "AutoScalingGroupName", "workers", "PolicyName", "up", "PolicyType",
		"SimpleScaling", "AdjustmentType", "ChangeInCapacity", "ScalingAdjustment", "1")
	wantLeft(t, run(t, sized(t, c, 0), nil), "asg:workers is scaled by its scaling policy up")
	c.ask(t, "autoscaling", "DeletePolicy", "AutoScalingGroupName", "workers", "PolicyName", "up")
	c.ask(t, "autoscaling", "CreateOrUpdateTags", "Tags.member.1.ResourceId", "workers", "Tags.member.1.ResourceType",
		"auto-scaling-group", "Tags.member.1.Key", "eks:nodegroup-name", "Tags.member.1.Value", "jobs",
		"Tags.member.1.PropagateAtLaunch", "true")
	wantLeft(t, run(t, sized(t, c, 0), nil), "asg:workers is scaled by Amazon EKS")
	if got := group(t, c).Desired; got != 1 {
		t.Errorf("the group has the size %d", got)
	}
}

func testNoLeader(t *testing.T, c *amazon) {
	startMetadata(t, makeFleet(t, c), new(atomic.Bool))
	flags := sized(t, c, 0)
	delete(flags, "registry-table")
	delete(flags, "registry-create")
	wantLeft(t, run(t, flags, nil), "no leader is elected")
	if got := group(t, c).Desired; got != 1 {
		t.Errorf("the group has the size %d", got)
	}
}

func testNoGroup(t *testing.T, c *amazon) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
	wantLeft(t, run(t, sized(t, c, 0), nil), "no app runs here")
}

func testAutoService(t *testing.T, c *amazon) {
	makeService(t, c)
	r := run(t, sized(t, c, 0), nil)
	eventually(t, "two tasks", func() bool { return desiredTasks(t, c) == 2 })
	eventually(t, "the size in the status", func() bool { return r.scale.scalingStatus().Desired == 2 })
	if st := r.scale.scalingStatus(); st.Target != "ecs:jobs/worker" || st.MaxSize != 3 || st.Ready != 4 {
		t.Errorf("the status is %+v", st)
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func testNamedService(t *testing.T, c *amazon) {
	makeService(t, c)
	t.Setenv("ECS_CONTAINER_METADATA_URI_V4", "")
	flags := sized(t, c, 0)
	flags["scale-target"] = "ecs:jobs/worker"
	r := run(t, flags, nil)
	eventually(t, "two tasks", func() bool { return desiredTasks(t, c) == 2 })
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func testScaledService(t *testing.T, c *amazon) {
	makeService(t, c)
	c.askJSON(t, "application-autoscaling", "AnyScaleFrontendService.RegisterScalableTarget", `{"ServiceNamespace":"ecs",
		"ResourceId":"service/jobs/worker","ScalableDimension":"ecs:service:DesiredCount","MinCapacity":1,"MaxCapacity":5}`)
	wantLeft(t, run(t, sized(t, c, 0), nil), "ecs:jobs/worker is scaled by Application Auto Scaling")
	if got := desiredTasks(t, c); got != 1 {
		t.Errorf("the service wants %d tasks", got)
	}
}

func testCountedTasks(t *testing.T, c *amazon) {
	makeService(t, c)
	if got := publishedBacklog(t, c); got != "5" {
		t.Errorf("the backlog of each task is %s, want 20 divided by 4", got)
	}
}

func testPublishingElsewhere(t *testing.T, c *amazon) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if got := publishedBacklog(t, c); got != "20" {
		t.Errorf("the backlog is %s, want 20", got)
	}
}

func publishedBacklog(t *testing.T, c *amazon) string {
	t.Helper()
	r := run(t, map[string]string{"queue-url": makeQueue(t, c, 20), "target": "http://127.0.0.1:1/",
		"scale-target": config.ScalePublish}, nil)
	eventually(t, "figures", func() bool { return c.metrics() != "" })
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if strings.Contains(r.log.String(), "not found in any Auto Scaling group") {
		t.Error("it warns that it is in no group")
	}
	got := regexp.MustCompile(`"Maximum":([0-9.]+)`).FindStringSubmatch(c.metrics())
	if len(got) == 0 {
		t.Fatalf("published: %s", c.metrics())
	}
	return got[1]
}

func makeService(t *testing.T, c *amazon) {
	t.Helper()
	const ecs = "AmazonEC2ContainerServiceV20141113."
	c.askJSON(t, "ecs", ecs+"CreateCluster", `{"clusterName":"jobs"}`)
	c.askJSON(t, "ecs", ecs+"RegisterTaskDefinition",
		`{"family":"worker","containerDefinitions":[{"name":"app","image":"app","memory":100}]}`)
	c.askJSON(t, "ecs", ecs+"CreateService",
		`{"cluster":"jobs","serviceName":"worker","taskDefinition":"worker","desiredCount":1}`)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v4/x/task" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		io.WriteString(w, `{"Cluster":"arn:aws:ecs:eu-west-1:123456789012:cluster/jobs","ServiceName":"worker",
			"TaskARN":"arn:aws:ecs:eu-west-1:123456789012:task/jobs/0123456789abcdef"}`)
	}))
	t.Cleanup(agent.Close)
	t.Setenv("ECS_CONTAINER_METADATA_URI_V4", agent.URL+"/v4/x")
}

func desiredTasks(t *testing.T, c *amazon) int {
	t.Helper()
	var answer struct{ Services []struct{ DesiredCount int } }
	text := c.askJSON(t, "ecs", "AmazonEC2ContainerServiceV20141113.DescribeServices",
		`{"cluster":"jobs","services":["worker"]}`)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Services) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	return answer.Services[0].DesiredCount
}

func (a *amazon) askJSON(t *testing.T, service, target, body string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, a.URL+"/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", target)
	req.Header.Set("Authorization", fmt.Sprintf(
		"AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/%s/aws4_request, SignedHeaders=host, Signature=none", service))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s (%v)", target, res.Status, answer, err)
	}
	return string(answer)
}
