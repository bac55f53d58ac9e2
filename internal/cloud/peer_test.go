package cloud

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/cron/periodic"
	"tendril/internal/registry"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

type account struct {
	t   *testing.T
	sqs *aws.SQS
	log *strings.Builder
}

func newAccount(t *testing.T) *account {
	t.Helper()
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": testpeer.Moto(t, "sqs", "dynamodb", "cloudwatch"), "AWS_ACCESS_KEY_ID": "test",
		"AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1", "AWS_CONFIG_FILE": "/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	sqs, err := aws.OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sqs.Close)
	return &account{t, sqs, &strings.Builder{}}
}

func (a *account) settings(name string, flags map[string]string) *config.Config {
	a.t.Helper()
	given := map[string]string{"name": name, "backend": "sqs", "region": "eu-west-1"}
	maps.Copy(given, flags)
	cfg, err := config.Load(config.Sources{Flags: given, Environ: os.Environ()})
	if err != nil {
		a.t.Fatal(err)
	}
	return cfg
}

func (a *account) ensure(cfg *config.Config) error {
	return EnsureQueue(a.t.Context(), a.sqs, &cfg.Settings, &cfg.Queues[0], slog.New(slog.NewTextHandler(a.log, nil)))
}

func (a *account) queues() (names []string) {
	a.t.Helper()
	all, err := a.sqs.List(a.t.Context(), "")
	if err != nil {
		a.t.Fatal(err)
	}
	for _, q := range all {
		names = append(names, q.Name())
	}
	slices.Sort(names)
	return names
}

