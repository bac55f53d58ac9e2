package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/api"
	"tendril/internal/autoscale"
	"tendril/internal/observe/health"

	"github.com/google/go-cmp/cmp"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	live, started := []health.Check{{Name: "loop", OK: true}},
		[]health.Check{{Name: "app", Detail: "never ready"}, {Name: "queue", OK: true}}
	s := New(&Options{Probes: Probes{Live: func() []health.Check { return live },
		Started: func() []health.Check { return started }}})
	said := func(path string) (int, any, int) {
		code, body := exchange(t, s, get(path))
		list, _ := body["checks"].([]any)
		return code, body["status"], len(list)
	}
	expect := func(path string, code int, status string, checks int) {
		t.Helper()
		if gotCode, gotStatus, gotChecks := said(path); gotCode != code || gotStatus != status || gotChecks != checks {
			t.Errorf("%s: %d %v with %d checks; want %d %s with %d", path, gotCode, gotStatus, gotChecks, code, status, checks)
		}
	}
	expect("/livez", 200, "ok", 0)
	expect("/healthz?verbose", 200, "ok", 1)
	expect("/startupz", 503, "failed", 1)
	expect("/startupz?verbose", 503, "failed", 2)
	live[0].OK, started[0].OK = false, true
	expect("/livez", 503, "failed", 1)
	expect("/healthz", 503, "failed", 1)
	expect("/startupz", 200, "ok", 0)
	if !started[1].OK || started[0].Name != "app" {
		t.Error("a probe changed the checks of the environment")
	}
	s = New(nil)
	expect("/startupz", 200, "ok", 0)
}

func TestHealthOfTheEnvironmentNamesNoInstancesWithoutToken(t *testing.T) {
	t.Parallel()
	environment := health.EnvironmentOf([]health.InstanceHealth{{Name: "secret-host", Status: health.Severe,
		Causes: []health.Cause{{Status: health.Severe, Text: "The app is down. It printed a password."}}}})
	report := health.Report{Status: health.Ok, Environment: &environment}
	s := New(&Options{Token: testToken, Views: Views{Health: func() health.Report { return report }}})
	for _, withToken := range []bool{false, true} {
		r := get("/api/v1/health")
		if withToken {
			r = with(r, "Authorization", "Bearer "+testToken)
		}
		code, body := exchange(t, s, r)
		text := fmt.Sprint(body)
		if code != 200 || !strings.Contains(text, "The app is down.") || strings.Contains(text, "secret-host") != withToken ||
			strings.Contains(text, "password") != withToken {
			t.Errorf("with the token %t: %d %s", withToken, code, text)
		}
	}
	if environment.Causes[0].Instances == nil {
		t.Error("the report itself was changed")
	}
}

func TestHealthIsAReportAndNoProbe(t *testing.T) {
	t.Parallel()
	want := health.Report{Status: health.Severe, Color: health.Red, Causes: []string{"the app failed too often"},
		Since: time.Unix(5, 0).UTC()}
	c := dial(t, &Options{Views: Views{Health: func() health.Report { return want }}})
	got, err := c.Health(t.Context())
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(health.Report{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	st, err := c.Status(t.Context())
	if err != nil || st.Health == nil || st.Health.Status != health.Severe {
		t.Errorf("status: %+v, %v", st.Health, err)
	}
	want = health.Report{Status: health.Ok, Color: health.Green}
	if _, body := exchange(t, New(&Options{Views: Views{Health: func() health.Report {
		return want
	}}}), get("/api/v1/health")); body["causes"] == nil {
		t.Errorf("no causes are %v, want an empty list", body["causes"])
	}
}

func TestScaleSpeaksTheLanguageOfScalers(t *testing.T) {
	t.Parallel()
	s := New(&Options{Views: Views{Scale: func() autoscale.Scale {
		return autoscale.NewScale([]autoscale.QueueState{
			{Name: "jobs", Known: true, Backlog: 7, Oldest: 30 * time.Second},
		}, 3)
	}}})
	code, body := exchange(t, s, get("/api/v1/scale"))
	want := map[string]any{"queues": map[string]any{"jobs": map[string]any{"backlog": 7.0, "oldestSeconds": 30.0}},
		"backlog": 7.0, "oldestSeconds": 30.0, "desired": 3.0}
	if diff := cmp.Diff(want, body); code != 200 || diff != "" {
		t.Errorf("%d (-want +got)\n%s", code, diff)
	}
}

func hookRequest(t *testing.T, c *api.Client, method, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.Instance.Console+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := api.ReadToken(dataDirOf(c))
	if err != nil {
		t.Fatal(err)
	}
	return with(r, "Authorization", "Bearer "+token)
}

func hookCall(method, path string) *http.Request {
	return with(httptest.NewRequest(method, path, nil), "Authorization", "Bearer "+testToken)
}

func TestHooksNeedNoBody(t *testing.T) {
	t.Parallel()
	var said []string
	s := New(&Options{
		Token: testToken,
		Reload: func(context.Context) (api.ReloadResult, error) {
			said = append(said, "reload")
			return api.ReloadResult{}, nil
		},
		Receiving: Receiving{Quiet: func(why string) error { said = append(said, "pause "+why); return nil }},
		Drain:     func(context.Context) error { said = append(said, "drain"); return nil },
	})
	for _, r := range []*http.Request{
		hookCall("POST", "/-/quiet"), hookCall("POST", "/-/reload"), hookCall("GET", "/-/drain"),
		hookCall("POST", "/-/drain?wait=25s"), hookCall("GET", "/-/drain?wait=0s"),
	} {
		if code, body := exchange(t, s, r); code != 200 {
			t.Errorf("%s %s: %d %v", r.Method, r.URL, code, body)
		}
	}
	if diff := cmp.Diff([]string{"pause ", "reload", "drain", "drain", "drain"}, said); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, wait := range []string{"-1s", "16m", "soon", "25"} {
		if code, body := exchange(t, s, hookCall("GET", "/-/drain?wait="+wait)); code != 400 || body["hint"] == nil {
			t.Errorf("wait %s: %d %v", wait, code, body)
		}
	}
	if code, _ := exchange(t, s, hookCall("HEAD", "/-/drain")); code != 404 || len(said) != 5 {
		t.Errorf("a look at the drain: %d, %v", code, said)
	}
}

// If the hook returned early, the platform would stop the app while it is handling messages.
func TestHookWaitsForTheDrain(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]struct {
		code  int
		after time.Duration
	}{
		"/-/drain?wait=90s": {200, time.Minute}, "/-/drain": {202, api.MaxWait}, "/-/drain?wait=1s": {202, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(&Options{Token: testToken, Drain: func(ctx context.Context) error {
				select {
				case <-time.After(time.Minute):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}})
			began := time.Now()
			code, body := exchange(t, s, hookCall("GET", path))
			if code != want.code || time.Since(began) != want.after || body["drained"] != (code == 200) {
				t.Errorf("%s: %d %v after %s; want %d after %s", path, code, body, time.Since(began), want.code, want.after)
			}
			s.Close()
			synctest.Wait()
		})
	}
}
