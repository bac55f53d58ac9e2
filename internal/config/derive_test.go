package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tendril/internal/bundle"
)

func TestLayersDecide(t *testing.T) {
	t.Parallel()
	const file, amazon = "queue_url: https://sqs.eu-west-1.amazonaws.com/123456789012/jobs\n",
		"https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"
	for name, c := range map[string]struct {
		file  string
		flags map[string]string
		check func(*Config) bool
		want  string
	}{
		"the file's queue tried at home": {file: file, flags: map[string]string{"backend": "embedded"},
			check: func(c *Config) bool {
				return c.Backend == BackendEmbedded && c.QueueURL == "" && c.Queue == "tendril" && c.Region == "us-east-1" &&
					len(c.Warnings) == 1 && strings.Contains(c.Warnings[0].Text, "not used: --backend")
			}},
		"embedded in the file, a queue on the command line": {file: "backend: embedded\n",
			flags: map[string]string{"queue-url": amazon},
			want:  "the queue is set to embedded, but queue-url of --queue-url is set"},
		"a queue in each layer": {file: file, flags: map[string]string{"queue": "x"},
			want: "--queue: a queue is set both here and by the queue-url of"},
		"auto said aloud": {flags: map[string]string{"backend": "auto"},
			check: func(c *Config) bool {
				return c.Backend == BackendEmbedded && c.IsSet("backend") && c.Origin("backend").Where == "--backend"
			}},
		"the path of a stronger target": {file: "http_path: /file\n", flags: map[string]string{"target": "http://app/flag"},
			check: func(c *Config) bool {
				return c.HTTPPath == "/flag" && c.Target == "http://app" && c.Origin("http-path").Where == "--target"
			}},
		"a stronger path": {file: "target: http://app/file\n", flags: map[string]string{"http-path": "/flag"},
			check: func(c *Config) bool { return c.HTTPPath == "/flag" && c.Target == "http://app" }},
		"the same path twice": {flags: map[string]string{"target": "http://app/a", "http-path": "/a"},
			check: func(c *Config) bool { return c.HTTPPath == "/a" && c.Target == "http://app" }},
		"two paths": {flags: map[string]string{"target": "http://app/a", "http-path": "/b"},
			want: "--target: the target has the path /a and http-path is /b (--http-path)"},
		"a target's slash is not a path": {file: "http_path: /file\n", flags: map[string]string{"target": "http://app/"},
			check: func(c *Config) bool { return c.HTTPPath == "/file" && c.Target == "http://app" }},
		"a target's bad path": {flags: map[string]string{"target": "http://app/a/../b"},
			want: "--target: the target's path /a/../b contains a dot or dot-dot segment"},
		"a socket's path is not a path of the app": {flags: map[string]string{"target": "unix:///run/app.sock"},
			check: func(c *Config) bool { return c.HTTPPath == "/" && c.Target == "unix:///run/app.sock" }},
		"quiet over a verbose file": {file: "verbose: true\n", flags: map[string]string{"quiet": "true"},
			check: func(c *Config) bool { return c.Quiet && !c.Verbose }},
		"verbose over a quiet file": {file: "quiet: true\n", flags: map[string]string{"verbose": "true"},
			check: func(c *Config) bool { return !c.Quiet && c.Verbose }},
		"both at once": {flags: map[string]string{"quiet": "true", "verbose": "true"},
			want: "--quiet: output cannot be quiet and verbose (--verbose)"},
		"a long backoff": {flags: map[string]string{"backoff-min": "2h"},
			check: func(c *Config) bool { return c.BackoffMin == 2*time.Hour && c.BackoffMax == 2*time.Hour }},
		"a backoff upside down": {file: "backoff_max: 60\n", flags: map[string]string{"backoff-min": "2h"},
			want: "backoff-max 60s is shorter than backoff-min 7200s (--backoff-min)"},
		"the queue is named after the environment": {flags: map[string]string{"name": "orders"},
			check: func(c *Config) bool { return c.Queue == "orders" && !c.IsSet("queue") }},
		"no mistake is told twice": {file: "backend: sqs\n", flags: map[string]string{"queue-url": "nonsense"},
			want: "--queue-url: nonsense is not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := Load(Sources{Dir: write(t, "tendril.yaml", c.file), Environ: home(), Flags: c.flags})
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			case c.want != "" && len(err.(*Error).Problems) != 1:
				t.Errorf("one mistake, several problems: %v", err)
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "" && !c.check(cfg):
				t.Errorf("got %+v\nwarnings %v", cfg.Settings, cfg.Warnings)
			}
		})
	}
}

func TestEmbeddedQueueWithAURLIsRefusedWithoutAWarning(t *testing.T) {
	t.Parallel()
	l := newLoader(Sources{Environ: home(), Flags: map[string]string{"backend": "embedded",
		"queue-url": "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"}})
	readFlags(l)
	derive(l)
	if len(l.refused.Problems) != 1 || len(l.cfg.Warnings) != 0 {
		t.Errorf("refused %v, warnings %v", l.refused.Problems, l.cfg.Warnings)
	}
}

