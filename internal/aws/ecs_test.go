package aws

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestTaskIsNeeded(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"169.254.170.2", "file:///x", "http://", ":"} {
		if _, err := NewECSTask(uri); err == nil || !strings.Contains(err.Error(), "ECS_AGENT_URI") {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

func TestTaskProtection(t *testing.T) {
	t.Parallel()
	const yes, no = `{"protection":{"ExpirationDate":"2026-11-22T01:00:00Z","ProtectionEnabled":true,"TaskArn":"arn"}}`,
		`{"protection":{"ProtectionEnabled":false,"TaskArn":"arn"}}`
	for _, tt := range []struct {
		on      bool
		status  int
		answer  string
		code    string
		message string
	}{
		{true, 200, yes, "", ""},
		{false, 200, no, "", ""},
		{true, 200, no, queue.CodeUnreachable, "does not confirm"},
		{false, 200, yes, queue.CodeUnreachable, "does not confirm"},
		{true, 200, `{"failure":{"Arn":"arn","Detail":null,"Reason":"TASK_NOT_VALID"}}`, queue.CodeInvalidParameterValue,
			"ECS: TASK_NOT_VALID"},
		{true, 200, `{"failure":{"Reason":"DEPLOYMENT_BLOCKED","Detail":"it lasts too long"}}`,
			queue.CodeInvalidParameterValue, "DEPLOYMENT_BLOCKED: it lasts too long"},
		{true, 400, `{"requestID":"1","error":{"Arn":"arn","Code":"AccessDeniedException","Message":"is not authorized"}}`,
			queue.CodeAccessDenied, "needs ecs:UpdateTaskProtection: is not authorized"},
		{true, 500, `{"error":{"Code":"ServerException","Message":""}}`, queue.CodeUnreachable, "ECS: ServerException"},
		{true, 404, "page not found", queue.CodeUnreachable, "status 404"},
		{true, 200, strings.Repeat(" ", maxAgentAnswer) + yes, queue.CodeUnreachable, "does not confirm"},
	} {
		var asked string
		agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.answer)
		}))
		task, err := NewECSTask(agent.URL + "/api/1/")
		if err != nil {
			t.Fatal(err)
		}
		err = task.Protect(t.Context(), tt.on)
		want := `PUT /api/1/task-protection/v1/state application/json {"ProtectionEnabled":false}`
		if tt.on {
			want = `PUT /api/1/task-protection/v1/state application/json {"ProtectionEnabled":true,"ExpiresInMinutes":60}`
		}
		if asked != want {
			t.Errorf("asked %s\nwant %s", asked, want)
		}
		var known *queue.Error
		if tt.code == "" && err != nil || tt.code != "" &&
			(!errors.As(err, &known) || known.Code != tt.code || !strings.Contains(err.Error(), tt.message)) {
			t.Errorf("%.100s: %v, want %s %q", tt.answer, err, tt.code, tt.message)
		}
		agent.Close()
		absent, err := NewECSTask("http://127.0.0.1:" + testpeer.FreePort(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := absent.Protect(t.Context(), true); !errors.Is(err, &queue.Error{Code: queue.CodeUnreachable}) {
			t.Errorf("without an agent: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := task.Protect(gone, true); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	}
}

func TestTaskPlace(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:ecs:eu-west-1:123456789012:task/jobs/0123456789abcdef"
	for answer, want := range map[string]TaskPlace{
		`{"Cluster":"jobs","TaskARN":"` + arn + `","ServiceName":"worker"}`: {Cluster: "jobs", ARN: arn, Region: "eu-west-1",
			Service: "worker"},
		`{"Cluster":"arn:aws:ecs:eu-west-1:123456789012:cluster/jobs","TaskARN":"` + arn + `"}`: {Cluster: "jobs", ARN: arn,
			Region: "eu-west-1"},
		`{"Cluster":"jobs"}`: {}, `not JSON`: {},
	} {
		agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, answer)
		}))
		got, err := ReadTaskPlace(t.Context(), agent.URL+"/v4/x")
		agent.Close()
		if got != want || (err == nil) != (want != TaskPlace{}) {
			t.Errorf("%s: %+v, %v", answer, got, err)
		}
	}
	if _, err := ReadTaskPlace(t.Context(), "169.254.170.2"); err == nil ||
		!strings.Contains(err.Error(), "ECS_CONTAINER_METADATA_URI_V4") {
		t.Errorf("an invalid address: %v", err)
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := ReadTaskPlace(late, "http://127.0.0.1:1/v4/x")
	wantCode(t, err, queue.CodeUnreachable, "the container agent of Amazon ECS: no response: ")
}

func TestOpenECSNeedsARegionForEachServiceOfAWS(t *testing.T) {
	for variable, other := range map[string]string{"AWS_ENDPOINT_URL_ECS": "Application Auto Scaling",
		"AWS_ENDPOINT_URL_APPLICATION_AUTO_SCALING": "Amazon ECS"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "http://127.0.0.1:1")
			_, err := OpenECS(t.Context(), nil)
			wantCode(t, err, queue.CodeInvalidParameterValue, "no AWS region for "+other+": set AWS_REGION")
		})
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	if _, err := OpenECS(t.Context(), nil); err != nil {
		t.Errorf("with an endpoint for both: %v", err)
	}
}

func TestServiceOfATask(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"tasks":[{"group":"service:worker"}]}`: "worker",
		`{"tasks":[{"group":"family:worker"}]}`:  "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			io.WriteString(w, answer)
		}))
		e, err := OpenECS(t.Context(), &Options{Region: "eu-west-1", Endpoint: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		e.api = newClient(ecs.New(e.api.get().Options(), func(o *ecs.Options) {
			o.Credentials = credentials.NewStaticCredentialsProvider("test", "test", "")
		}))
		if got, err := e.ServiceOf(t.Context(), "jobs", "task"); got != want || err != nil {
			t.Errorf("%s: %q, %v", answer, got, err)
		}
		e.Close()
		server.Close()
	}
}
