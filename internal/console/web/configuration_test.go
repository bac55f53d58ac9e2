package web

import (
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/console"

	"github.com/google/go-cmp/cmp"
)

func settingsOf() api.Configuration {
	option := func(name, value, layer, where string, more api.ConfigOption) api.ConfigOption {
		more.Name, more.OptionValue = name, api.OptionValue{Value: value, Layer: layer, Where: where}
		more.Key, more.Topic = strings.ReplaceAll(name, "-", "_"), "Delivery"
		if more.Effect == "" {
			more.Effect = api.EffectReload
		}
		if more.Scope == "" {
			more.Scope = api.ScopeAct
		}
		return more
	}
	return api.Configuration{File: "/app/tendril.yaml", Exists: true, Hash: "h1",
		Blocks: []string{"Queue", "Messages"}, Topics: []string{"Delivery"}, Options: []api.ConfigOption{
			option("queue-url", "", "default", "", api.ConfigOption{Block: "Queue", Label: "Worker queue", Type: "text",
				Scope: api.ScopeDeploy, Effect: api.EffectRestart}),
			option("http-path", "/jobs", "file", "tendril.yaml:7", api.ConfigOption{Block: "Messages", Label: "HTTP path",
				Type: "text", Default: "/", Allowed: "a path on the app", Help: "Path that messages are posted to."}),
			option("visibility-timeout", "120s", "bundle", ".ebextensions/a.config:4", api.ConfigOption{Block: "Messages",
				Label: "Visibility timeout", Type: "duration", Unit: "seconds", Default: "300s", Allowed: "0s to 43200s"}),
			option("rate", "50/s", "environment", "TENDRIL_RATE", api.ConfigOption{Label: "Rate", Type: "rate",
				Locked: "set by the variable TENDRIL_RATE, which overrides the settings file"}),
			option("keepalive", "true", "default", "", api.ConfigOption{Label: "Keepalive", Type: "switch"}),
			option("delete-linger", "100ms", "default", "", api.ConfigOption{Label: "Delete linger", Type: "duration",
				Unit: "seconds"}),
			option("token", "(hidden)", "file", "tendril.yaml:9", api.ConfigOption{Label: "Token", Type: "text",
				Hidden: true}),
			option("listen", "127.0.0.1:0", "default", "", api.ConfigOption{Label: "Listen", Type: "text", Scope: "own"}),
		}}
}

