package periodic

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

var update = flag.Bool("update", false, "rewrite testdata/*.want")

func TestFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, golden := outcome(ParseFile("cron.yaml", data)), strings.TrimSuffix(path, ".yaml")+".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; go test ./internal/cron/periodic -update writes it", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func outcome(f *File, err error) string {
	if err != nil {
		return "refused\n" + err.Error() + "\n"
	}
	var b strings.Builder
	b.WriteString("accepted\n")
	for _, t := range f.Tasks {
		fmt.Fprintf(&b, "%d: %s -> %s, %s\n", t.Line, t.Name, t.URL, t.Schedule.Words())
		if t.Jitter != 0 || t.Grace != 0 || t.Overlap != "" || t.Missed != "" || t.Payload != "" || t.Queue != "" ||
			t.Attributes != nil {
			fmt.Fprintf(&b, "  jitter %v, grace %v, overlap %s, missed %s, payload %q, queue %s, attributes %v\n",
				t.Jitter, t.Grace, t.Overlap, t.Missed, t.Payload, t.Queue, t.Attributes)
		}
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(&b, "warning: %s\n  %s\n", w, w.Hint)
	}
	return b.String()
}

func TestEveryRefusalGivesAdvice(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseFile("cron.yaml", data)
		var refused *Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("%s: %T", path, err)
		} else if err == nil {
			continue
		}
		for _, p := range refused.Problems {
			if p.Hint == "" || !strings.HasPrefix(p.Where, "cron.yaml") || strings.ContainsAny(p.Text+p.Hint, "\n\r") {
				t.Errorf("%s: %+v", path, p)
			}
		}
	}
}

func TestPathsAreDelivered(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/", "/a", "/a/b?c=d", "/a%20b", "/ü", "/a;b/c", "/.../a", "/a?" + strings.Repeat("ü", 300),
		"/" + strings.Repeat("%41", 600),
		"/%2541", "/%252541", "/a?b?c", "/a?", "/a b", "/..;x/", "/%2f%2fa", "/%5c", "/a?b#c", "/a?//..", "/%00", "a", "",
		"//", "/%",
		"/" + strings.Repeat("ü", 1000),
	} {
		_, err := queue.ParsePath(path)
		text := fmt.Sprintf("version: 1\ncron: [{name: a, url: %q, schedule: \"@daily\"}]", path)
		if _, problem := ParseFile("cron.yaml", []byte(text)); (problem == nil) != (err == nil) {
			t.Errorf("%.60q: %v here, %v there", path, problem, err)
		}
	}
}

func TestTasksAtTheirBounds(t *testing.T) {
	t.Parallel()
	repeat := strings.Repeat
	for lines, accepted := range map[string]bool{
		"queue: " + repeat("q", 80): true, "queue: " + repeat("q", 81): false, "queue: https://example.com/~a": true,
		"queue: \"a b\"": false,
		"grace: 1s":      true, "grace: 999ms": false, "grace: " + maxGrace.String(): true,
		"jitter: 0s": true, "jitter: -1s": false,
		"jitter: " + maxJitter.String(): true, "jitter: " + (maxJitter + time.Second).String(): false,
		"attributes: {" + repeat("a", 256) + ": b}": true, "attributes: {" + repeat("a", 257) + ": b}": false,
	} {
		const task = "version: 1\ncron:\n- name: a\n  url: /a\n  schedule: 0 0 * * *\n  "
		if _, err := ParseFile("cron.yaml", []byte(task+lines+"\n")); (err == nil) != accepted {
			t.Errorf("%.60s: %v, want it accepted: %v", lines, err, accepted)
		}
	}
	for name, accepted := range map[string]bool{repeat("n", maxName): true, repeat("n", maxName+1): false} {
		if err := checkName(name); (err == nil) != accepted {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
}

func TestLineThatIsNotYAMLNamesTheTaskByItsNumber(t *testing.T) {
	t.Parallel()
	const file = "version: 1\ncron:\n- name: a\n  url: /a\n  schedule: 0 0 * * *\n- url: /b\n  schedule: * 0 * * *\n"
	_, err := ParseFile("cron.yaml", []byte(file))
	if err == nil || !strings.Contains(err.Error(), "number 2") ||
		!strings.Contains(err.Error(), `schedule: "* 0 * * *"`) {
		t.Errorf("got %v", err)
	}
}

func TestProblemWithAValueThatContainsAColon(t *testing.T) {
	t.Parallel()
	const file = "version: 1\ncron:\n- name: a\n  url: /a\n  schedule: 0 0 * * *\n  overlap: 'a: b'\n"
	_, err := ParseFile("cron.yaml", []byte(file))
	var refused *Error
	if !errors.As(err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Text != `invalid overlap "a: b"` ||
		refused.Problems[0].Hint != "use one of allow and skip" {
		t.Errorf("got %v", err)
	}
}

func TestHostileFilesAreRefusedFast(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("files of the maximum size take a minute with the race detector, and a parser starts no goroutines: not with -short")
	}
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", MaxFile), "braces": strings.Repeat("{", MaxFile),
		"mixed":  strings.Repeat("[{", MaxFile/2),
		"dashes": strings.Repeat("- ", MaxFile/2), "commas": "[" + strings.Repeat(",", MaxFile-1),
		"colons": strings.Repeat(": ", MaxFile/2),
		"stairs": stairs(), "keys": strings.Repeat("a:\n", MaxFile/3), "anchors": strings.Repeat("&a ", MaxFile/3),
		"quotes": strings.Repeat("\"", MaxFile),
		"items":  "cron:\n" + strings.Repeat("-\n", MaxFile/2-3), "pipes": strings.Repeat("a: |\n", MaxFile/5),
		"breaks":    strings.Repeat("\n", MaxFile),
		"documents": strings.Repeat("---\n", MaxFile/4), "pairs": "{" + strings.Repeat("a: b, ", MaxFile/6-1),
		"hashes": strings.Repeat("#\n", MaxFile/2),
		"inner":  strings.Repeat("a: [", MaxFile/4), "questions": strings.Repeat("? ", MaxFile/2),
	} {
		start := time.Now()
		f, err := ParseFile("cron.yaml", []byte(text))
		if err == nil {
			t.Errorf("%s: accepted as %d tasks", name, len(f.Tasks))
		}
		t.Logf("%s: %v", name, time.Since(start))
	}
}

func stairs() string {
	var b strings.Builder
	for i := 0; b.Len() < MaxFile-400; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func FuzzParseFile(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, path := range files {
		if data, err := os.ReadFile(path); err == nil && len(data) < 4096 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParseFile("cron.yaml", data)
		var refused *Error
		switch {
		case err != nil && (!errors.As(err, &refused) || len(refused.Problems) == 0):
			t.Fatalf("%T %v", err, err)
		case err != nil:
			return
		}
		names := map[string]bool{}
		for _, task := range file.Tasks {
			if task.Name == "" || names[task.Name] || task.Line < 1 || task.Schedule.Next(time.Unix(0, 0)).IsZero() ||
				len(task.Attributes) > maxAttributes {
				t.Errorf("accepted %+v", task)
			}
			if _, err := queue.ParsePath(task.URL); err != nil {
				t.Errorf("%q can never be delivered: %v", task.URL, err)
			}
			names[task.Name] = true
		}
	})
}
