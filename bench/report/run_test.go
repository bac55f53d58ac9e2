package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func withSuite(t *testing.T, steps ...step) {
	t.Helper()
	before := suite
	suite = steps
	t.Cleanup(func() { suite = before })
}

func runReport(t *testing.T, args ...string) (printed string, err error) {
	t.Helper()
	t.Chdir(".") // restores the directory, because the command changes to the module's root
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdout
	os.Stdout = in
	text := make(chan string)
	go func() { all, _ := io.ReadAll(out); text <- string(all) }()
	err = command(args)
	os.Stdout = before
	in.Close()
	return <-text, err
}

func needsCheckout(t *testing.T) {
	t.Helper()
	if err := exec.Command("git", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("the commit of the results comes from git, and this is no checkout")
	}
}

// The second call has nothing to do, and the third only measures an additional round.
func TestReportRunsWhatIsMissing(t *testing.T) {
	needsCheckout(t)
	withSuite(t,
		step{name: "quick", pkg: "internal/delivery/limit", bench: "^BenchmarkDelivery$", benchtime: "10x"},
		step{name: "once", pkg: "internal/delivery/limit", bench: "^BenchmarkRoom$", benchtime: "10x", rounds: 1, depth: 5},
		step{name: "scale", pkg: "missing", scale: true})
	file := filepath.Join(t.TempDir(), "results.txt")
	for _, c := range []struct {
		rounds      string
		quick, once int
	}{{"2", 2, 1}, {"2", 2, 1}, {"3", 3, 1}} {
		printed, err := runReport(t, "-rounds", c.rounds, "-o", file, "-peers", t.TempDir())
		if err != nil || !strings.Contains(printed, "Measured on ") || !strings.Contains(printed, "| part | figure |") {
			t.Fatalf("%v\n%s", err, printed)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for word, want := range map[string]int{"step: quick\n": c.quick, "BenchmarkDelivery/50": c.quick,
			"step: once\n": c.once, "depth: 5\n": c.once, "commit: ": c.quick + c.once} {
			if n := strings.Count(string(text), word); n != want {
				t.Errorf("%d times %q after %s rounds, want %d:\n%s", n, word, c.rounds, want, text)
			}
		}
	}
	if printed, err := runReport(t, "-list"); err != nil || strings.Count(printed, "\n") != 2 ||
		!strings.Contains(printed, "go test -run '^$' -bench '^BenchmarkDelivery$' -benchtime 10x ./internal/delivery/limit") {
		t.Errorf("%v\n%s", err, printed)
	}
}

func TestReportKeepsWhatAFailedStepMeasured(t *testing.T) {
	needsCheckout(t)
	withSuite(t,
		step{name: "wrong", pkg: "internal/delivery/limit", bench: "(", benchtime: "1x"},
		step{name: "right", pkg: "internal/delivery/limit", bench: "^BenchmarkDelivery$", benchtime: "1x"})
	file := filepath.Join(t.TempDir(), "results.txt")
	_, err := runReport(t, "-new", "-rounds", "1", "-o", file, "-peers", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "step wrong failed") {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "BenchmarkDelivery") {
		t.Errorf("%v\n%s", err, text)
	}
	withSuite(t, step{name: "gone", pkg: "internal/delivery/limit/gone", bench: "x"})
	if _, err := runReport(t, "-new", "-o", file); err == nil || !strings.Contains(err.Error(), "tests of internal/delivery/limit/gone") {
		t.Error(err)
	}
}

func TestReportCanBeStopped(t *testing.T) {
	needsCheckout(t)
	t.Chdir(filepath.Join("..", ".."))
	withSuite(t, step{name: "long", pkg: "internal/delivery/limit", bench: "^BenchmarkDelivery$", benchtime: "1h"})
	file := filepath.Join(t.TempDir(), "results.txt")
	stop := make(chan os.Signal, 1)
	stop <- os.Interrupt
	err := runAll(&options{rounds: 1, only: regexp.MustCompile(""), results: file, peers: t.TempDir()}, stop)
	if !errors.Is(err, errStopped) {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || len(text) > 0 {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestReportRefusesArguments(t *testing.T) {
	for _, args := range [][]string{{"daemon"}, {"-rounds", "0"}, {"-only", "("}, {"-draw", "-o", "missing.txt"}} {
		if _, err := runReport(t, args...); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

func TestPeersAreInstalledOnce(t *testing.T) {
	before := peers
	t.Cleanup(func() { peers = before })
	bin := t.TempDir()
	maven := "#!/bin/sh\ngrep -q '<artifactId>two</artifactId><version>3</version>' \"$4\" && touch \"${6#*=}/two.jar\"\n"
	if err := os.WriteFile(filepath.Join(bin, "mvn"), []byte(maven), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	peers = []peer{{folder: "a", name: "A", version: "1", commands: []string{"cp /dev/null {}/made"}},
		{folder: "b", name: "B", version: "2", jars: []string{"one:two:3"}}}
	folder := filepath.Join(t.TempDir(), "peers")
	for range 2 {
		if _, err := runReport(t, "-install", "-peers", folder); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a/made", "b/two.jar"} {
			if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
				t.Error(err)
			}
		}
		peers[0].commands = []string{"false"}
	}
	if got := versionsOf(folder); got != "A 1, B 2" {
		t.Error(got)
	}
	peers = []peer{{folder: "c", name: "C", version: "1", commands: []string{"false"}}}
	_, err := runReport(t, "-install", "-peers", folder)
	if there := versionsOf(folder); err == nil || !strings.Contains(err.Error(), "installing C") || there != "" {
		t.Errorf("%v, %q", err, there)
	}
}

func TestDocumentsAreWritten(t *testing.T) {
	all, folder := readFile(t, "testdata/results.txt"), t.TempDir()
	page := filepath.Join(folder, "page.md")
	write := func(marker string) {
		t.Helper()
		text := "Before.\n\n<!-- report: " + marker + " -->\nold\n<!-- end of report -->\n\nAfter.\n"
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("parts")
	if err := writeDocuments(folder, all); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(text), "Before.\n\n<!-- report: parts -->\n\n| part | figure |\n") ||
		strings.Contains(string(text), "old") || !strings.HasSuffix(string(text), "<!-- end of report -->\n\nAfter.\n") {
		t.Errorf("%v\n%s", err, text)
	}
	write("nothing")
	if err := writeDocuments(folder, all); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Error(err)
	}
}
