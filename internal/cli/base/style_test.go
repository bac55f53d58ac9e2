package base

import (
	"strings"
	"testing"

	"tendril/internal/host/terminal"
)

func TestStyledTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows [][]string
		want string
	}{
		{[][]string{{"QUEUE", "STATE", "BODY"}, {"日本", "failed now", "failed\x1b[2J"}, {"jobs", "running", ""}},
			"\x1b[2mQUEUE\x1b[0m  \x1b[2mSTATE\x1b[0m       \x1b[2mBODY\x1b[0m\n" +
				"日本   \x1b[31mfailed now\x1b[0m  failed\\x1b[2J\n" +
				"jobs   \x1b[32mrunning\x1b[0m\n"},
		{[][]string{{"QUEUE", "STATE", "WHY"}, {"jobs", "Failing", "no response"}, {"dead", "not ready", ""}},
			"\x1b[2mQUEUE\x1b[0m  \x1b[2mSTATE\x1b[0m      \x1b[2mWHY\x1b[0m\n" +
				"jobs   \x1b[31mFailing\x1b[0m    \x1b[2mno response\x1b[0m\n" +
				"dead   \x1b[33mnot ready\x1b[0m\n"},
	} {
		var out strings.Builder
		w := &CLI{Out: &terminal.Writer{To: &out}, Tty: true}
		if err := w.PrintTable(c.rows); err != nil || out.String() != c.want {
			t.Errorf("%v\ngot  %q\nwant %q", err, out.String(), c.want)
		}
	}
}

func TestNamesOfFactsAreDimmed(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := &CLI{Out: &terminal.Writer{To: &out}, Tty: true}
	want := "\x1b[2mID\x1b[0m     4711\n\x1b[2mstate\x1b[0m  failed\n"
	if err := w.PrintFacts([][]string{{"ID", "4711"}, {"state", "failed"}}); err != nil || out.String() != want {
		t.Errorf("%v\ngot  %q\nwant %q", err, out.String(), want)
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"QUEUE", "NOTE"}, {"jobs", "PAUSED: by hand"}}
	for _, c := range []struct {
		tty     bool
		environ []string
		colours bool
	}{
		{true, nil, true}, {false, nil, false}, {true, []string{"NO_COLOR=1"}, false},
		{true, []string{"TERM=dumb"}, false},
	} {
		var out strings.Builder
		w := &CLI{Out: &terminal.Writer{To: &out}, Tty: c.tty, Environ: c.environ}
		if err := w.PrintTable(rows); err != nil || strings.Contains(out.String(), "\x1b[33mPAUSED") != c.colours ||
			strings.Contains(out.String(), "\x1b") != c.colours || strings.Contains(out.String(), `\x1b`) {
			t.Errorf("%+v: %v, %q", c, err, out.String())
		}
	}
}
