package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"tendril/queue"
)

type scalingStandIn struct {
	mu     sync.Mutex
	asked  []url.Values
	status int
	body   string
}

func (s *scalingStandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err == nil {
		s.asked = append(s.asked, r.PostForm)
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(s.status)
	fmt.Fprint(w, s.body)
}

func openStandIn(t *testing.T, s *scalingStandIn) *AutoScaling {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	a, err := OpenAutoScaling(context.Background(), &Options{Region: "eu-west-1", Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	o := a.api.get().Options()
	o.Retryer = sdk.NopRetryer{}
	a.api = newClient(autoscaling.New(o))
	return a
}

func scalingAnswer(action string) string {
	return fmt.Sprintf(`<%[1]sResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><%[1]sResult></%[1]sResult>`+
		`<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></%[1]sResponse>`, action)
}

func scalingRefusal(code, message string) string {
	return fmt.Sprintf(`<ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><Error><Type>Sender</Type>`+
		`<Code>%s</Code><Message>%s</Message></Error><RequestId>1</RequestId></ErrorResponse>`, code, message)
}

// Source: Amazon EC2 Auto Scaling API Reference, version 2011-01-01.
func TestScalingCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action string
		call   func(context.Context, *Group) error
		want   string
	}{
		{"SetDesiredCapacity", func(ctx context.Context, g *Group) error { return g.SetSize(ctx, 7) },
			"AutoScalingGroupName=workers DesiredCapacity=7 HonorCooldown=false"},
		{"SetInstanceProtection", func(ctx context.Context, g *Group) error {
			return g.Member("i-1", TerminationHooks{}).Protect(ctx, true)
		},
			"AutoScalingGroupName=workers InstanceIds.member.1=i-1 ProtectedFromScaleIn=true"},
		{"RecordLifecycleActionHeartbeat", func(ctx context.Context, g *Group) error {
			return g.Member("i-1", TerminationHooks{All: []string{"drain"}}).Heartbeat(ctx)
		},
			"AutoScalingGroupName=workers InstanceId=i-1 LifecycleHookName=drain"},
		{"CompleteLifecycleAction", func(ctx context.Context, g *Group) error {
			return g.Member("i-1", TerminationHooks{Own: []string{"drain"}}).Complete(ctx)
		},
			"AutoScalingGroupName=workers InstanceId=i-1 LifecycleHookName=drain LifecycleActionResult=CONTINUE"},
	} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			s := &scalingStandIn{status: 200, body: scalingAnswer(c.action)}
			if err := c.call(context.Background(), openStandIn(t, s).Group("workers")); err != nil {
				t.Fatal(err)
			}
			if len(s.asked) != 1 {
				t.Fatalf("there were %d calls", len(s.asked))
			}
			got := s.asked[0]
			if got.Get("Action") != c.action || got.Get("Version") != "2011-01-01" {
				t.Errorf("the call is %v", got)
			}
			fields := strings.Fields(c.want)
			for _, field := range fields {
				if name, value, _ := strings.Cut(field, "="); got.Get(name) != value {
					t.Errorf("%s is %q, want %q", name, got.Get(name), value)
				}
			}
			if len(got) != len(fields)+2 {
				t.Errorf("there is more in %v", got)
			}
		})
	}
}

func hookAnswer(hooks ...string) string {
	members := ""
	for _, h := range hooks {
		name, target, _ := strings.Cut(h, " ")
		members += "<member><LifecycleHookName>" + name + "</LifecycleHookName><NotificationTargetARN>" + target +
			"</NotificationTargetARN><LifecycleTransition>autoscaling:EC2_INSTANCE_TERMINATING</LifecycleTransition></member>"
	}
	members += "<member><LifecycleHookName>boot</LifecycleHookName>" +
		"<LifecycleTransition>autoscaling:EC2_INSTANCE_LAUNCHING</LifecycleTransition></member>"
	return strings.Replace(scalingAnswer("DescribeLifecycleHooks"), "<DescribeLifecycleHooksResult>",
		"<DescribeLifecycleHooksResult><LifecycleHooks>"+members+"</LifecycleHooks>", 1)
}

func TestAllTerminationHooksAreExtendedAndThoseWithoutAConsumerCompleted(t *testing.T) {
	t.Parallel()
	const topic = " arn:aws:sns:eu-west-1:123456789012:leaving"
	for _, c := range []struct{ hooks, extended, completed []string }{
		{hooks: nil},
		{[]string{"drain"}, []string{"drain"}, []string{"drain"}},
		{[]string{"drain", "flush"}, []string{"drain", "flush"}, []string{"drain", "flush"}},
		{[]string{"logs" + topic, "drain"}, []string{"logs", "drain"}, []string{"drain"}},
		{[]string{"drain" + topic}, []string{"drain"}, []string{"drain"}},
	} {
		s := &scalingStandIn{status: 200, body: hookAnswer(c.hooks...)}
		g := openStandIn(t, s).Group("workers")
		hooks, err := g.TerminationHooks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		called := func(action string, call func(context.Context) error) (names []string) {
			s.asked, s.body = nil, scalingAnswer(action)
			if err := call(t.Context()); err != nil {
				t.Errorf("%v: %v", c.hooks, err)
			}
			for _, asked := range s.asked {
				names = append(names, asked.Get("LifecycleHookName"))
			}
			return names
		}
		m := g.Member("i-1", hooks)
		extended := called("RecordLifecycleActionHeartbeat", m.Heartbeat)
		completed := called("CompleteLifecycleAction", m.Complete)
		if !slices.Equal(extended, c.extended) || !slices.Equal(completed, c.completed) {
			t.Errorf("of %q, %q were extended and %q completed", c.hooks, extended, completed)
		}
		s.status, s.body = 400, scalingRefusal("ValidationError", "No active Lifecycle Action found with instance ID i-1")
		if err := m.Complete(t.Context()); err != nil {
			t.Errorf("%v, which another program has completed: %v", c.hooks, err)
		}
		s.status, s.body = 403, scalingRefusal("AccessDenied", "User is not authorized")
		if err := m.Complete(t.Context()); (err == nil) != (len(c.hooks) == 0) {
			t.Errorf("%v without permission: %v", c.hooks, err)
		}
	}
}

func TestScalingRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status        int
		code, message string
		want, says    string
	}{
		{400, "ValidationError", "AutoScalingGroup name not found - AutoScalingGroup workers not found",
			queue.CodeResourceNotFound, "check the names, the account and the region"},
		{400, "ValidationError", "No active Lifecycle Action found with instance ID i-1", queue.CodeResourceNotFound,
			"No active Lifecycle Action"},
		{400, "ValidationError", "New SetDesiredCapacity value 9 is above max value 5 for the AutoScalingGroup.",
			queue.CodeInvalidParameterValue, "above max value 5"},
		{403, "AccessDenied", "User is not authorized", queue.CodeAccessDenied,
			"allow these credentials autoscaling:SetDesiredCapacity"},
		{400, "Throttling", "Rate exceeded", queue.CodeRequestThrottled, "Rate exceeded"},
		{500, "ResourceContention", "an update is pending", queue.CodeRequestThrottled, "an update is pending"},
		{403, "ScalingActivityInProgress", "one is in progress", queue.CodeRequestThrottled, "one is in progress"},
		{503, "ServiceUnavailable", "later", queue.CodeUnreachable, "later"},
	} {
		a := openStandIn(t, &scalingStandIn{status: c.status, body: scalingRefusal(c.code, c.message)})
		err := a.Group("workers").SetSize(context.Background(), 9)
		if !errors.Is(err, &queue.Error{Code: c.want}) || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "workers") {
			t.Errorf("%s became %v", c.code, err)
		}
	}
}

func TestUnreachableAutoScaling(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	a, err := OpenAutoScaling(context.Background(), &Options{Region: "eu-west-1", Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	late, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := a.Group("workers").SetSize(late, 1); !errors.Is(err, queue.ErrUnreachable) ||
		!strings.Contains(err.Error(), "did not respond in time") {
		t.Errorf("the error is %v", err)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if err := a.Group("workers").SetSize(stopped, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func metadata(t *testing.T, values map[string]string) *Instance {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut {
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
			fmt.Fprint(w, "a token")
			return
		}
		value, ok := values[strings.TrimPrefix(r.URL.Path, "/latest/meta-data/")]
		if r.Header.Get("X-Aws-Ec2-Metadata-Token") != "a token" {
			w.WriteHeader(http.StatusUnauthorized)
		} else if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintln(w, value)
	}))
	t.Cleanup(server.Close)
	i, err := NewInstance(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestInstance(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	ctx := context.Background()
	in := metadata(t, map[string]string{"instance-id": "i-0abc", "placement/region": "eu-west-1",
		"autoscaling/target-lifecycle-state": "InService"})
	if id, err := in.InstanceID(ctx); id != "i-0abc" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if region, err := in.Region(ctx); region != "eu-west-1" || err != nil {
		t.Errorf("%q, %v", region, err)
	}
	if leaving, err := in.Leaving(ctx); leaving || err != nil {
		t.Errorf("%v, %v", leaving, err)
	}
	if leaving, err := metadata(t,
		map[string]string{"autoscaling/target-lifecycle-state": "Terminated"}).Leaving(ctx); !leaving || err != nil {
		t.Errorf("%v, %v", leaving, err)
	}
	alone := metadata(t, nil)
	if leaving, err := alone.Leaving(ctx); leaving || err != nil {
		t.Errorf("an instance of no group: %v, %v", leaving, err)
	}
	if _, err := alone.InstanceID(ctx); !errors.Is(err, queue.ErrUnreachable) ||
		!strings.Contains(err.Error(), "TENDRIL_INSTANCE_ID") {
		t.Errorf("the error is %v", err)
	}
	late, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	_, err := in.InGroup(late)
	wantCode(t, err, queue.CodeUnreachable, "reading autoscaling/target-lifecycle-state from the instance metadata failed: ")
	t.Setenv("TENDRIL_INSTANCE_ID", "i-given")
	if id, err := alone.InstanceID(ctx); id != "i-given" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

func TestInstanceOutsideEC2(t *testing.T) {
	t.Parallel()
	i, err := NewInstance("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Leaving(context.Background()); !errors.Is(err, queue.ErrUnreachable) {
		t.Errorf("the error is %v", err)
	}
	if _, err := NewInstance("169.254.169.254"); err == nil || !strings.Contains(err.Error(), "is not a URL") {
		t.Errorf("the error is %v", err)
	}
	if _, err := OpenAutoScaling(context.Background(), nil); err == nil ||
		!strings.Contains(err.Error(), "set AWS_REGION") {
		t.Errorf("the error is %v", err)
	}
}

func TestScalingEndpointOfTheEnvironment(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_AUTO_SCALING", "http://127.0.0.1:9")
	a, err := OpenAutoScaling(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if o := a.api.get().Options(); sdk.ToString(o.BaseEndpoint) != "http://127.0.0.1:9" || o.Region == "" {
		t.Errorf("the endpoint is %v in %q", sdk.ToString(o.BaseEndpoint), o.Region)
	}
}
