package environment

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/internal/aws"
	"tendril/internal/cloud"
	"tendril/internal/config"
	"tendril/internal/observe/logging"
	"tendril/queue"
)

func TestQueueIsCreatedOnAmazon(t *testing.T) {
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	startCloud(t)
	seen := make(chan string, 1)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			seen <- r.Header.Get("X-Aws-Sqsd-Queue")
		}
	}))
	t.Cleanup(app.Close)
	flags := map[string]string{"backend": "sqs", "name": "shop", "target": app.URL, "cloudwatch": "off"}
	r := run(t, flags, nil)
	home := r.queues.home()
	if home.name != "shop" || home.dead != "shop-dead" || home.arn != "arn:aws:sqs:eu-west-1:123456789012:shop" {
		t.Errorf("the queue is %+v", home)
	}
	for _, name := range []string{"shop", "shop-dead"} {
		if !strings.Contains(r.log.String(), `"msg":"queue created","component":"aws","queue":"`+name+`","url":"http`) {
			t.Errorf("the log does not have the URL of %s", name)
		}
	}
	q := home.source.(*aws.Queue)
	if _, err := q.Send(t.Context(), []queue.Outgoing{{Body: "plum"}}); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != "shop" {
		t.Errorf("delivered from %s", got)
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if err := q.DeleteQueue(t.Context()); err != nil {
		t.Fatal(err)
	}
	sqs, err := aws.OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sqs.Close()
	if _, err := sqs.Create(t.Context(), "shop", nil, aws.Tags("another")); err != nil {
		t.Fatal(err)
	}
	flags["data-dir"] = t.TempDir()
	cfg, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Config: cfg, Logger: logging.New(logging.Options{Out: &safeBuffer{}})})
	err = errors.Join(e.Start(t.Context()), e.Stop(t.Context()))
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), `belongs to the environment "another"`) {
		t.Errorf("with a queue of another environment: %v", err)
	}
}

func TestOnlyListedResourcesAreCreatedAndDeleted(t *testing.T) {
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	c := startCloud(t)
	r := run(t, map[string]string{"backend": "sqs", "name": "shop", "target": "http://127.0.0.1:1/", "cloudwatch": "off",
		"registry-table": "runs", "registry-create": "true",
		"cron": writeTasks(t, "version: 1\ncron:\n  - {name: tidy, url: /tidy, schedule: \"0 3 1 1 *\"}\n")}, nil)
	eventually(t, "the table", func() bool { return strings.Contains(r.log.String(), "leadership acquired") })
	inventory, err := cloud.Open(t.Context(), &cloud.Environment{Config: r.opts.Config})
	if err != nil {
		t.Fatal(err)
	}
	defer inventory.Close()
	eventually(t, "the record of this instance", func() bool {
		joined := r.members.joined.Load()
		if joined == nil {
			return false
		}
		all, err := joined.others.ReadOnce(t.Context(), time.Second)
		return err == nil && len(all) == 1
	})
	listed, err := inventory.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, resource := range listed {
		named[`"`+resource.Name+`"`] = resource.Owned
		named[`"`+resource.URL+`"`] = resource.Owned
	}
	unlisted := func(change string) bool {
		for name, owned := range named {
			if owned && strings.Contains(change, name) {
				return false
			}
		}
		return true
	}
	created := c.changed()
	if len(created) != 3 || slices.ContainsFunc(created, unlisted) {
		t.Errorf("created %q, listed %v", created, named)
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	plan, err := inventory.Plan(t.Context())
	if err != nil || len(plan) != len(listed) {
		t.Fatalf("the plan is %+v, %v", plan, err)
	}
	for i := range plan {
		if err := inventory.Delete(t.Context(), &plan[i]); err != nil {
			t.Error(err)
		}
	}
	deleted := c.changed()
	if len(deleted) != 3 || slices.ContainsFunc(deleted, unlisted) {
		t.Errorf("deleted %q, listed %v", deleted, named)
	}
}
