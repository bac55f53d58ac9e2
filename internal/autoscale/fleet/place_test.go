package fleet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"tendril/internal/aws"
)

func TestPlaceHasTheFormatOfTheOption(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Place{"processes": {}, "asg:workers": {Group: "workers"},
		"ecs:prod/web": {Cluster: "prod", Service: "web"}} {
		if got := p.String(); got != want || p.Alone() != (want == "processes") {
			t.Errorf("%+v is %q, alone %t", p, got, p.Alone())
		}
	}
}

func TestPodIsNotInAGroup(t *testing.T) {
	t.Setenv(metadataVariable, "")
	t.Setenv(kubernetesVariable, "10.0.0.1")
	t.Setenv("TENDRIL_INSTANCE_ID", "i-0123456789abcdef0")
	if p, err := Find(t.Context(), "eu-west-1", nil); err != nil || p != (Place{}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func fakeECS(t *testing.T, metadata string, answers map[string]string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v4/task" {
			if metadata == "" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			fmt.Fprint(w, metadata)
			return
		}
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		answer, known := answers[action]
		if !known {
			t.Errorf("asked for %s", action)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_ENDPOINT_URL": server.URL, "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_MAX_ATTEMPTS": "1", metadataVariable: server.URL + "/v4"} {
		t.Setenv(name, value)
	}
}

const task = `{"Cluster":"arn:aws:ecs:eu-west-1:123456789012:cluster/prod",` +
	`"TaskARN":"arn:aws:ecs:eu-west-1:123456789012:task/prod/1"`

func TestServiceOfATaskIsFound(t *testing.T) {
	found := func(group string) string { return `{"tasks":[{"group":"` + group + `"}],"failures":[]}` }
	size := `{"services":[{"serviceName":"web","status":"ACTIVE","runningCount":3,"desiredCount":4}],"failures":[]}`
	for _, tt := range []struct {
		name, metadata string
		answers        map[string]string
		want           Place
		count          int
	}{
		{"the agent names it", task + `,"ServiceName":"web"}`, map[string]string{
			"DescribeScalableTargets": `{"ScalableTargets":[]}`, "DescribeServices": size},
			Place{Cluster: "prod", Service: "web"}, 3},
		{"the service names it", task + "}", map[string]string{"DescribeTasks": found("service:web"),
			"DescribeScalableTargets": `{"ScalableTargets":[]}`, "DescribeServices": size},
			Place{Cluster: "prod", Service: "web"}, 3},
		{"a task on its own", task + "}", map[string]string{"DescribeTasks": found("family:web")}, Place{}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakeECS(t, tt.metadata, tt.answers)
			if p, err := Find(t.Context(), "", nil); err != nil || p != tt.want {
				t.Errorf("%+v, %v; want %+v", p, err, tt.want)
			}
			tasks := serviceTasks{connection: &aws.Options{}}
			for range 2 {
				if n, err := tasks.count(t.Context()); err != nil || n != tt.count {
					t.Errorf("%d tasks, %v; want %d", n, err, tt.count)
				}
			}
			if tasks.api != nil {
				tasks.api.Close()
			}
		})
	}
}

func TestTaskThatCannotBeFoundIsAnError(t *testing.T) {
	for name, metadata := range map[string]string{"the agent fails": "", "the task is gone": task + "}"} {
		t.Run(name, func(t *testing.T) {
			fakeECS(t, metadata, map[string]string{"DescribeTasks": `{"tasks":[],"failures":[]}`})
			if p, err := Find(t.Context(), "", nil); err == nil {
				t.Errorf("found %+v", p)
			}
			tasks := serviceTasks{connection: &aws.Options{}}
			if n, err := tasks.count(t.Context()); err == nil {
				t.Errorf("%d tasks", n)
			}
		})
	}
}

func TestInstanceOnItsOwnIsTheLeader(t *testing.T) {
	t.Parallel()
	var f *Fleet
	if !f.IsLeader() || f.Problem() != "" || f.Members().Group != "" {
		t.Errorf("leader %t, problem %q, members %+v", f.IsLeader(), f.Problem(), f.Members())
	}
	f.Run(t.Context(), nil)
}
