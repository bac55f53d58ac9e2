package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
	"tendril/internal/cron/periodic"
)

func TestReloadDoesWhatTheEnvironmentDoes(t *testing.T) {
	t.Parallel()
	var said []string
	var done api.ReloadResult
	var failure error
	c := dial(t, &Options{Tasks: crew(&said), Reload: func(ctx context.Context) (api.ReloadResult, error) {
		if until, ok := ctx.Deadline(); !ok || until.IsZero() {
			t.Error("a reload may take for ever")
		}
		return done, failure
	}})
	for _, want := range []api.ReloadResult{
		{File: "app/cron.yaml", Tasks: 2}, {Unchanged: "/app"},
		{Deployed: &api.DeployResult{From: "version 1", To: "version 2", DurationMS: 7}},
	} {
		done = want
		got, err := c.Reload(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	for what, want := range map[string]struct {
		err    error
		status int
	}{
		"a step failed": {&api.DeployError{Step: "build", Output: []string{"no compiler"}, Err: errors.New("exit status 3")},
			http.StatusUnprocessableEntity},
		"tasks are wrong": {fmt.Errorf("they stay: %w",
			&periodic.Error{Problems: []periodic.Problem{{Where: "cron.yaml:3", Text: "no url"}}}), http.StatusBadRequest},
		"a wrong version": {&api.Error{Status: http.StatusBadRequest, Message: "no Procfile", Hint: "write one"},
			http.StatusBadRequest},
		"another goes on":  {errors.New("another deployment is under way"), http.StatusConflict},
		"nothing to do it": {errors.New("no periodic tasks to reload"), http.StatusConflict},
	} {
		failure = want.err
		var refusal *api.Error
		if _, err := c.Reload(t.Context()); !errors.As(err, &refusal) || refusal.Status != want.status {
			t.Errorf("%s: %#v, want status %d", what, err, want.status)
		}
	}
	if len(said) != 0 {
		t.Errorf("the tasks were asked too: %q", said)
	}
}
