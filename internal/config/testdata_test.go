package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/*.want and docs/options.md")

func TestSettingsFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 50 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	nested, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(nested) == 0 {
		t.Fatalf("found %d files in folders, %v", len(nested), err)
	}
	for _, path := range append(files, nested...) {
		t.Run(strings.TrimSuffix(path, ".yaml"), func(t *testing.T) {
			t.Parallel()
			cfg, err := Load(Sources{Environ: []string{"HOME=/absent"}, Flags: map[string]string{"config": path}})
			got := outcome(cfg, err)
			golden := strings.TrimSuffix(path, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; go test ./internal/config -update writes it", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func outcome(cfg *Config, err error) string {
	var b strings.Builder
	if err != nil {
		return "refused\n" + err.Error() + "\n"
	}
	b.WriteString("accepted")
	if cfg.DaemonFile() {
		b.WriteString(" as a file of aws-sqsd")
	}
	b.WriteByte('\n')
	for _, o := range cfg.options {
		from := cfg.Origin(o.Name)
		if o.Name == "config" || from == (Origin{}) || strings.HasPrefix(from.Where, "below the home") ||
			strings.HasPrefix(from.Where, "there is no app") ||
			from.Where == "the one queue" || from.Where == "no queue or function is on AWS itself" {
			continue
		}
		fmt.Fprintf(&b, "%s = %s (%s)\n", o.Name, o.get(&cfg.Settings), from)
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
		if w.Hint != "" {
			fmt.Fprintf(&b, "  %s\n", w.Hint)
		}
	}
	return b.String()
}
