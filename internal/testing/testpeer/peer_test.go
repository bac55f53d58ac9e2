package testpeer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

type observer struct {
	testing.TB
	ended, said string
}

func (w *observer) Helper() {}

func (w *observer) Skipf(format string, args ...any) { w.end("skipped", format, args) }

func (w *observer) Fatalf(format string, args ...any) { w.end("failed", format, args) }

func (w *observer) end(how, format string, args []any) {
	w.ended, w.said = how, fmt.Sprintf(format, args...)
	panic(w)
}

func (w *observer) see(f func(testing.TB)) {
	defer func() {
		if p := recover(); p != nil && p != any(w) {
			panic(p)
		}
	}()
	f(w)
}

func TestMissingPeersAreNamed(t *testing.T) {
	for _, c := range []struct {
		name string
		ask  func(testing.TB)
		want []string
	}{
		{"a program", func(t testing.TB) { Program(t, "no-such-program") }, []string{"no-such-program", "PATH"}},
		{"a module", func(t testing.TB) {
			Python(t, "some[thing]", "no_such_module")
		}, []string{"pip install 'some[thing]'", "TENDRIL_PYTHON=", "no_such_module"}},
		{"a program of a Python package", func(t testing.TB) {
			PythonProgram(t, "some[thing]", "no-such-program")
		}, []string{"pip install 'some[thing]'", "TENDRIL_PYTHON=", "no-such-program"}},
		{"a package", func(t testing.TB) {
			NodeModules(t, "@no/such-package")
		}, []string{"npm install @no/such-package", "TENDRIL_NODE_MODULES"}},
		{"a server", func(t testing.TB) { MiniStack(t) }, []string{"pip install 'ministack==" + miniStackVersion + "'",
			"TENDRIL_PYTHON_MINISTACK="}},
		{"a version", func(t testing.TB) { wantVersion(t, "moto", "1.2.2", "1.2.3") }, []string{"moto 1.2.3", "1.2.2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			switch c.name {
			case "a server":
				t.Setenv("TENDRIL_PYTHON_MINISTACK", "")
			case "a module", "a program of a Python package":
				Program(t, "python3")
				t.Setenv("TENDRIL_PYTHON", "")
			case "a package":
				Program(t, "node")
			}
			for value, ended := range map[string]string{"": "skipped", "1": "failed"} {
				t.Setenv("TENDRIL_REQUIRE_PEERS", value)
				var w observer
				if w.see(c.ask); w.ended != ended {
					t.Errorf("with TENDRIL_REQUIRE_PEERS=%q the test is %q: %s", value, w.ended, w.said)
				}
				for _, text := range c.want {
					if !strings.Contains(w.said, text) {
						t.Errorf("it does not say %q: %s", text, w.said)
					}
				}
			}
		})
	}
}

func TestWhatIsThereIsFound(t *testing.T) {
	t.Setenv("TENDRIL_REQUIRE_PEERS", "1")
	w := observer{TB: t}
	if w.see(func(t testing.TB) { Program(t, "sh") }); w.ended != "" {
		t.Errorf("there is no shell: %s", w.said)
	}
}

func TestServerThatEndsIsNotWaitedFor(t *testing.T) {
	server := exec.Command(Program(t, "sh"), "-c", "echo no such option; exit 3")
	w := observer{TB: t}
	w.see(func(t testing.TB) { serve(t, server, FreePort(t)) })
	if w.ended != "failed" || !strings.Contains(w.said, "no such option") || !strings.Contains(w.said, "exit status 3") {
		t.Errorf("the test %q: %s", w.ended, w.said)
	}
}

func TestNightlyRunsAreLarger(t *testing.T) {
	for value, want := range map[string]int{"": 3, "1": 300} {
		t.Setenv("TENDRIL_NIGHTLY", value)
		if got := Size(3, 300); got != want || Nightly() != (value != "") {
			t.Errorf("TENDRIL_NIGHTLY=%q: %d, want %d", value, got, want)
		}
	}
}

type environmentOf struct{ home, key, temp *string }

func (e environmentOf) Run() int {
	*e.home, *e.key, *e.temp = os.Getenv("HOME"), os.Getenv("AWS_PROFILE")+os.Getenv("AWS_REGION"), os.TempDir()
	return 3
}

func TestContainedTestsHaveFoldersOfTheirOwn(t *testing.T) {
	settings := t.TempDir()
	telemetry := filepath.Join(settings, "go", "telemetry")
	if err := os.MkdirAll(telemetry, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"HOME": t.TempDir(), "XDG_CONFIG_HOME": settings,
		"TMPDIR": t.TempDir(), "AWS_PROFILE": "user", "AWS_REGION": "there"} {
		t.Setenv(name, value)
	}
	var home, key, temp string

	code := Contained(environmentOf{&home, &key, &temp}, "AWS_REGION=here").Run()

	if code != 3 || key != "here" || filepath.Dir(home) != temp || os.Getenv("XDG_CONFIG_HOME") != "" {
		t.Errorf("status %d, home %s, temporary files in %s, AWS %q, XDG %q", code, home, temp, key,
			os.Getenv("XDG_CONFIG_HOME"))
	}
	if _, err := os.Stat(temp); err == nil {
		t.Errorf("%s is left", temp)
	}
}

func TestFailingTestsShowTheLastLines(t *testing.T) {
	t.Parallel()
	var out Output
	for i := range 100 {
		fmt.Fprintln(&out, "line", i)
	}
	if got := out.String(); !strings.HasPrefix(got, "line 60\n") || !strings.HasSuffix(got, "\nline 99") {
		t.Errorf("it shows\n%s", got)
	}
	if all := out.All(); !strings.HasPrefix(all, "line 0\n") {
		t.Errorf("all of it is\n%.100s", all)
	}
}
