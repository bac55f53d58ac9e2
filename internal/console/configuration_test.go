package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsAreChangedOverTheConsole(t *testing.T) {
	t.Parallel()
	text := "/jobs"
	change := SettingsChange{Set: map[string]*string{"http-path": &text, "rate": nil}, Base: "b1"}
	shown := Configuration{File: "/app/tendril.yaml", Hash: "b1", Blocks: []string{"Messages"},
		Topics:  []string{"Delivery"},
		Options: []ConfigOption{{DescribedOption: DescribedOption{Name: "http-path"}, Label: "HTTP path"}},
		Queues: []ConfigQueue{{Name: "a", Settings: []ConfigOption{{DescribedOption: DescribedOption{Name: "rate of a"},
			Locked: "no"}}}}}
	preview := SettingsPreview{File: "/app/tendril.yaml", Base: "b1", Hash: "b2",
		Lines:   []FileLine{{2, true, "http_path: /jobs"}},
		Changes: []OptionChange{{Name: "http-path", Restart: true}}}
	var got []SettingsChange
	var failure error
	c := dial(t, &Options{Settings: Settings{
		Configuration: func() Configuration { return shown },
		PreviewChange: func(change SettingsChange) (SettingsPreview, error) {
			got = append(got, change)
			return preview, failure
		},
		ChangeSettings: func(_ context.Context, change SettingsChange) (SettingsPreview, error) {
			got = append(got, change)
			return preview, failure
		},
		ChangeScope: func(SettingsChange) string { return ScopeAct },
	}})
	said, err := c.Configuration(t.Context())
	if diff := cmp.Diff(shown, said); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if said.Option("http-path").Label != "HTTP path" || said.Option("rate of a").Locked != "no" ||
		said.Option("x") != nil {
		t.Error("an option is not found by its name")
	}
	sends := []func(context.Context, SettingsChange) (SettingsPreview, error){c.PreviewChange, c.ChangeSettings}
	for _, send := range sends {
		done, err := send(t.Context(), change)
		if diff := cmp.Diff(preview, done); err != nil || diff != "" || done.Lines[0].String() != "+ http_path: /jobs" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	if diff := cmp.Diff([]SettingsChange{change, change}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	hidden := "/x?(hidden)"
	failure = &Error{Status: http.StatusBadRequest, Message: "wrong", Details: []Detail{{Option: "rate", Text: "no rate"}}}
	for what, refused := range map[string]struct {
		change SettingsChange
		detail string
	}{
		"nothing to set": {SettingsChange{Base: "b1"}, ""},
		"a hidden value": {SettingsChange{Set: map[string]*string{"http-path": &hidden}, Base: "b1"}, "http-path"},
		"no base":        {SettingsChange{Set: change.Set}, ""},
		"a wrong value":  {change, "rate"},
	} {
		_, err := c.ChangeSettings(t.Context(), refused.change)
		var said *Error
		if !errors.As(err, &said) || said.Status != http.StatusBadRequest || refused.detail != "" &&
			said.Details[0].Option != refused.detail {
			t.Errorf("%s: %+v", what, err)
		}
	}
}

// TestSettingsThatDecideMoreNeedMore: a session that may act cannot change what decides which programs run, and nothing
// is read for it that its values name.
func TestSettingsThatDecideMoreNeedMore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code, access bool
		scopes       []string
		status       int
	}{
		{false, false, []string{ScopeAct}, http.StatusOK},
		{true, false, []string{ScopeRead, ScopeAct}, http.StatusForbidden},
		{true, false, []string{ScopeAct, ScopeDeploy}, http.StatusOK},
		{true, true, []string{ScopeRead, ScopeAct, ScopeDeploy}, http.StatusForbidden},
		{false, false, []string{ScopeRead, ScopeDeploy}, http.StatusForbidden},
	} {
		changed, read := 0, 0
		s := New(&Options{Settings: Settings{
			Configuration: func() Configuration { return Configuration{} },
			PreviewChange: func(SettingsChange) (SettingsPreview, error) {
				read++
				return SettingsPreview{}, nil
			},
			ChangeScope: func(SettingsChange) string { return SettingsScope(c.code, c.access) },
			ChangeSettings: func(context.Context, SettingsChange) (SettingsPreview, error) {
				changed++
				return SettingsPreview{}, nil
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
