package environment

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/instances"
	"tendril/internal/observe/logging"
)

func configured(t *testing.T, content string, flags map[string]string, environ ...string) (r *running, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "tendril.yaml")
	if content != "" {
		if err := os.WriteFile(file, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	given := map[string]string{"target": "http://127.0.0.1:1/", "data-dir": t.TempDir(), "listen": "127.0.0.1:0",
		"console": "127.0.0.1:0"}
	for name, value := range flags {
		given[name] = value
	}
	load := func(src config.Sources) (*config.Config, error) {
		src.Flags, src.Dir, src.Environ = given, filepath.Dir(file), append(environ, "HOME="+t.TempDir())
		return config.Load(src)
	}
	cfg, err := load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, nil, func(e *Environment) {
		e.opts.Config = cfg
		e.opts.Load = load
		e.settings.current.Store(newSettings(cfg).current.Load())
	}), file
}

func setting(pairs ...string) map[string]*string {
	set := map[string]*string{}
	for _, p := range pairs {
		name, text, found := strings.Cut(p, "=")
		if set[name] = nil; found {
			set[name] = &text
		}
	}
	return set
}

func TestChangedSettingsAreWrittenAndInForce(t *testing.T) {
	t.Parallel()
	r, file := configured(t, "# mine\nhttp_path: /a # here\nqueues:\n  - name: a\n    deadline: 5s\n  - b\n",
		map[string]string{"mime-type": "text/plain"}, "TENDRIL_RATE=5/s")
	shown := r.changes.configuration()
	if shown.File != file || !shown.Exists || shown.Problem != "" || len(shown.Changes) > 0 ||
		!slices.Contains(shown.Topics, "Scaling") || len(shown.Options) != len(config.Options()) {
		t.Errorf("%+v", shown)
	}
	for name, want := range map[string]struct{ value, effect, locked string }{
		"http-path":        {"/a", "reload", ""},
		"http-connections": {"50", "restart", ""}, // shared by several queues
		"max-retries":      {"10", "reload", ""},
		"max-wait":         {"0s", "restart", ""},
		"mime-type":        {"text/plain", "reload", "set by the flag --mime-type, which overrides"},
		"rate":             {"5/s", "restart", "set by the variable TENDRIL_RATE, which overrides"},
		"config":           {file, "restart", "it names the settings file"},
		"queues":           {"a,b", "restart", "the queues have their own"},
		"deadline of a":    {"5s", "reload", ""},
		"deadline of b":    {"0s", "reload", "the queue b has no settings of its own"},
	} {
		o := shown.Option(name)
		if o == nil || o.Value != want.value || o.Effect != want.effect || !strings.HasPrefix(o.Locked, want.locked) ||
			(want.locked == "") != (o.Locked == "") || o.Label == "" || o.Help == "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
	set := setting("http-path=/b", "max-retries=7", "max-wait=7s", "deadline of a=9s")
	preview, err := r.changes.previewChange(api.SettingsChange{Set: set})
	if err != nil || preview.Base != shown.Hash || len(preview.Lines) != 6 || len(preview.Changes) != 4 {
		t.Fatalf("%+v, %v", preview, err)
	}
	if r.settings.now().HTTPPath != "/a" {
		t.Error("a preview changed what is in force")
	}
	done, err := r.changes.changeSettings(t.Context(), api.SettingsChange{Set: set, Base: preview.Base})
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(file); string(data) != "# mine\nhttp_path: /b # here\nqueues:\n  - name: a\n"+
		"    deadline: 9s\n  - b\nmax_retries: 7\nmax_wait: 7s\n" {
		t.Errorf("the file is\n%s", data)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if s := r.settings.now(); s.HTTPPath != "/b" || s.MaxRetries != 7 || s.MaxWait != 0 || s.Queues[0].Deadline != 9*time.Second {
		t.Errorf("in force: %s, %d, %+v", s.HTTPPath, s.MaxRetries, s.Queues[0])
	}
	if _, most, err := r.queues.broker.Redrive("b"); most != 7 || err != nil {
		t.Errorf("the queue dead-letters after %d receives, %v", most, err)
	}
	if shown = r.changes.configuration(); shown.Hash != done.Hash || len(shown.Changes) != 1 || !shown.Changes[0].Restart ||
		shown.Changes[0].Name != "max-wait" || shown.Option("http-path").Where != file+":2" {
		t.Errorf("after the change: %s, %+v", shown.Hash, shown.Changes)
	}
	if preview, err = r.changes.previewChange(api.SettingsChange{Set: setting("http-path")}); err != nil ||
		len(preview.Changes) != 1 || preview.Changes[0].Name != "http-path" || preview.Changes[0].Value != "/" {
		t.Errorf("%+v, %v", preview.Changes, err)
	}
}

func TestRejectedSettingsChangeNothing(t *testing.T) {
	t.Parallel()
	const content = "http_path: /a\nconsole_token: 0123456789abcdef0\n"
	r, file := configured(t, content, map[string]string{"mime-type": "text/plain"})
	base := r.changes.configuration().Hash
	for what, c := range map[string]struct {
		set    map[string]*string
		base   string
		status int
		option string
	}{
		"a wrong value":        {setting("http-connections=5000"), base, 400, "http-connections"},
		"an unknown option":    {setting("http-pth=/"), base, 400, "http-pth"},
		"an option of a flag":  {setting("MimeType=a/b"), base, 400, "MimeType"},
		"options that clash":   {setting("backend=embedded", "queue-url=https://sqs.test/1/b"), base, 400, ""},
		"a queue without maps": {setting("deadline of b=1s"), base, 400, "deadline of b"},
		"another file":         {setting("http-path=/b"), "0", 409, ""},
	} {
		_, err := r.changes.changeSettings(t.Context(), api.SettingsChange{Set: c.set, Base: c.base})
		var said *api.Error
		if !errors.As(err, &said) || said.Status != c.status || c.status == 400 && len(said.Details) == 0 ||
			c.option != "" && said.Details[0].Option != c.option {
			t.Errorf("%s: %+v", what, err)
		}
	}
	now := r.changes.configuration()
	for _, o := range []string{"console-token", "mime-type"} {
		if shown := now.Option(o); strings.Contains(shown.Value, "0123456789") {
			t.Errorf("%s is shown: %+v", o, shown)
		}
	}
	for name, want := range map[string]string{"http-path": "act", "rate": "act", "target": "deploy", "lambda": "deploy",
		"machine-sections": "deploy", "filter": "deploy", "signing-secret": "own",
		"console-hosts": "own", "credentials": "own"} {
		if got := scopeOf(setting("http-path=/", name)); got != want || now.Option(name).Scope != want {
			t.Errorf("%s needs the scope %q, want %q", name, got, want)
		}
	}
	preview, err := r.changes.previewChange(api.SettingsChange{Set: setting("console-token=fedcba98765432100")})
	if err != nil || len(preview.Lines) != 2 || preview.Lines[0].Text != "console_token: (hidden)" ||
		preview.Changes[0].Value != "(hidden)" {
		t.Errorf("%+v, %v", preview, err)
	}
	// The next start would reject a file that others can write.
	if err := os.Chmod(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err = r.changes.changeSettings(t.Context(), api.SettingsChange{Set: setting("http-path=/b"), Base: base})
	var said *api.Error
	if !errors.As(err, &said) || said.Status != http.StatusBadRequest ||
		!strings.Contains(said.Details[0].Text, "not trusted") {
		t.Errorf("%+v", err)
	}
	if data, _ := os.ReadFile(file); string(data) != content || r.settings.now().HTTPPath != "/a" {
		t.Errorf("the file is\n%s", data)
	}
	if err := os.WriteFile(file, []byte("http_path: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if shown := r.changes.configuration(); shown.Problem == "" || !shown.Exists {
		t.Errorf("a file that is unreadable is not told of: %+v", shown.Problem)
	}
}

func TestOptionsOfQueuesAreSetForAllInstances(t *testing.T) {
	t.Parallel()
	r, _ := configured(t, "queues:\n- a\n- name: b\n  deadline: 5s\n", nil)
	state, err := instances.NewDesired("jobs", instances.FleetKey("0123456789abcdef0123456789abcdef"), "", func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	r.changes.desired.state = state
	shown := r.changes.configuration()
	for name, locked := range map[string]string{"deadline of a": "", "max of a": "", "deadline of b": "", "queues": "it determines"} {
		if o := shown.Option(name); o == nil || !strings.HasPrefix(o.Locked, locked) || (locked == "") != (o.Locked == "") {
			t.Errorf("%s: %+v", name, o)
		}
	}
	preview, err := r.changes.previewChange(api.SettingsChange{Set: setting("deadline of a=9s")})
	if err != nil || len(preview.Lines) != 1 || preview.Lines[0].Text != "deadline of a: 9s" || len(preview.Changes) != 1 ||
		preview.Changes[0].Name != "deadline of a" {
		t.Errorf("%+v, %v", preview, err)
	}

	r.changes.registry.Store(&config.File{Path: "registry", Data: []byte("deadline of b: 9s\n"), Shared: true})
	for _, c := range []struct {
		what, set, want string
		this            bool
	}{
		{"another queue", "deadline of c=9s", "this instance has no queue \"c\"", false},
		{"a weight", "weight of a=2", "cannot be set for all instances: it belongs to each instance's own list of queues", false},
		{"a setting for all instances, in the file", "deadline of b=1s", "tendril config unset \"deadline of b\"", true},
	} {
		_, err := r.changes.previewChange(api.SettingsChange{Set: setting(c.set), This: c.this})
		var said *api.Error
		if !errors.As(err, &said) || len(said.Details) != 1 || !strings.Contains(said.Details[0].Text, c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestOnlySharedOptionsAreOverriddenOnAnInstance(t *testing.T) {
	t.Parallel()
	r, _ := configured(t, "", map[string]string{"account-id": "123456789012", "http-path": "/own"})
	state, err := instances.NewDesired("jobs", instances.FleetKey("0123456789abcdef0123456789abcdef"), "", func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	r.changes.desired.state = state
	shown := r.changes.configuration()
	if o := shown.Option("account-id"); o.Value != "123456789012" || o.Locked == "" || o.Overridden != "" {
		t.Errorf("an option that only its instance sets: %+v", o)
	}
	if o := shown.Option("http-path"); o.Value != "/own" || o.Locked != "" || o.Overridden != "the flag --http-path" {
		t.Errorf("a shared option: %+v", o)
	}
}

func TestEveryLiveOptionIsReadInForce(t *testing.T) {
	t.Parallel()
	key := "whsec_" + strings.Repeat("A", 32)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"http-path": "/other", "mime-type": "a/b", "success-codes": "200-299",
		"terminal-codes": "422", "error-visibility-timeout": "7s", "signing-secret": key, "signing-secret-file": file,
		"filter": `{"body":{"kind":["order"]}}`}
	tuned := map[string]bool{}
	for _, o := range config.Options() {
		value := values[o.Name]
		switch {
		case o.Key == "" || o.Name == "queues" || o.Name == "config":
			continue
		case value != "":
		case o.IsSwitch():
			value = map[string]string{"true": "false", "false": "true"}[o.Default]
		case o.Default != "" && !strings.Contains(o.Default, "unset"):
			value = another(o)
		}
		if value == "" {
			continue
		}
		sources := config.Sources{Environ: []string{"HOME=/h"}, SystemFile: "/nowhere", Dir: "/nowhere",
			Flags: map[string]string{"target": "http://h"}}
		if strings.HasPrefix(o.Name, "rollout-batch") {
			sources.Flags["rollout-policy"] = config.RolloutRolling // the only policy with batches
		}
		before, err := config.Load(sources)
		if err != nil {
			t.Fatal(err)
		}
		sources.Flags[o.Name] = value
		after, err := config.Load(sources)
		if err != nil {
			continue // this option requires another one, so it cannot change by itself
		}
		change := config.Changed(&before.Settings, after)
		differs := !reflect.DeepEqual(readInForce(t, &before.Settings), readInForce(t, change.Settings))
		if tuned[o.Name] = differs; differs != o.Live || o.Live != slices.Contains(change.Live, o.Name) {
			t.Errorf("%s to %s: Live is %t, and what is read in force differs: %t (%q, %q)", o.Name, value, o.Live, differs,
				change.Live, change.Later)
		}
	}
	for _, o := range config.Options() {
		if o.Live && !tuned[o.Name] {
			t.Errorf("%s is Live and was not tried", o.Name)
		}
	}
}

func readInForce(t *testing.T, s *config.Settings) []any {
	t.Helper()
	q := queueWith(*s, s.Queues...)
	opts, err := httpOptions(s, q.settings(), "q")
	if err != nil {
		t.Fatal(err)
	}
	_, attributes := ownAttributes(s, q.settings())
	return []any{tuningOf(s, q.settings()), *opts, q.filter() == nil, attributes, rolloutPolicy(s), s.RegistryLostAfter}
}

func another(o config.Option) string {
	for _, word := range o.Choices() {
		if word != o.Default {
			return word
		}
	}
	low, high, found := strings.Cut(o.Allowed(), " to ")
	if high, _, _ = strings.Cut(high, ","); !found {
		return ""
	}
	if low != o.Default {
		return low
	}
	return high
}

func TestChangeThatStartupOutlastsIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	log := &safeBuffer{}
	c := &changes{opts: &Options{Logger: logging.New(logging.Options{Out: log})}, life: newLifecycle(), programs: &programs{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.awaitStart(ctx); !api.HasStatus(err, http.StatusConflict) || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("refused with %v", err)
	}
	if !strings.Contains(log.String(), "change waits for the end of startup") {
		t.Errorf("the log is %q", log)
	}
}