func TestDataDir(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		root    bool
		flags   map[string]string
		want    string
	}{
		"systemd": {[]string{"STATE_DIRECTORY=/var/lib/a:/var/lib/b", "XDG_STATE_HOME=/x", "HOME=/h"}, true,
			nil, "/var/lib/a/environments/tendril"},
		"systemd, and the app": {[]string{"STATE_DIRECTORY=/var/lib/orders:/var/lib/tendril"}, false, nil,
			"/var/lib/tendril/environments/tendril"},
		"XDG": {[]string{"XDG_STATE_HOME=/x", "HOME=/h"}, true, nil, "/x/tendril/environments/tendril"},
		"a relative XDG folder": {[]string{"XDG_STATE_HOME=x", "HOME=/h"}, false, nil,
			"/h/.local/state/tendril/environments/tendril"},
		"root":     {[]string{"HOME=/h"}, true, nil, "/var/lib/tendril/environments/tendril"},
		"somebody": {[]string{"HOME=/h"}, false, nil, "/h/.local/state/tendril/environments/tendril"},
		"a name": {[]string{"HOME=/h"}, false, map[string]string{"name": "shop"},
			"/h/.local/state/tendril/environments/shop"},
		"a flag": {[]string{"STATE_DIRECTORY=/s"}, false, map[string]string{"data-dir": "/d"}, "/d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := mustLoad(t, Sources{Environ: c.environ, Root: c.root, Flags: c.flags})
			if cfg.DataDir != c.want {
				t.Errorf("data lies in %s, want %s", cfg.DataDir, c.want)
			}
		})
	}
	_, err := loadIsolated(t, Sources{})
	if err == nil || !strings.Contains(err.Error(), "no data directory") ||
		!strings.Contains(err.Error(), "--data-dir=/var/lib/tendril") {
		t.Errorf("without a home: %v", err)
	}
	relative := mustLoad(t, Sources{Environ: home(), Flags: map[string]string{"data-dir": "data"}})
	if !filepath.IsAbs(relative.DataDir) {
		t.Errorf("a relative folder stays relative: %s", relative.DataDir)
	}
}

func TestDefaultNameHasItsReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bundle *bundle.Bundle
		reason string
	}{
		"without an app":          {nil, "there is no app folder to derive the name from"},
		"a folder's letters":      {&bundle.Bundle{Dir: "/srv/注文"}, "the name of the app's folder or archive has no ASCII letters or digits"},
		"an archive's letters":    {&bundle.Bundle{Dir: "/srv/1", Called: "заказы"}, "the name of the app's folder or archive has no ASCII letters or digits"},
		"a folder of punctuation": {&bundle.Bundle{Dir: "/srv/--"}, "the name of the app's folder or archive has no ASCII letters or digits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := mustLoad(t, Sources{Environ: home(), Bundle: c.bundle})
			if want := (Origin{Default, c.reason}); cfg.Name != "tendril" || cfg.Origin("name") != want {
				t.Errorf("name %s, %+v; want %+v", cfg.Name, cfg.Origin("name"), want)
			}
		})
	}
}

func TestFreePortsReplaceDefaults(t *testing.T) {
	t.Parallel()
	free := map[string]string{"listen": "127.0.0.1:9330", "console": "127.0.0.1:9331", "port": "5003"}
	cfg := mustLoad(t, Sources{Environ: home(), Free: free, Flags: map[string]string{"port": "7000"}})
	if cfg.Listen != "127.0.0.1:9330" || cfg.Console != "127.0.0.1:9331" || cfg.Port != 7000 {
		t.Errorf("listen %s, console %s, port %d", cfg.Listen, cfg.Console, cfg.Port)
	}
	if cfg.IsSet("listen") || cfg.Origin("listen").String() != "default: 127.0.0.1:9324 is used" {
		t.Errorf("listen comes from %q", cfg.Origin("listen"))
	}
}

func TestShutdownDelayHasAMinimum(t *testing.T) {
	t.Parallel()
	const delay = "WORKER_SHUTDOWN_DELAY"
	property := func(text string) Sources {
		return Sources{Environ: home(), Bundle: withSettings(setting(bundle.NamespaceEnvironment, delay, text, 3))}
	}
	for name, c := range map[string]struct {
		src          Sources
		grace, drain time.Duration
		warnings     int
	}{
		"unset":                    {Sources{Environ: home()}, 10 * time.Second, 30 * time.Second, 0},
		"a property of 0":          {property("0"), 10 * time.Second, 15 * time.Second, 1},
		"a property of 2":          {property("2"), 10 * time.Second, 15 * time.Second, 1},
		"a property of 10":         {property("10"), 10 * time.Second, 15 * time.Second, 0},
		"a property of 20":         {property("20"), 20 * time.Second, 25 * time.Second, 0},
		"a property of 60":         {property("60"), time.Minute, 65 * time.Second, 0},
		"a variable of 0":          {Sources{Environ: home(delay + "=0")}, 10 * time.Second, 15 * time.Second, 1},
		"an option of 2":           {Sources{Environ: home(), Flags: map[string]string{"app-grace": "2s"}}, 2 * time.Second, 7 * time.Second, 0},
		"an option over a smaller": {Sources{Environ: home(delay + "=1"), Flags: map[string]string{"app-grace": "2s"}}, 2 * time.Second, 7 * time.Second, 0},
		"both": {Sources{Environ: home(delay + "=20"), Flags: map[string]string{"shutdown-timeout": "1s"}},
			20 * time.Second, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := mustLoad(t, c.src)
			if cfg.AppGrace != c.grace || cfg.ShutdownTimeout != c.drain || len(cfg.Warnings) != c.warnings {
				t.Errorf("grace %s, drain %s, warnings %v", cfg.AppGrace, cfg.ShutdownTimeout, cfg.Warnings)
			}
		})
	}
}