func form(t *testing.T, page string, typed map[string]string) url.Values {
	t.Helper()
	_, page, found := strings.Cut(page, `<form class="settings"`)
	if !found {
		t.Fatalf("the page has no form of settings:\n%s", page)
	}
	values := url.Values{}
	for _, input := range regexp.MustCompile(`<input[^>]* name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		values.Set(html.UnescapeString(input[1]), html.UnescapeString(input[2]))
	}
	choice := regexp.MustCompile(`(?s)<select[^>]* name="([^"]+)".*?<option selected value="([^"]*)"`)
	for _, selected := range choice.FindAllStringSubmatch(page, -1) {
		values.Set(selected[1], selected[2])
	}
	for name, text := range typed {
		if values.Get(setField+name) == "" && name != "token" && name != "queue-url" {
			t.Fatalf("there is no field for %s with a text in %v", name, slices.Sorted(maps.Keys(values)))
		}
		values.Set(setField+name, text)
	}
	return values
}

func TestConfigurationShowsOriginRangeAndLocks(t *testing.T) {
	s := newSite(t)
	s.settings = settingsOf()
	page := s.get("/configuration")
	wantText(t, page, `<h2>Messages</h2>`, `<label for="field-http-path">HTTP path</label>`, `value="/jobs"`,
		"tendril.yaml:7", "a path on the app", "Path that messages are posted to.", "Remove from the file",
		"bundle .ebextensions/a.config:4", `value="120"`, "seconds", "0s to 43200s",
		"set by the variable TENDRIL_RATE", `value="100ms"`, `placeholder="(hidden)"`, "when saved", "at the next start",
		"it decides who may call: change it with &#39;tendril config set&#39;", "5 options")
	for _, locked := range []string{"set.rate", "set.listen"} {
		if strings.Contains(page, `name="`+locked+`"`) {
			t.Errorf("there is a field %s, which is locked", locked)
		}
	}
	if page := s.get("/configuration?match=TENDRIL_rate"); strings.Contains(page, "HTTP path") ||
		!strings.Contains(page, "Rate") {
		t.Errorf("the search shows\n%s", page)
	}
	if page := s.get("/configuration?changed=1"); strings.Contains(page, "Keepalive") ||
		!strings.Contains(page, "HTTP path") {
		t.Errorf("the changed options are\n%s", page)
	}
	wantText(t, s.get("/configuration?match=nothing"), "No option matches.")
}

func TestConfigurationOfAllInstances(t *testing.T) {
	s := newSite(t)
	s.settings = settingsOf()
	s.settings.Shared = &api.SharedSettings{Revision: 7, By: "owner", At: time.Now(), RolledBack: "host (7) rejected revision 6: no"}
	path := s.settings.Option("http-path")
	path.Layer = "flag"
	path.Where = "--http-path"
	path.Overridden = "the flag --http-path"
	path.Effect = api.EffectApp
	path.SetBy = []api.OptionValue{{Value: "/", Layer: "default"}, {Value: "/all", Layer: "registry"}, {Value: "/jobs", Layer: "flag"}}
	page := s.get("/configuration")
	wantText(t, page, "Changes apply to all instances: revision 7 is by owner", "rolled back on all instances.</b> host (7) rejected revision 6: no",
		`value="/all"`, "/jobs here: overridden by the flag --http-path", "Remove for all instances", "by restarting the app")
	if strings.Contains(page, "from the file") {
		t.Error("the page offers to remove an option from the file")
	}

	s.change = func(api.SettingsChange) (api.SettingsPreview, error) { return api.SettingsPreview{Revision: 8}, nil }
	values := form(t, page, nil)
	values.Set("base", "h1")
	wantText(t, s.post("/configuration/save", values), "Set for all instances in revision 8.")
}

func TestConfigurationFormSendsWhatWasTyped(t *testing.T) {
	text := func(of string) *string { return &of }
	for name, c := range map[string]struct {
		typed map[string]string
		unset string
		want  map[string]*string
	}{
		"nothing": {},
		"a text": {typed: map[string]string{"http-path": " /pay "},
			want: map[string]*string{"http-path": text("/pay")}},
		"a number": {typed: map[string]string{"visibility-timeout": "60"},
			want: map[string]*string{"visibility-timeout": text("60")}},
		"a choice": {typed: map[string]string{"keepalive": "false"},
			want: map[string]*string{"keepalive": text("false")}},
		"a new secret": {typed: map[string]string{"token": "abc"},
			want: map[string]*string{"token": text("abc")}},
		"a secret as it was": {typed: map[string]string{"token": ""}},
		"an empty field that the file sets": {typed: map[string]string{"http-path": ""},
			want: map[string]*string{"http-path": nil}},
		"an empty field of the bundle": {typed: map[string]string{"visibility-timeout": ""}},
		"the button that removes": {unset: "http-path",
			want: map[string]*string{"http-path": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.settings = settingsOf()
			var got []api.SettingsChange
			s.change = func(c api.SettingsChange) (api.SettingsPreview, error) {
				got = append(got, c)
				return api.SettingsPreview{File: "/app/tendril.yaml", Base: "h1",
					Lines: []api.FileLine{{Line: 7, Text: "http_path: /jobs # mine"}, {Line: 7, Added: true, Text: "new"}},
					Changes: []api.OptionChange{{Name: "http-path", OptionValue: api.OptionValue{Value: "/pay"}},
						{Name: "queue-url", Restart: true}}}, nil
			}
			values := form(t, s.get("/configuration"), c.typed)
			if c.unset != "" {
				values.Set("unset", c.unset)
			}
			status, page, _ := s.do("POST", "/configuration/preview", values)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, page)
			}
			if c.want == nil {
				wantText(t, page, "already in force")
				if got != nil {
					t.Errorf("the API was asked for %v", got)
				}
				return
			}
			wantText(t, page, "- http_path: /jobs # mine", "+ new", "/jobs", "when saved", "at the next start")
			confirm := url.Values{"back": {"/configuration"}}
			hidden := regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
			for _, input := range hidden.FindAllStringSubmatch(page, -1) {
				confirm.Add(html.UnescapeString(input[1]), html.UnescapeString(input[2]))
			}
			wantText(t, s.post("/configuration/save", confirm), "/app/tendril.yaml was written.", "In force now: http-path.",
				"At the next start: queue-url.")
			want := []api.SettingsChange{{Set: c.want}, {Set: c.want, Base: "h1"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestConfigurationMistakesAreAtTheirFields(t *testing.T) {
	s := newSite(t)
	s.settings = settingsOf()
	s.change = func(api.SettingsChange) (api.SettingsPreview, error) {
		return api.SettingsPreview{}, &api.Error{Status: http.StatusBadRequest,
			Message: "the settings were not changed", Details: []api.Detail{
				{Option: "http-path", Text: "http_path is no path", Hint: "write http_path: /x"},
				{Text: "a rule about two options is broken"}}}
	}
	values := form(t, s.get("/configuration"), map[string]string{"http-path": hostile})
	_, page, _ := s.do("POST", "/configuration/preview", values)
	wantText(t, page, `aria-describedby="wrong-http-path"`, "http_path is no path", "write http_path: /x",
		"a rule about two options is broken", "alert(1)")
	if strings.Contains(page, "<script>alert") {
		t.Errorf("what was typed became markup:\n%s", page)
	}

	values = form(t, s.get("/configuration"), map[string]string{"http-path": "/pay"})
	s.settings.Hash = "h2"
	_, page, _ = s.do("POST", "/configuration/preview", values)
	wantText(t, page, "The settings were changed in the meantime.", `value="/jobs"`)
	if values.Set("version", "x"); strings.Contains(page, "/pay") {
		t.Error("an old form changes new settings")
	}
}

func TestConfigurationShowsWhatWaitsForTheNextStart(t *testing.T) {
	s := newSite(t)
	s.settings = settingsOf()
	s.settings.Changes = []api.OptionChange{{Name: "visibility-timeout", Restart: true,
		OptionValue: api.OptionValue{Value: "60s", Layer: "file", Where: "tendril.yaml:3"}}}
	wantText(t, s.get("/configuration"), `value="60"`, "Until the next start: 120s")
}

func TestConfigurationOffersWhatTheCallerMayChange(t *testing.T) {
	for _, c := range []struct {
		readOnly string
		scopes   []string
		fields   string
	}{
		{"", []string{api.ScopeRead, api.ScopeAct, api.ScopeDeploy},
			"set.queue-url set.http-path set.visibility-timeout set.keepalive set.delete-linger set.token"},
		{"", []string{api.ScopeRead, api.ScopeAct},
			"set.http-path set.visibility-timeout set.keepalive set.delete-linger set.token"},
		{"You may read.", []string{api.ScopeRead}, ""},
	} {
		page := &configurationPage{Configuration: settingsOf(), ReadOnly: c.readOnly}
		page.arrange(c.scopes)
		var shown strings.Builder
		data := &visit{Data: page, r: httptest.NewRequest("GET", "/configuration", nil)}
		if err := view("configuration").ExecuteTemplate(&shown, "main", data); err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, field := range regexp.MustCompile(` name="(set\.[^"]+)"`).FindAllStringSubmatch(shown.String(), -1) {
			fields = append(fields, field[1])
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%v %q: the fields are %s, want %s", c.scopes, c.readOnly, got, c.fields)
		}
		if sends := strings.Contains(shown.String(), "Nothing is saved yet."); sends != (c.fields != "") {
			t.Errorf("%v: the form can be sent: %t", c.scopes, sends)
		}
	}
}

func TestConfigurationOfAProcessThatServesQueuesOnly(t *testing.T) {
	var server *console.Server
	pages := New(Options{Client: func(r *http.Request) *api.Client { return console.NewInProcessClient(server, r) }})
	server = console.New(&console.Options{Environment: "shop", Token: ownersToken, Handlers: console.Handlers{Pages: pages}})
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9325/configuration", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+ownersToken)
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `<form class="settings"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wantText(t, w.Body.String(), "this process only serves queues")
}