func (a *account) attributes(name string) map[string]string {
	a.t.Helper()
	q, err := a.sqs.Queue(a.t.Context(), name)
	if err != nil {
		a.t.Fatal(err)
	}
	attributes, err := q.Attributes(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	return attributes
}

func (a *account) create(name string, attributes, tags map[string]string) *aws.Queue {
	a.t.Helper()
	q, err := a.sqs.Create(a.t.Context(), name, attributes, tags)
	if err != nil {
		a.t.Fatal(err)
	}
	return q
}

func (a *account) table(name string, tags map[string]string) *aws.Table {
	a.t.Helper()
	table, err := aws.OpenTable(a.t.Context(), name, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(table.Close)
	if err := table.Create(a.t.Context(), tags); err != nil {
		a.t.Fatal(err)
	}
	return table
}

func (a *account) inventory(cfg *config.Config) *Inventory {
	a.t.Helper()
	i, err := Open(a.t.Context(), &Environment{Config: cfg})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(i.Close)
	return i
}

func (a *account) plan(i *Inventory) (lines []string, plan []Resource) {
	a.t.Helper()
	plan, err := i.Plan(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, r := range plan {
		line := r.Kind + " " + r.Name
		if r.Messages != nil {
			line += fmt.Sprintf(" (%d)", *r.Messages)
		}
		if !r.Owned {
			line += ": " + r.Note
		}
		lines = append(lines, line)
	}
	return lines, plan
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

func TestOwnQueueIsCreatedWithDeadLetterQueue(t *testing.T) {
	a := newAccount(t)
	cfg := a.settings("shop", map[string]string{"max-retries": "7", "visibility-timeout": "90s",
		"retention-period": "2h"})
	if err := a.ensure(cfg); err != nil {
		t.Fatal(err)
	}
	equal(t, "queues", a.queues(), []string{"shop", "shop-dead"})
	main, dead := a.attributes("shop"), a.attributes("shop-dead")
	target, receives := queue.ParseRedrivePolicy(main["RedrivePolicy"])
	equal(t, "attributes", []string{main["VisibilityTimeout"], main["MessageRetentionPeriod"], target,
		fmt.Sprint(receives), main["FifoQueue"], dead["MessageRetentionPeriod"], dead["FifoQueue"]},
		[]string{"90", "7200", "shop-dead", "7", "", "1209600", ""})
	for _, name := range []string{"shop", "shop-dead"} {
		if !strings.Contains(a.log.String(), "queue="+name+" url=http") {
			t.Errorf("the log does not have the URL of %s:\n%s", name, a.log)
		}
	}

	a.log.Reset()
	if err := a.ensure(cfg); err != nil || a.log.Len() > 0 {
		t.Errorf("the second start: %v, and it changed something: %s", err, a.log)
	}
	cfg.MaxRetries = 3
	if err := a.ensure(cfg); err != nil || strings.Count(a.log.String(), "queue attribute changed") != 1 {
		t.Errorf("after a change of MaxRetries: %v\n%s", err, a.log)
	}
	if _, receives := queue.ParseRedrivePolicy(a.attributes("shop")["RedrivePolicy"]); receives != 3 {
		t.Errorf("maxReceiveCount is %d, want 3", receives)
	}
	lost, _ := a.sqs.Queue(t.Context(), "shop-dead")
	if err := lost.DeleteQueue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.ensure(cfg); err != nil {
		t.Errorf("with a dead-letter queue that somebody deleted: %v", err)
	}
	equal(t, "queues", a.queues(), []string{"shop", "shop-dead"})
}

func TestForeignQueueIsRefusedUnchanged(t *testing.T) {
	a := newAccount(t)
	for _, c := range []struct {
		name, exists string
		tags         map[string]string
		want         string
	}{
		{"plain", "plain", nil, "no tendril tag; use the existing queue with --queue plain"},
		{"other", "other", aws.Tags("shop"), `belongs to the environment "shop"`},
		{"half", "half-dead", nil, "queue half-dead in eu-west-1 was not created for this environment"},
	} {
		a.create(c.exists, map[string]string{"VisibilityTimeout": "17"}, c.tags)
		before := a.attributes(c.exists)
		err := a.ensure(a.settings(c.name, nil))
		if !errors.Is(err, ErrNotOwned) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		equal(t, "attributes of "+c.exists, a.attributes(c.exists), before)
	}
	equal(t, "queues", a.queues(), []string{"half-dead", "other", "plain"})
}

func TestTerminationDeletesListedResources(t *testing.T) {
	a := newAccount(t)
	cfg := a.settings("shop", map[string]string{"registry-table": "shop-registry"})
	if err := a.ensure(cfg); err != nil {
		t.Fatal(err)
	}
	a.table("shop-registry", aws.Tags("shop"))
	a.create("bystander", nil, nil)
	q, err := a.sqs.Queue(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Send(t.Context(), []queue.Outgoing{{Body: "a"}, {Body: "b"}}); err != nil {
		t.Fatal(err)
	}
	i := a.inventory(cfg)
	lines, plan := a.plan(i)
	equal(t, "plan", lines, []string{"queue shop (2)", "dead-letter queue shop-dead (0)", "registry table shop-registry"})
	for n := range plan {
		if err := i.Delete(t.Context(), &plan[n]); err != nil {
			t.Error(err)
		}
	}
	equal(t, "queues", a.queues(), []string{"bystander"})
	lines, _ = a.plan(i)
	equal(t, "the second plan", lines, []string(nil))
	for n, want := range []string{queue.CodeQueueDoesNotExist, queue.CodeQueueDoesNotExist, queue.CodeResourceNotFound} {
		if err := i.Delete(t.Context(), &plan[n]); !errors.Is(err, &queue.Error{Code: want}) {
			t.Errorf("deleting %s again: %v", plan[n].Name, err)
		}
	}
}

func TestTerminationKeepsForeignResources(t *testing.T) {
	a := newAccount(t)
	dead := a.create("orders-failed", nil, nil)
	arn := a.attributes(dead.Name())["QueueArn"]
	a.create("orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + arn + `","maxReceiveCount":"4"}`},
		aws.Tags("billing"))
	table := a.table("registry", aws.Tags("shop"))
	if err := a.ensure(a.settings("shop", nil)); err != nil { // creates the queue before the settings name another
		t.Fatal(err)
	}
	cfg := a.settings("shop", map[string]string{"queue": "orders", "registry-table": "registry"})
	i := a.inventory(cfg)
	others := []string{"queue orders (0): belongs to the environment \"billing\"",
		"dead-letter queue orders-failed (0): not created by tendril", "queue shop (0)", "dead-letter queue shop-dead (0)"}
	lines, plan := a.plan(i)
	equal(t, "plan", lines, append(slices.Clone(others), "registry table registry"))
	if err := i.Delete(t.Context(), &plan[0]); !errors.Is(err, ErrNotOwned) {
		t.Errorf("deleting what is not owned: %v", err)
	}

	for _, lease := range []string{periodic.LeaseName("orders"), periodic.VersionLease("orders", "1f"),
		periodic.RunningLease("orders", "tidy"), periodic.LeaseName("orders") + "/instances/0", periodic.LeaseName("letters"), periodic.VersionLease("orders2", "1f")} {
		if _, _, err := registry.NewLeases(table).Swap(t.Context(), lease, queue.Lease{}, queue.Lease{Version: "1"}); err != nil {
			t.Fatal(err)
		}
	}
	lines, _ = a.plan(i)
	equal(t, "plan with a shared table", lines,
		append(others, "registry table registry: other environments use it: periodic:letters, version:orders2/1f"))
	all, err := i.List(t.Context())
	if err != nil || !slices.ContainsFunc(all, func(r Resource) bool { return r.Kind == kindTable && r.Owned }) {
		t.Errorf("the list reads no leases: %+v, %v", all, err)
	}
}

func TestOwnershipIsCheckedAgain(t *testing.T) {
	a := newAccount(t)
	q := a.create("shop", nil, nil)
	i := a.inventory(a.settings("shop", nil))
	for _, r := range []Resource{{Kind: kindQueue, Name: "shop", URL: q.URL(), Owned: true}} {
		if err := i.Delete(context.Background(), &r); !errors.Is(err, ErrNotOwned) {
			t.Errorf("%s: %v", r.Kind, err)
		}
	}
	equal(t, "queues", a.queues(), []string{"shop"})
}
