package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func loaded(t *testing.T, queues string, flags map[string]string) *Config {
	t.Helper()
	cfg, err := Load(Sources{Flags: flags, Dir: write(t, "tendril.yaml", queues), SystemFile: "/nowhere", Environ: home()})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestLiveOptionsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/app.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "These options take effect while tendril runs")
	list, _, _ = strings.Cut(list, "The others wait")
	for _, o := range Options() {
		if o.Live != strings.Contains(list, "`"+o.Name+"`") {
			t.Errorf("%s: live %t, and docs/app.md says otherwise", o.Name, o.Live)
		}
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	const (
		one   = "http_path: /a\n"
		two   = "queues: [{name: a, inactivity_timeout: 5s}, {name: b}]\n"
		two7  = "queues: [{name: a, inactivity_timeout: 7s, max_wait: 9s}, {name: b}]\n"
		three = "queues: [{name: a, inactivity_timeout: 7s}, {name: b}, {name: c}]\n"
	)
	for name, c := range map[string]struct {
		before, after string
		flags         map[string]string
		live, later   []string
	}{
		"nothing": {before: one, after: one},
		"what can": {before: one, after: "http_path: /b\nhttp_connections: 7\nerror_visibility_timeout: 9s\n",
			live: []string{"http-path", "http-connections", "error-visibility-timeout"}},
		"what cannot": {before: one, after: one + "rate: 10/s\n", later: []string{"rate"}},
		"removed": {before: "filter: '{\"body\": {\"a\": [1]}}'\nterminal_codes: 400\n", after: "{}\n",
			live: []string{"terminal-codes", "filter"}},
		"both": {before: one, after: one,
			flags: map[string]string{"deadline": "9s", "max-wait": "77s"}, live: []string{"deadline"},
			later: []string{"max-wait"}},
		"for one queue": {before: two, after: two7, live: []string{"inactivity-timeout of a"},
			later: []string{"max-wait of a"}},
		"the most of a queue": {before: "queues: [{name: a, max: 2}, {name: b}]\n",
			after: "queues: [{name: a, max: 3}, {name: b, max: 4}]\n", later: []string{"max of a", "max of b"}},
		"the most of a queue and of all": {before: "queues: [{name: a}]\n", after: "queues: [{name: a, max: 5}]\nhttp_connections: 7\n",
			live: []string{"http-connections"}, later: []string{"max of a"}},
		"the most of all that is a queue's own": {before: "queues: [{name: a, max: 7}]\n",
			after: "queues: [{name: a, max: 7}]\nhttp_connections: 7\n", live: []string{"http-connections"}},
		"the most of all": {before: two, after: two + "http_connections: 7\n", live: []string{"http-connections"}},
		"for all the others": {before: two, after: two, flags: map[string]string{"mime-type": "text/plain"},
			live: []string{"mime-type"}},
		"other queues": {before: two, after: three, later: []string{"queues"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := loaded(t, c.before, nil), loaded(t, c.after, c.flags)
			got := Changed(&before.Settings, after)
			if !slices.Equal(got.Live, c.live) || !slices.Equal(got.Later, c.later) {
				t.Errorf("live %q, later %q; want %q, %q", got.Live, got.Later, c.live, c.later)
			}
			if again := Changed(got.Settings, after); again.Live != nil || !slices.Equal(again.Later, c.later) {
				t.Errorf("a second time: %q, %q", again.Live, again.Later)
			}
		})
	}
	before, after := loaded(t, one, nil),
		loaded(t, "http_path: /b\nhttp_connections: 7\nmax_wait: 77s\ninactivity_timeout: 8s\n", nil)
	got := Changed(&before.Settings, after).Settings
	if q := got.Queues[0]; q.HTTPPath != "/b" || q.Concurrency != 7 || q.InactivityTimeout != 8*time.Second ||
		q.MaxWait != before.MaxWait {
		t.Errorf("in force: %+v", q)
	}
	if q := before.Queues[0]; q.HTTPPath != "/a" || before.HTTPPath != "/a" {
		t.Errorf("the settings before were changed: %+v", q)
	}
	after = loaded(t, "queues: [{name: tendril, max: 5}]\nhttp_connections: 7\n", nil)
	if q := Changed(&before.Settings, after).Settings.Queues[0]; q.Concurrency != 7 {
		t.Errorf("a queue whose own maximum waits for a start has %d connections, want those of all queues", q.Concurrency)
	}
}

func TestExplainAfterAChange(t *testing.T) {
	t.Parallel()
	const two = "queues: [{name: a, inactivity_timeout: 5s}, {name: b}]\n"
	find := func(all []Explanation, name string) Explanation {
		i := slices.IndexFunc(all, func(e Explanation) bool { return e.Option.Name == name })
		return all[i]
	}
	says := func(value string, from Origin) string { return value + " " + filepath.Base(from.String()) }
	before := loaded(t, two+"http_path: /a\nrate: 5/s\n", nil)
	after := loaded(t,
		"\nqueues: [{name: a, inactivity_timeout: 7s, max_wait: 9s}, {name: b}]\nhttp_path: /b\nrate: 9/s\n",
		map[string]string{"console-token": "4f1b0c2a9d8e7f60"})
	change := Changed(&before.Settings, after)
	now := change.Explain(before.ExplainAll())
	for name, want := range map[string]string{"http-path": "/b tendril.yaml:3", "rate": "5/s tendril.yaml:3",
		"console-token": " default", "deadline": "0s default"} {
		if e := find(now, name); says(e.Value, e.From) != want {
			t.Errorf("%s: %s (%s), want %s", name, e.Value, e.From, want)
		}
	}
	a := find(now, "queues").Queues[0]
	for key, want := range map[string]string{"inactivity_timeout": "7s tendril.yaml:2", "max_wait": "0s default",
		"http_path": "/b tendril.yaml:3"} {
		if s, _ := a.setting(key); says(s.Value, s.From) != want {
			t.Errorf("%s of a: %s (%s), want %s", key, s.Value, s.From, want)
		}
	}
	for name, want := range map[string]string{"rate": "9/s tendril.yaml:4", "max-wait of a": "9s tendril.yaml:2",
		"console-token": hidden + " --console-token"} {
		if !slices.Contains(change.Later, name) {
			t.Errorf("%s does not wait for the next start: %q", name, change.Later)
		}
		if p := change.Pending(name); says(p.Value, p.Origin) != want {
			t.Errorf("%s: the files say %s (%s), want %s", name, p.Value, p.Origin, want)
		}
	}
	var unchanged Change
	if got := unchanged.Explain(now); len(got) != len(now) {
		t.Error("no change lost the explanations")
	}
	weighted := loaded(t, "queues: [{name: a, weight: 2, inactivity_timeout: 7s}, {name: b, weight: 1}]\nhttp_path: /b\n", nil)
	change = Changed(&before.Settings, weighted)
	a = find(change.Explain(before.ExplainAll()), "queues").Queues[0]
	if _, found := a.setting("weight"); found {
		t.Errorf("the weight of a is in force before the next start: %+v", a.Settings)
	}
	for key, want := range map[string]string{"inactivity_timeout": "7s", "http_path": "/b", "max_wait": "0s"} {
		if s, _ := a.setting(key); s.Value != want {
			t.Errorf("%s of a: %s, want %s", key, s.Value, want)
		}
	}
	for l := Default; l <= fromFlag; l++ {
		if ParseLayer(l.String()) != l {
			t.Errorf("layer %s is read as %s", l, ParseLayer(l.String()))
		}
	}
}
