package deliver

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"tendril/queue"
)

type receivedRequest struct {
	*http.Request
	body string
}

func (r receivedRequest) attr(name string) string { return r.Header.Get(attributePrefix + name) }

func (r receivedRequest) need(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if got := r.Header.Get(pairs[i]); got != pairs[i+1] {
			return fmt.Errorf("%s is %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
	return nil
}

// fromDaemon is the check by which receivers recognize the daemon.
func (r receivedRequest) fromDaemon() error {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		return fmt.Errorf("it comes from %s", r.RemoteAddr)
	}
	if !strings.HasPrefix(r.UserAgent(), "aws-sqsd") {
		return fmt.Errorf("the user agent is %q", r.UserAgent())
	}
	if name, _, _ := strings.Cut(r.Host, ":"); name != "localhost" {
		return fmt.Errorf("the host is %q", r.Host)
	}
	return nil
}

func periodicMessage(path string) *queue.Message {
	m := message(text(queue.AttributePath, path), text(queue.AttributeTask, "nightly"),
		text(queue.AttributeTime, "2026-11-20 00:00:00 UTC"))
	m.Body = "elasticbeanstalk scheduled job"
	return m
}

func digest(body string) string {
	mac := hmac.New(sha1.New, []byte("secret_key_base"))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestReceivers(t *testing.T) {
	t.Parallel()
	railsBody := `{"job_class":"Thumb","arguments":["é"]}`
	for _, test := range []struct {
		name    string
		path    string
		message *queue.Message
		body    string
		reached string
		checks  func(receivedRequest) error
	}{
		{"active-elastic-job", "/", message(text("message-digest", digest(railsBody)), text("origin", "AEJ")), railsBody,
			"/", func(r receivedRequest) error {
				if r.attr("Message-Digest") != digest(r.body) || r.attr("Origin") != "AEJ" {
					return fmt.Errorf("digest %q, origin %q", r.attr("Message-Digest"), r.attr("Origin"))
				}
				return r.fromDaemon()
			}},
		{"active-elastic-job, periodic", "/", periodicMessage("/periodic_tasks/sweep"), "", "/periodic_tasks/sweep",
			func(r receivedRequest) error {
				if err := r.fromDaemon(); err != nil {
					return err
				}
				return r.need("X-Aws-Sqsd-Taskname", "nightly")
			}},
		{"aws-sdk-rails, periodic", "/", periodicMessage("/"), "", "/", func(r receivedRequest) error {
			if err := r.fromDaemon(); err != nil {
				return err
			}
			return r.need("X-Aws-Sqsd-Taskname", "nightly")
		}},
		{"laravel-aws-worker", "/worker/queue", message(), `{"job":"x"}`, "/worker/queue", func(r receivedRequest) error {
			if !json.Valid([]byte(r.body)) {
				return fmt.Errorf("the body is %q", r.body)
			}
			return r.need("X-Aws-Sqsd-Queue", "jobs", "X-Aws-Sqsd-Msgid", message().ID,
				"X-Aws-Sqsd-Receive-Count", "3", "X-Aws-Sqsd-First-Received-At", "2026-11-20T13:00:01Z")
		}},
		{"laravel-aws-worker, schedule", "/worker/queue", periodicMessage("/worker/schedule"), "", "/worker/schedule",
			func(r receivedRequest) error {
				return r.need("X-Aws-Sqsd-Taskname", "nightly")
			}},
		{"django-eb-sqs-worker", "/worker/", message(), `{"n":1}`, "/worker/", func(r receivedRequest) error {
			if !strings.Contains(r.UserAgent(), "aws-sqsd") || r.Header.Get("X-Aws-Sqsd-Taskname") != "" ||
				!json.Valid([]byte(r.body)) {
				return fmt.Errorf("%v, body %q", r.Header, r.body)
			}
			return nil
		}},
		{"zfr-eb-worker", "/internal/worker", message(text("Name", "user.created")), `{}`, "/internal/worker",
			func(r receivedRequest) error {
				return r.need("X-Aws-Sqsd-Attr-Name", "user.created", "X-Aws-Sqsd-Queue", "jobs", "X-Aws-Sqsd-Msgid", message().ID)
			}},
		{"zfr-eb-worker, periodic", "/internal/worker", periodicMessage("/internal/cron"), "", "/internal/cron",
			func(r receivedRequest) error {
				return r.need("X-Aws-Sqsd-Scheduled-At", "2026-11-20T00:00:00Z")
			}},
		{"Craft and Yii2", "/queue/exec", message(queue.Attribute{Name: "TTR", Type: "Number", Value: "300"}), "O:1",
			"/queue/exec", func(r receivedRequest) error {
				return r.need("X-Aws-Sqsd-Msgid", message().ID, "X-Aws-Sqsd-Receive-Count", "3", "X-Aws-Sqsd-Attr-Ttr", "300")
			}},
		{"Spring samples", "/", message(), `{}`, "/", func(r receivedRequest) error {
			for _, name := range []string{"User-Agent", "X-Aws-Sqsd-Msgid", "X-Aws-Sqsd-Queue", "X-Aws-Sqsd-First-Received-At",
				"X-Aws-Sqsd-Sent-At",
				"X-Aws-Sqsd-Receive-Count", "X-Aws-Sqsd-Path", "X-Aws-Sqsd-Sender-Id", "Content-Type"} {
				if r.Header.Get(name) == "" {
					return fmt.Errorf("%s is missing", name)
				}
			}
			if _, err := time.Parse(time.RFC3339, r.Header.Get("X-Aws-Sqsd-Sent-At")); err != nil {
				return err
			}
			_, err := strconv.Atoi(r.Header.Get("X-Aws-Sqsd-Receive-Count"))
			return err
		}},
		{"sample apps", "/", message(), "", "/", func(r receivedRequest) error {
			return r.need("Content-Length", "0", "Content-Type", "application/json")
		}},
		{"sample apps, periodic", "/", periodicMessage("/scheduled"), "", "/scheduled", func(r receivedRequest) error {
			return r.need("Content-Length", "0", "X-Aws-Sqsd-Taskname", "nightly", "X-Aws-Sqsd-Scheduled-At",
				"2026-11-20T00:00:00Z",
				"X-Aws-Sqsd-Path", "/scheduled", "X-Aws-Sqsd-Sender-Id", "123456789012")
		}},
		{".NET simple routing", "/", message(text("task", "resize")), `{}`, "/", func(r receivedRequest) error {
			return r.need("X-Aws-Sqsd-Attr-Task", "resize")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
				err := test.checks(receivedRequest{r, string(body)})
				if r.Method != http.MethodPost || r.RequestURI != test.reached || string(body) != test.body {
					err = fmt.Errorf("%s %s with body %q", r.Method, r.RequestURI, body)
				}
				if err != nil {
					t.Error(err)
					w.WriteHeader(http.StatusForbidden)
				}
			}))
			defer receiver.Close()
			h := newHTTP(t, func(o *Options) { o.Target, o.Path = receiver.URL, test.path })
			if test.message.Attribute(queue.AttributePath) == "" {
				test.message.Body = test.body
			}
			want(t, deliver(h, test.message), queue.Done, 200, "")
		})
	}
}
