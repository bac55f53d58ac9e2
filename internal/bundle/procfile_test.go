package bundle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/config/yamlfile"
)

func TestParseProcfile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want []Process
	}{
		"empty":                 {"", nil},
		"web alone":             {"web: npm start\n", []Process{{"web", "npm start", 1}}},
		"no newline at the end": {"web: npm start", []Process{{"web", "npm start", 1}}},
		"web moves to the front": {"clock: a\nweb: b\nworker: c\n",
			[]Process{{"web", "b", 2}, {"clock", "a", 1}, {"worker", "c", 3}}},
		"no web keeps the order": {"z: 1\na: 2", []Process{{"z", "1", 1}, {"a", "2", 2}}},
		"blank lines, comments": {"\n# the app\n  \nweb: x # kept, it is the shell's",
			[]Process{{"web", "x # kept, it is the shell's", 4}}},
		"Windows line ends":     {"web: x\r\nother: y\r\n", []Process{{"web", "x", 1}, {"other", "y", 2}}},
		"byte order mark":       {"\uFEFFweb: x", []Process{{"web", "x", 1}}},
		"colons in the command": {"web: run --listen=0.0.0.0:$PORT", []Process{{"web", "run --listen=0.0.0.0:$PORT", 1}}},
		"no blank after colon":  {"web:x", []Process{{"web", "x", 1}}},
		"blanks around":         {"  web  :   x y  ", []Process{{"web", "x y", 1}}},
		"names differ by case":  {"Web: x\nweb: y", []Process{{"web", "y", 2}, {"Web", "x", 1}}},
		"not a replica's name":  {"web-x2: x\nweb2: y", []Process{{"web-x2", "x", 1}, {"web2", "y", 2}}},
		"every name byte":       {"aZ09_-: x", []Process{{"aZ09_-", "x", 1}}},
		"longest name":          {strings.Repeat("n", 64) + ": x", []Process{{strings.Repeat("n", 64), "x", 1}}},
		"tab in the command":    {"web:\tx\ty", []Process{{"web", "x\ty", 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseProcfile("Procfile", []byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseProcfileRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"no colon": {"web: x\nnpm start",
			"Procfile:2: \"npm start\" is not a process\n  write \"name: command\", for example \"web: npm start\""},
		"no command": {"web:  ", "Procfile:1: web has no command\n  write \"web: COMMAND\", or delete the line"},
		"no name": {": x",
			"Procfile:1: \"\" is not a name for a process\n  a name is 1 to 64 letters, digits, \"_\" and \"-\""},
		"blank in the name": {"my app: x",
			"Procfile:1: \"my app\" is not a name for a process\n  a name is 1 to 64 letters, digits, \"_\" and \"-\""},
		"name too long": {strings.Repeat("n", 65) + ": x",
			"Procfile:1: \"" + strings.Repeat("n", 65) +
				"\" is not a name for a process\n  a name is 1 to 64 letters, digits, \"_\" and \"-\""},
		"twice": {"web: x\n\nweb: y",
			"Procfile:3: web is already on line 1\n  give each process a name of its own"},
		"a replica's name": {"web: x\nweb-2: y",
			"Procfile:2: web-2 is the name of a replica of web\n  write \"web2: y\""},
		"control character": {"web: x\x1b[2J",
			"Procfile:1: the line is not text\n  save the file as UTF-8 text without control characters"},
		"no UTF-8": {"web: \xff",
			"Procfile:1: the line is not text\n  save the file as UTF-8 text without control characters"},
		"everything at once": {"nothing\nweb:",
			"Procfile:1: \"nothing\" is not a process\n  write \"name: command\", for example \"web: nothing\"\n" +
				"Procfile:2: web has no command\n  write \"web: COMMAND\", or delete the line"},
		"too long": {strings.Repeat("#", 64<<10+1),
			"Procfile: the file is larger than 65536 bytes\n" +
				"  a Procfile has one line per process: move long commands into scripts"},
		"too many":      {manyProcesses(101), "Procfile:101: more than 100 processes\n  start the others from a script"},
		"not even once": {manyProcesses(102), "Procfile:101: more than 100 processes\n  start the others from a script"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseProcfile("Procfile", []byte(c.in))
			var bad *invalidError
			if !errors.As(err, &bad) || got != nil {
				t.Fatalf("got %v, %v; want an *Error alone", got, err)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func manyProcesses(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "p%d: x\n", i)
	}
	return b.String()
}

func TestANameWithoutAReplicaStandsForAPosition(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"web-3": 1, "web-4": 2, "web": 1, "web-2": 2, "web-5": -1, "web-1": -1, "web-0": -1,
		"web--1": -1, "web-": -1, "2": -1, "mailer": 0, "web2": -1, "web-99999999999999999999": -1, "": -1} {
		if got := ProcessIndex([]string{"mailer", "web-3", "web-4"}, []string{"web-9"}, name); got != want {
			t.Errorf("%q is process %d, want %d", name, got, want)
		}
	}
	if got := ProcessIndex([]string{"web-2", "web"}, []string{"web-2"}, "web-2"); got != 0 {
		t.Errorf("web-2 is process %d, want the one of that name", got)
	}
	if got := ProcessIndex(nil, nil, "web"); got != -1 {
		t.Errorf("without replicas, web is process %d", got)
	}
	for name, want := range map[string]int{"web": 0, "web-2": -1} {
		if got := ProcessIndex([]string{"web-3", "web-4"}, []string{"web", "web-2"}, name); got != want {
			t.Errorf("%s, which is retired, is process %d, want %d", name, got, want)
		}
	}
}

func FuzzParseProcfile(f *testing.F) {
	for _, seed := range []string{"web: x", "a: b\nweb: c\n", "# c\n\nweb:x\r\n", "web", ":", "web: x\nweb: y",
		"\xff: x", "\uFEFFweb: x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		processes, err := parseProcfile("Procfile", data)
		if err != nil {
			var bad *invalidError
			if !errors.As(err, &bad) || len(bad.Problems) == 0 || processes != nil {
				t.Fatalf("got %v, %v; want an *Error with problems alone", processes, err)
			}
			return
		}
		lines := strings.Count(string(data), "\n") + 1
		seen := map[string]bool{}
		for i, p := range processes {
			if !isName(p.Name) || p.Command == "" || p.Line < 1 || p.Line > lines || seen[p.Name] {
				t.Fatalf("process %d of %q is %+v", i, data, p)
			}
			if strings.ContainsFunc(p.Command, yamlfile.IsControl) {
				t.Fatalf("command %q holds a control character", p.Command)
			}
			if p.Name == MainProcess && i != 0 {
				t.Fatalf("web is process %d of %q", i, data)
			}
			seen[p.Name] = true
		}
	})
}
