package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
)

func TestClientDeploys(t *testing.T) {
	t.Parallel()
	var asked []string
	c := dial(t, &Options{Deploy: func(ctx context.Context, path string) (api.DeployResult, error) {
		asked = append(asked, path)
		if until, bounded := ctx.Deadline(); !bounded || time.Until(until) > api.MaxDeploy {
			t.Errorf("the deployment is not bounded: %v", until)
		}
		return api.DeployResult{From: "version 1", To: "version 2", DurationMS: 1200}, nil
	}})
	for _, path := range []string{"/srv/app v2", ""} {
		got, err := c.Deploy(t.Context(), path)
		if diff := cmp.Diff(api.DeployResult{From: "version 1", To: "version 2", DurationMS: 1200}, got); err != nil ||
			diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	if want := []string{"/srv/app v2", ""}; !slices.Equal(asked, want) {
		t.Errorf("asked to deploy %q, want %q", asked, want)
	}
}

func TestDeploymentsThatGoWrongSayHow(t *testing.T) {
	t.Parallel()
	errs := map[string]error{
		"/rolled": fmt.Errorf("deploying: %w",
			&api.DeployError{Step: ".platform/hooks/predeploy/10.sh", Output: []string{"migrating", "no table"},
				Err: errors.New("exit status 1")}),
		"/switched": &api.DeployError{Switched: true, Err: errors.New("a hook after that failed")},
		"/stopped":  &api.DeployError{Stopped: true, Err: errors.New("the environment is stopping")},
		"/busy":     errors.New("another deployment is under way"),
		"/missing":  fmt.Errorf("there is no folder: %w", fs.ErrNotExist),
		"/wrong": &api.Error{Status: 400, Message: "the bundle is wrong", Hint: "fix it",
			Details: []api.Detail{{Text: "Procfile:1: no colon"}}},
	}
	c := dial(t, &Options{Deploy: func(_ context.Context, path string) (api.DeployResult, error) {
		return api.DeployResult{}, errs[path]
	}})
	for path, want := range map[string]api.Error{
		"/rolled": {Status: 422, Message: "deploying: exit status 1", Step: ".platform/hooks/predeploy/10.sh",
			Output: []string{"migrating", "no table"}},
		"/switched": {Status: 422, Message: "a hook after that failed", Switched: true},
		"/stopped":  {Status: 422, Message: "the environment is stopping"},
		"/busy":     {Status: 409, Message: "another deployment is under way"},
		"/missing":  {Status: 404, Message: "there is no folder: file does not exist"},
		"/wrong":    {Status: 400, Message: "the bundle is wrong", Details: []api.Detail{{Text: "Procfile:1: no colon"}}},
		"relative":  {Status: 400, Message: `the path "relative" is not absolute`},
	} {
		_, err := c.Deploy(t.Context(), path)
		var got *api.Error
		if !errors.As(err, &got) || got.Hint == "" || got.RequestID == "" {
			t.Errorf("%s: %#v, want a refusal with a hint and an id", path, err)
			continue
		}
		if serves := strings.Contains(got.Hint, "still serving"); serves != (path == "/rolled") {
			t.Errorf("%s: the hint is %q", path, got.Hint)
		}
		want.Hint, want.RequestID = got.Hint, got.RequestID
		if diff := cmp.Diff(want, *got, cmp.AllowUnexported(api.Error{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
	}
}

func TestADeploymentOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Server, context.CancelFunc){
		"closed": func(s *Server, _ context.CancelFunc) { s.Close() },
		"late":   func(*Server, context.CancelFunc) { time.Sleep(api.MaxDeploy) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(&Options{Token: testToken, Deploy: func(ctx context.Context, _ string) (api.DeployResult, error) {
				<-ctx.Done()
				return api.DeployResult{}, &api.DeployError{Err: ctx.Err()}
			}})
			ctx, leave := context.WithCancel(t.Context())
			answered := make(chan int)
			go func() {
				code, _ := exchange(t, s, post("/api/v1/deploy", "{}").WithContext(ctx))
				answered <- code
			}()
			synctest.Wait()
			leave()
			time.Sleep(api.MaxDeploy / 2)
			synctest.Wait()
			select {
			case code := <-answered:
				t.Fatalf("%s: the caller left and the deployment ended with %d", name, code)
			default:
			}
			end(s, leave)
			if code := <-answered; code != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d", name, code)
			}
			s.Close()
			synctest.Wait()
		})
	}
}

// The HTTP server's timeouts, which the test shortens, do not apply to deployments.
func TestLongAnswersHaveTime(t *testing.T) {
	t.Parallel()
	c, srv := dialServer(t, &Options{
		Deploy: func(ctx context.Context, _ string) (api.DeployResult, error) {
			select {
			case <-ctx.Done():
				return api.DeployResult{}, ctx.Err()
			case <-time.After(3 * time.Second):
				return api.DeployResult{To: "version 2"}, nil
			}
		},
		Drain: func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(3 * time.Second):
				return nil
			}
		},
	}, func(srv *http.Server) { srv.ReadTimeout, srv.WriteTimeout = 2*time.Second, 2*time.Second })
	if got, err := c.Deploy(t.Context(), ""); err != nil || got.To != "version 2" {
		t.Errorf("deploy: %+v, %v", got, err)
	}
	resp, err := srv.Client().Do(hookRequest(t, c, http.MethodGet, "/-/drain?wait=5m"))
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("drain by a hook: %v, %v", resp, err)
	}
	resp.Body.Close()
	if drained, err := c.Drain(t.Context(), 4*time.Second); err == nil && drained {
		t.Error("a route with no limit of its own was not cut off: this test proves nothing")
	}
}

func TestDeploymentKnowsWhenItIsOver(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{
		api.DeployPreparing: false, api.DeployStarting: false, api.DeployFinishing: false, api.DeployDone: true,
		api.DeployRolledBack: true, api.DeployFailed: true,
	} {
		if got := (&api.Deployment{State: state}).Over(); got != want {
			t.Errorf("%s: over %v", state, got)
		}
	}
}
