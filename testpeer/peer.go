package testpeer

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Missing ends a test without what, or fails it where peers are required; install says
// how to get it.
func Missing(t testing.TB, what, install string) {
	t.Helper()
	if os.Getenv("TENDRIL_REQUIRE_PEERS") == "1" {
		t.Fatalf("%s is required, and is not here: %s", what, install)
	}
	t.Skipf("NOT TESTED against %s, which is not here: %s", what, install)
}

// Program returns the path of a program, which packages call alike.
func Program(t testing.TB, name string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, "install it so that it is found in PATH")
	}
	return path
}

// Python returns the path of an interpreter that can import the modules; install names
// what brings them, as pip calls it.
func Python(t testing.TB, install string, modules ...string) (path string) {
	t.Helper()
	path = Program(t, cmp.Or(os.Getenv("TENDRIL_PYTHON"), "python3"))
	if len(modules) == 0 {
		return path
	}
	if out, err := exec.Command(path, "-c", "import "+strings.Join(modules, ", ")).CombinedOutput(); err != nil {
		Missing(t, install, "python3 -m venv venv && venv/bin/pip install '"+install+
			"', and set TENDRIL_PYTHON=$PWD/venv/bin/python: "+lastLine(out))
	}
	return path
}

// NodeModules returns the path of a folder node_modules that has the packages, and sees
// to node itself.
func NodeModules(t testing.TB, packages ...string) (path string) {
	t.Helper()
	Program(t, "node")
	path, err := filepath.Abs(os.Getenv("TENDRIL_NODE_MODULES"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range packages {
		if _, err := os.Stat(filepath.Join(path, name)); err != nil || os.Getenv("TENDRIL_NODE_MODULES") == "" {
			Missing(t, name, "npm install "+name+", and set TENDRIL_NODE_MODULES to the folder node_modules")
		}
	}
	return path
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
