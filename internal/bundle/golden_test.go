package bundle

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the section want of testdata/*.txtar")

// Each bundle in testdata has a section named want. Lines before the first file may be "noexec FILE", "exec FILE" and
// "crlf FILE"; hooks are executable by default.
func TestBundles(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) < 40 {
		t.Fatalf("found %d bundles, %v", len(archives), err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			last := &a.Files[len(a.Files)-1]
			if last.Name != "want" {
				t.Fatal("the last section must be want")
			}
			got := outcome(lay(t, a))
			if *update {
				last.Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(last.Data), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func lay(t *testing.T, a *txtar.Archive) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "app")
	said := map[string]bool{}
	for line := range strings.Lines(string(a.Comment)) {
		said[strings.TrimSpace(line)] = true
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files[:len(a.Files)-1] {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data, mode := string(f.Data), os.FileMode(0o644)
		if said["crlf "+f.Name] {
			data = strings.ReplaceAll(data, "\n", "\r\n")
		}
		if said["exec "+f.Name] || isHook(f.Name) && !said["noexec "+f.Name] {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(data), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func outcome(dir string) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	found, err := Open(dir)
	if err != nil {
		return strings.ReplaceAll("refused\n"+err.Error()+"\n", dir, "app")
	}
	say("name %s", found.Name())
	if found.Manifest != (Manifest{}) {
		say("manifest %+v", found.Manifest)
	}
	for _, s := range found.Settings {
		say("setting %s", s)
	}
	for _, p := range found.Environment() {
		say("variable %s=%s (%s:%d)", p.Option, p.Shown(), p.File, p.Line)
	}
	for _, l := range found.Links {
		say("link %s to %s (%s:%d)", l.Variable, l.Environment, l.File, l.Line)
	}
	for _, s := range found.Plan() {
		say("step %s", line(s))
	}
	for _, s := range found.ConfigPlan() {
		if s.Phase != PhaseStart {
			say("config step %s", line(s))
		}
	}
	if _, err := found.Web(); err != nil {
		say("no app: %v", err)
	}
	if found.Default != nil {
		for _, s := range found.WithDefault().Plan() {
			say("by default (%s) step %s", found.Default.Platform, line(s))
		}
	}
	for _, w := range found.Warnings {
		say("warning: %s\n  %s", w, w.Hint)
	}
	for _, f := range found.Unsupported {
		say("not used %s", f)
	}
	for _, f := range found.Machine.Sections {
		say("section %s", f)
	}
	for _, f := range found.Machine.NotUsed {
		say("not applied %s", f)
	}
	for _, p := range found.Machine.Problems {
		say("wrong %s\n  %s", p, p.Hint)
	}
	for i := range found.Machine.Configs {
		c := reflect.ValueOf(found.Machine.Configs[i])
		for j := range c.NumField() {
			for k := range c.Field(j).Len() {
				text, err := json.Marshal(c.Field(j).Index(k).Interface())
				say("machine %s %s %v", c.Type().Field(j).Name, text, err)
			}
		}
	}
	return strings.ReplaceAll(b.String(), dir, "app")
}

func line(s Step) string {
	command := s.Shell
	if command == "" {
		command = strings.Join(s.Argv, " ")
	}
	rules := ""
	if s.Phase == PhaseCommand {
		rules = fmt.Sprintf(" env %q test %q leader %t ignore errors %t", s.Env, s.Test, s.LeaderOnly, s.IgnoreErrors)
	}
	return fmt.Sprintf("%s %s: %s (%s:%d, in %s)%s", s.Phase, s.Name, command, s.File, s.Line, s.Dir, rules)
}
