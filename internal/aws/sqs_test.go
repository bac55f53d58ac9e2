package aws

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

// The tests in this file set environment variables, so they cannot be parallel.
func TestSite(t *testing.T) {
	tests := []struct {
		name, ref        string
		env              map[string]string
		opts             *Options
		region, endpoint string
		says             string
	}{
		{name: "URL tells all", ref: cannedURL, region: "eu-west-1", endpoint: "https://sqs.eu-west-1.amazonaws.com/"},
		{name: "the queue's region wins", ref: cannedURL, env: map[string]string{"AWS_REGION": "us-west-2"},
			region: "eu-west-1", endpoint: "https://sqs.eu-west-1.amazonaws.com/"},
		{name: "old host", ref: "https://eu-west-3.queue.amazonaws.com/1/jobs", region: "eu-west-3",
			endpoint: "https://sqs.eu-west-3.amazonaws.com/"},
		{name: "China", ref: "https://sqs.cn-north-1.amazonaws.com.cn/1/jobs", region: "cn-north-1",
			endpoint: "https://sqs.cn-north-1.amazonaws.com.cn/"},
		{name: "VPC endpoint", ref: "https://vpce-0a-1.sqs.eu-west-1.vpce.amazonaws.com/1/jobs",
			region: "eu-west-1", endpoint: "https://vpce-0a-1.sqs.eu-west-1.vpce.amazonaws.com/"},
		{name: "dual stack", ref: cannedURL, env: map[string]string{"AWS_USE_DUALSTACK_ENDPOINT": "true"},
			region: "eu-west-1", endpoint: "https://sqs.eu-west-1.api.aws/"},
		{name: "a server of one's own", ref: "http://127.0.0.1:9324/0/jobs", region: "us-east-1",
			endpoint: "http://127.0.0.1:9324/"},
		{name: "a server of one's own, region set", ref: "http://127.0.0.1:9324/0/jobs",
			env:    map[string]string{"AWS_REGION": "eu-north-1"},
			region: "eu-north-1", endpoint: "http://127.0.0.1:9324/"},
		{name: "endpoint configured for SQS", ref: cannedURL,
			env: map[string]string{"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:1/base",
				"AWS_ENDPOINT_URL": "http://127.0.0.1:2"},
			region: "eu-west-1", endpoint: "http://127.0.0.1:1/base"},
		{name: "endpoint configured, and a server of one's own in the URL", ref: "http://127.0.0.1:9324/0/jobs",
			env:    map[string]string{"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:1"},
			region: "us-east-1", endpoint: "http://127.0.0.1:1/"},
		{name: "endpoint of the options", ref: "http://127.0.0.1:9324/0/jobs",
			env:  map[string]string{"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:1"},
			opts: &Options{Endpoint: "http://127.0.0.1:3"}, region: "us-east-1", endpoint: "http://127.0.0.1:3/"},
		{name: "endpoint configured for all", ref: "jobs", env: map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:2"},
			region: "us-east-1", endpoint: "http://127.0.0.1:2/"},
		{name: "name with a region", ref: "jobs", env: map[string]string{"AWS_REGION": "us-west-2"}, region: "us-west-2",
			endpoint: "https://sqs.us-west-2.amazonaws.com/"},
		{name: "name without a region", ref: "jobs", says: "no AWS region for queue jobs: set AWS_REGION"},
		{name: "endpoint that is none", ref: "jobs", env: map[string]string{"AWS_ENDPOINT_URL_SQS": "localhost:9324"},
			says: "AWS_ENDPOINT_URL_SQS"},
		{name: "region that is none", ref: "jobs", env: map[string]string{"AWS_REGION": "us east 1"}, says: "AWS_REGION"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			s, err := OpenSQS(t.Context(), test.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ref, err := ParseReference(test.ref)
			if err != nil {
				t.Fatal(err)
			}
			where, err := s.site(t.Context(), ref)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %+v, %v; want an error that says %q", where, err, test.says)
				}
				return
			}
			if err != nil || where.region != test.region || where.endpoint.String() != test.endpoint {
				t.Errorf("got %s, %s, %v; want %s, %s", where.region, where.endpoint.String(), err, test.region, test.endpoint)
			}
		})
	}
}

func TestMissingCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	s, err := OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Queue(t.Context(), cannedURL)
	if !errors.Is(err, queue.ErrDenied) {
		t.Fatalf("got %v, want access denied", err)
	}
	for _, says := range []string{"no AWS credentials", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "role"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the error %q does not name %s", err, says)
		}
	}
}

func TestProfileThatDoesNotExist(t *testing.T) {
	t.Setenv("AWS_PROFILE", "nobody")
	if _, err := OpenSQS(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "check AWS_PROFILE") {
		t.Errorf("got %v, want an error about the profile", err)
	}
}

func TestProfileOfTheOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file,
		[]byte("[profile work]\nregion = ap-south-1\naws_access_key_id = FROMPROFILE\naws_secret_access_key = s\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	s, err := OpenSQS(t.Context(), &Options{Profile: "work"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	where, err := s.site(t.Context(), Reference{Name: "jobs"})
	if err != nil || where.region != "ap-south-1" {
		t.Errorf("region %q, %v", where.region, err)
	}
	key, err := s.credentials.Retrieve(t.Context())
	if err != nil || key.AccessKeyID != "FROMPROFILE" {
		t.Errorf("key %q, %v", key.AccessKeyID, err)
	}
	s.Close()
	if s, err = OpenSQS(t.Context(), &Options{Region: "eu-south-1"}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if where, err = s.site(t.Context(), Reference{Name: "jobs"}); err != nil || where.region != "eu-south-1" {
		t.Errorf("region %q, %v", where.region, err)
	}
}

func operatorServer(t *testing.T, answers map[string]string) (endpoint string, asked map[string]map[string]any) {
	t.Helper()
	asked = map[string]map[string]any{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answer, ok := answers[action]
		if token, paged := body["NextToken"].(string); paged {
			action, answer = action+" "+token, answers[action+" "+token]
		}
		asked[action] = body
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if !ok || strings.Contains(answer, `"__type"`) {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func TestOperatorCalls(t *testing.T) {
	const url = "http://sqs.example/123456789012/jobs"
	endpoint, asked := operatorServer(t, map[string]string{
		"GetQueueUrl":                     `{"QueueUrl":"` + url + `"}`,
		"CreateQueue":                     `{"QueueUrl":"` + url + `"}`,
		"GetQueueAttributes":              `{"Attributes":{"VisibilityTimeout":"30"}}`,
		"SetQueueAttributes":              `{}`,
		"PurgeQueue":                      `{"__type":"com.amazonaws.sqs#PurgeQueueInProgress","message":"Only one PurgeQueue operation on jobs is allowed every 60 seconds."}`,
		"DeleteQueue":                     `{}`,
		"ListQueues":                      `{"QueueUrls":["` + url + `"],"NextToken":"more"}`,
		"ListQueues more":                 `{"QueueUrls":["http://sqs.example/123456789012/jobs-dead","not a URL"]}`,
		"ListDeadLetterSourceQueues":      `{"queueUrls":["` + url + `"],"NextToken":"more"}`,
		"ListDeadLetterSourceQueues more": `{"queueUrls":["other"]}`,
	})
	t.Setenv("AWS_ENDPOINT_URL_SQS", endpoint)
	ctx := t.Context()
	s, err := OpenSQS(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q, err := s.Queue(ctx, "arn:aws:sqs:eu-west-1:123456789012:jobs")
	if err != nil || q.URL() != url || q.Name() != "jobs" || q.Region() != "eu-west-1" || q.FIFO() {
		t.Fatalf("got %+v, %v", q, err)
	}
	if asked["GetQueueUrl"]["QueueOwnerAWSAccountId"] != "123456789012" {
		t.Errorf("asked %v, want the account of the ARN", asked["GetQueueUrl"])
	}
	created, err := s.Create(ctx, "jobs", map[string]string{"DelaySeconds": "1"}, map[string]string{"team": "a"})
	if err != nil || created.URL() != url {
		t.Errorf("create: %v, %v", created, err)
	}
	want := map[string]any{"QueueName": "jobs", "Attributes": map[string]any{"DelaySeconds": "1"},
		"tags": map[string]any{"team": "a"}}
	if diff := cmp.Diff(want, asked["CreateQueue"]); diff != "" {
		t.Errorf("create:\n%s", diff)
	}
	listed, err := s.List(ctx, "jo")
	if err != nil || len(listed) != 2 || listed[1].Name() != "jobs-dead" ||
		asked["ListQueues"]["QueueNamePrefix"] != "jo" {
		t.Errorf("list: %v, %v", listed, err)
	}
	if attrs, err := q.Attributes(ctx); err != nil || attrs["VisibilityTimeout"] != "30" {
		t.Errorf("attributes: %v, %v", attrs, err)
	}
	if err := q.SetAttributes(ctx, map[string]string{"DelaySeconds": "2"}); err != nil ||
		asked["SetQueueAttributes"]["QueueUrl"] != url {
		t.Errorf("set attributes: %v", err)
	}
	if err := q.Purge(ctx); !errors.Is(err, &queue.Error{Code: queue.CodePurgeQueueInProgress}) ||
		!strings.Contains(err.Error(), "60 seconds") {
		t.Errorf("purge: %v", err)
	}
	if sources, err := q.DeadLetterSources(ctx); err != nil || len(sources) != 2 {
		t.Errorf("sources: %v, %v", sources, err)
	}
	if err := q.DeleteQueue(ctx); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func TestQueueThatDoesNotExist(t *testing.T) {
	endpoint, _ := operatorServer(t,
		map[string]string{"GetQueueUrl": `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`})
	t.Setenv("AWS_ENDPOINT_URL_SQS", endpoint)
	s, err := OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Queue(t.Context(), "nope")
	if !errors.Is(err, queue.ErrNoQueue) || !strings.Contains(err.Error(), "queue nope does not exist at 127.0.0.1") {
		t.Errorf("got %v", err)
	}
	if _, err = s.Queue(t.Context(), "no such name!"); err == nil {
		t.Error("a name that cannot be was accepted")
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	s, err := OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	refused := roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	})
	q, err := s.Queue(t.Context(), "http://127.0.0.1:1/123456789012/jobs")
	if err != nil {
		t.Fatal(err)
	}
	once := func(o *sqs.Options) {
		o.HTTPClient, o.RetryMaxAttempts = &http.Client{Transport: refused}, 1
	}
	s.api = sqs.New(s.api.Options(), once)
	_, err = q.Attributes(t.Context())
	if !errors.Is(err, queue.ErrUnreachable) ||
		!strings.Contains(err.Error(), "127.0.0.1:1 did not respond: dial tcp: connection refused") {
		t.Errorf("got %v", err)
	}
}
