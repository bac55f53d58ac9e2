package console

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
)

func TestClientListsVersionsAndGoesBack(t *testing.T) {
	t.Parallel()
	versions := []api.AppVersion{
		{Number: 3, State: api.VersionLive, Source: "/srv/shop", Folder: "/srv/shop", InPlace: true, By: "owner",
			DeployedAt: time.Date(2026, 11, 24, 3, 4, 5, 0, time.UTC), Size: 12},
		{Number: 2, State: api.VersionFailed, Source: "/tmp/two.zip", By: "token ci", Error: "exit status 1"},
		{Number: 1, State: api.VersionKept, Source: "/tmp/one.zip", Folder: "/data/versions/x/one", By: "start"},
	}
	var who string
	asked := -1
	deploy := func(context.Context, string) (api.DeployResult, error) { return api.DeployResult{}, nil }
	c := dial(t, &Options{Deploy: deploy, Versions: VersionOptions{
		Versions: func(_ context.Context, latest bool) ([]api.AppVersion, error) {
			if latest {
				return versions[:1], nil
			}
			return versions, nil
		},
		Rollback: func(ctx context.Context, number int) (api.DeployResult, error) {
			asked, who = number, api.CallerName(ctx)
			switch number {
			case 2:
				return api.DeployResult{}, api.NewError(404, "version 2 failed", "use one of 1")
			case 7:
				return api.DeployResult{}, &api.DeployError{Err: errors.New("web ended 3 times")}
			}
			return api.DeployResult{From: "version 3", To: "version 4", Of: 1}, nil
		},
	}})
	got, err := c.Versions(t.Context())
	if diff := cmp.Diff(versions, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if latest, err := c.LatestVersions(t.Context()); err != nil || len(latest) != 1 {
		t.Errorf("the latest versions are %+v, %v", latest, err)
	}
	done, err := c.Rollback(t.Context(), 0)
	if err != nil || asked != 0 || done.Of != 1 || done.To != "version 4" || who != "owner" {
		t.Errorf("%+v, %v; asked for %d by %q", done, err, asked, who)
	}
	for number, status := range map[int]int{2: 404, 7: 422, -1: 400} {
		var refused *api.Error
		if _, err := c.Rollback(t.Context(), number); !errors.As(err, &refused) || refused.Status != status ||
			refused.Hint == "" {
			t.Errorf("version %d: %+v, want %d", number, refused, status)
		}
	}
	if asked == -1 {
		t.Error("a number that no version has was passed on")
	}
}

func TestDecisionsAndInstancesKeepWhatIsNotKnownOut(t *testing.T) {
	t.Parallel()
	backlog, flying := 0.0, 0
	decisions := api.ScaleDecisions{Advice: true, Decisions: []api.ScaleDecision{{From: 1, Desired: 1, Rule: "missing", Times: 2,
		Why: "not counted", Inputs: &api.ScaleInputs{Ready: 1, Backlog: &backlog}}}}
	known := api.Instances{Notes: []string{"others are not known"}, Instances: []api.KnownInstance{
		{Name: "a (1)", This: true, Source: "process", InFlight: &flying},
		{Name: "b (2)", Source: "lease", Leads: true, Term: 3, LeaseAgeSeconds: 1.5}}}
	views := Views{ScaleDecisions: func() api.ScaleDecisions { return decisions },
		Instances: func() api.Instances { return known }}
	c := dial(t, &Options{Views: views})
	got, err := c.ScaleDecisions(t.Context())
	if diff := cmp.Diff(decisions, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	all, err := c.Instances(t.Context())
	if diff := cmp.Diff(known, all); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	s := New(&Options{Token: testToken, Views: views})
	for _, path := range []string{"/api/v1/scale/decisions", "/api/v1/instances"} {
		if code, body := exchange(t, s, get(path)); code != 401 {
			t.Errorf("%s without a token: %d %v", path, code, body)
		}
	}
}
