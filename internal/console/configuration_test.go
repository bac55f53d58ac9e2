package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
)

func TestSettingsAreChangedOverTheConsole(t *testing.T) {
	t.Parallel()
	text := "/jobs"
	change := api.SettingsChange{Set: map[string]*string{"http-path": &text, "rate": nil}, Base: "b1"}
	shown := api.Configuration{File: "/app/tendril.yaml", Hash: "b1", Blocks: []string{"Messages"},
		Topics:  []string{"Delivery"},
		Options: []api.ConfigOption{{DescribedOption: api.DescribedOption{Name: "http-path"}, Label: "HTTP path"}},
		Queues: []api.ConfigQueue{{Name: "a", Settings: []api.ConfigOption{{DescribedOption: api.DescribedOption{Name: "rate of a"},
			Locked: "no"}}}}}
	preview := api.SettingsPreview{File: "/app/tendril.yaml", Base: "b1", Hash: "b2",
		Lines:   []api.FileLine{{Line: 2, Added: true, Text: "http_path: /jobs"}},
		Changes: []api.OptionChange{{Name: "http-path", Restart: true}}}
	var got []api.SettingsChange
	var failure error
	c := dial(t, &Options{Settings: Settings{
		Configuration: func() api.Configuration { return shown },
		PreviewChange: func(change api.SettingsChange) (api.SettingsPreview, error) {
			got = append(got, change)
			return preview, failure
		},
		ChangeSettings: func(_ context.Context, change api.SettingsChange) (api.SettingsPreview, error) {
			got = append(got, change)
			return preview, failure
		},
		ChangeScope: func(api.SettingsChange) string { return api.ScopeAct },
	}})
	said, err := c.Configuration(t.Context())
	if diff := cmp.Diff(shown, said); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if said.Option("http-path").Label != "HTTP path" || said.Option("rate of a").Locked != "no" ||
		said.Option("x") != nil {
		t.Error("an option is not found by its name")
	}
	sends := []func(context.Context, api.SettingsChange) (api.SettingsPreview, error){c.PreviewChange, c.ChangeSettings}
	for _, send := range sends {
		done, err := send(t.Context(), change)
		if diff := cmp.Diff(preview, done); err != nil || diff != "" || done.Lines[0].String() != "+ http_path: /jobs" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	if diff := cmp.Diff([]api.SettingsChange{change, change}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	hidden := "/x?(hidden)"
	failure = &api.Error{Status: http.StatusBadRequest, Message: "wrong", Details: []api.Detail{{Option: "rate", Text: "no rate"}}}
	for what, refused := range map[string]struct {
		change api.SettingsChange
		detail string
	}{
		"nothing to set": {api.SettingsChange{Base: "b1"}, ""},
		"a hidden value": {api.SettingsChange{Set: map[string]*string{"http-path": &hidden}, Base: "b1"}, "http-path"},
		"no base":        {api.SettingsChange{Set: change.Set}, ""},
		"a wrong value":  {change, "rate"},
	} {
		_, err := c.ChangeSettings(t.Context(), refused.change)
		var said *api.Error
		if !errors.As(err, &said) || said.Status != http.StatusBadRequest || refused.detail != "" &&
			said.Details[0].Option != refused.detail {
			t.Errorf("%s: %+v", what, err)
		}
	}
}

func TestSettingsThatDecideMoreNeedMore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code, access bool
		scopes       []string
		status       int
	}{
		{false, false, []string{api.ScopeAct}, http.StatusOK},
		{true, false, []string{api.ScopeRead, api.ScopeAct}, http.StatusForbidden},
		{true, false, []string{api.ScopeAct, api.ScopeDeploy}, http.StatusOK},
		{true, true, []string{api.ScopeRead, api.ScopeAct, api.ScopeDeploy}, http.StatusForbidden},
		{false, false, []string{api.ScopeRead, api.ScopeDeploy}, http.StatusForbidden},
	} {
		changed, read := 0, 0
		s := New(&Options{Settings: Settings{
			Configuration: func() api.Configuration { return api.Configuration{} },
			PreviewChange: func(api.SettingsChange) (api.SettingsPreview, error) {
				read++
				return api.SettingsPreview{}, nil
			},
			ChangeScope: func(api.SettingsChange) string { return SettingsScope(c.code, c.access) },
			ChangeSettings: func(context.Context, api.SettingsChange) (api.SettingsPreview, error) {
				changed++
				return api.SettingsPreview{}, nil
			},
		}})
		session, want := signIn(t, s, c.scopes...), 0
		if c.status == http.StatusOK {
			want = 1
		}
		for _, path := range []string{"/api/v1/config/preview", "/api/v1/config"} {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9325"+path, strings.NewReader(
				`{"set": {"lambda": "./x"}, "base": "b"}`))
			r.Header.Set("Content-Type", "application/json")
			session.send(r)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("%s, %+v: status %d\n%s", path, c, w.Code, w.Body)
			}
		}
		if changed != want || read != want {
			t.Errorf("%+v: changed %d times, read %d times", c, changed, read)
		}
	}
}

func TestSettingsThatCannotChangeNowAreAConflict(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, Settings: Settings{
		Configuration: func() api.Configuration { return api.Configuration{} },
		ChangeScope:   func(api.SettingsChange) string { return api.ScopeAct },
		ChangeSettings: func(context.Context, api.SettingsChange) (api.SettingsPreview, error) {
			return api.SettingsPreview{}, errors.New("the environment is stopping")
		},
	}})
	code, body := exchange(t, s, post("/api/v1/config", `{"set": {"rate": "1"}, "base": "b"}`))
	if code != http.StatusConflict || body["error"] != "the environment is stopping" || body["hint"] == "" {
		t.Errorf("answered %d %v", code, body)
	}
}
