package config

import (
	"os"
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

// TestLiveOptionsAreDocumented: the guide lists those that need no restart.
func TestLiveOptionsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/app.md")
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
		"both": {before: one, after: one,
			flags: map[string]string{"deadline": "9s", "visibility-timeout": "77s"}, live: []string{"deadline"},
			later: []string{"visibility-timeout"}},
		"for one queue": {before: two, after: two7, live: []string{"inactivity-timeout of a"},
			later: []string{"max-wait of a"}},
		"the most of a queue": {before: "queues: [{name: a, max: 2}, {name: b}]\n",
			after: "queues: [{name: a, max: 3}, {name: b, max: 4}]\n", later: []string{"max of a", "max of b"}},
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
		loaded(t, "http_path: /b\nhttp_connections: 7\nvisibility_timeout: 77s\ninactivity_timeout: 8s\n", nil)
	got := Changed(&before.Settings, after).Settings
	if q := got.Queues[0]; q.HTTPPath != "/b" || q.Concurrency != 7 || q.InactivityTimeout != 8*time.Second ||
		q.VisibilityTimeout != before.VisibilityTimeout {
		t.Errorf("in force: %+v", q)
	}
	if q := before.Queues[0]; q.HTTPPath != "/a" || before.HTTPPath != "/a" {
		t.Errorf("the settings before were changed: %+v", q)
	}
}
