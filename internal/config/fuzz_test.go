package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLoad checks that any tendril.yaml or aws-sqsd file yields valid settings, or printable errors with a position.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := Load(Sources{Environ: home(), Flags: map[string]string{"config": path}})
		if err == nil {
			checkLoaded(t, cfg)
			return
		}
		var bad *Error
		if !errors.As(err, &bad) || len(bad.Problems) == 0 || cfg != nil {
			t.Fatalf("got %v, %v; want an *Error with problems alone", cfg, err)
		}
		for _, p := range bad.Problems {
			if p.Text == "" || !strings.HasPrefix(p.Where, path) || !printable(p.Text) || !printable(p.Hint) {
				t.Fatalf("%+v is not a problem to print", p)
			}
		}
	})
}

func checkLoaded(t *testing.T, cfg *Config) {
	again := table(&Settings{})
	for i, o := range cfg.options {
		text := o.value.get()
		if text == "" {
			continue
		}
		if err := again[i].value.set(text); err != nil || again[i].value.get() != text {
			t.Fatalf("%s is %q, which %v or changes to %q", o.Name, text, err, again[i].value.get())
		}
		if e, err := cfg.Explain(o.Name); err != nil || e.Value != o.redacted(text) {
			t.Fatalf("%s is %q and is explained as %+v, %v", o.Name, text, e, err)
		}
	}
	for i := range cfg.Queues {
		q := &cfg.Queues[i]
		if q.Name == "" || q.Region == "" || q.Backend != BackendEmbedded && q.Backend != BackendSQS ||
			q.Backend == BackendEmbedded && q.URL != "" ||
			q.Target != "" && q.ToFunction() || q.Function != "" && q.Lambda != "" || q.Concurrency < 1 ||
			(q.Weight == 0) != cfg.Strict {
			t.Fatalf("the queue %+v is not worked out", q)
		}
	}
	for _, w := range cfg.Warnings {
		if !printable(w.Text) || !printable(w.Hint) {
			t.Fatalf("%+v is not a warning to print", w)
		}
	}
	if cfg.Backend == backendAuto || cfg.CloudWatch == auto || len(cfg.Queues) == 0 || cfg.Name == "" ||
		cfg.Queue == "" || cfg.DataDir == "" || cfg.Quiet && cfg.Verbose || cfg.BackoffMax < cfg.BackoffMin {
		t.Fatalf("%+v is not worked out", cfg.Settings)
	}
}

func printable(s string) bool {
	return utf8.ValidString(s) && len(s) < 2000 && !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || r == 0x7f
	})
}
