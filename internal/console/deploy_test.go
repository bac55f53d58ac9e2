package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
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

// The HTTP server's timeouts, which the test shortens, do not apply to deployments and drain hooks.
func TestLongAnswersHaveTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		takes := func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return nil
			}
		}
		s := New(&Options{
			Token: testToken,
			Deploy: func(ctx context.Context, _ string) (api.DeployResult, error) {
				return api.DeployResult{To: "version 2"}, takes(ctx, 3*time.Second)
			},
			Drain: func(ctx context.Context) error { return takes(ctx, 3*time.Second) },
		})
		defer s.Close()
		server := HTTPServer(s)
		server.ReadTimeout, server.WriteTimeout = 2*time.Second, 2*time.Second
		l := pipeListener{make(chan net.Conn), make(chan struct{})}
		go server.Serve(l)
		defer server.Close()

		client := &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
		send := func(method, path, body string) (status int, text string) {
			r, err := http.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(with(r, "Authorization", "Bearer "+testToken))
			if err != nil {
				return 0, err.Error()
			}
			defer resp.Body.Close()
			content, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(content)
		}
		if status, text := send(http.MethodPost, "/api/v1/deploy", "{}"); status != 200 || !strings.Contains(text, "version 2") {
			t.Errorf("deploy: %d %s", status, text)
		}
		if status, text := send(http.MethodGet, "/-/drain?wait=5m", ""); status != 200 {
			t.Errorf("drain by a hook: %d %s", status, text)
		}
		if status, text := send(http.MethodPost, "/api/v1/drain", `{"wait":"4s"}`); status != 0 {
			t.Errorf("a route with no limit of its own was not cut off, so this test proves nothing: %d %s", status, text)
		}
	})
}

// A pipeListener accepts the connections of its dial, so that deadlines are in virtual time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	l.conns <- server
	return client, nil
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error   { close(l.closed); return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

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
