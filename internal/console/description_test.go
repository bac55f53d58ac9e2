package console

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
)

func TestDescribeAsksTheEnvironment(t *testing.T) {
	t.Parallel()
	want := api.Description{Environment: "shop", Running: true,
		Queues: []api.DescribedQueue{{Name: "jobs", Attributes: map[string]string{"VisibilityTimeout": "30"},
			DeadLetterQueue: &api.DescribedQueue{Name: "jobs-dead"}}},
		Options: []api.DescribedOption{{Name: "rate", OptionValue: api.OptionValue{Value: "5/s", Layer: "flag", Where: "--rate"}}},
		Changes: []api.OptionChange{{Name: "rate"}, {Name: "max-wait of jobs", Restart: true}, {Name: "max-wait"}}}
	bounded := false
	c := dial(t, &Options{Settings: Settings{Describe: func(ctx context.Context) api.Description {
		_, bounded = ctx.Deadline()
		return want
	}}})
	got, err := c.Describe(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" || !bounded {
		t.Errorf("%v, bounded %t (-want +got)\n%s", err, bounded, diff)
	}
	if o, changes := got.Option("max-wait"); o.Name != "" || len(changes) != 2 {
		t.Errorf("an option of a queue: %+v, %+v", o, changes)
	}
	if o, changes := got.Option("rate"); o.Value != "5/s" || len(changes) != 1 {
		t.Errorf("rate: %+v, %+v", o, changes)
	}
	var refusal *api.Error
	_, err = dial(t, &Options{}).Describe(t.Context())
	if !errors.As(err, &refusal) || refusal.Status != http.StatusConflict {
		t.Errorf("without an environment: %v", err)
	}
}
