package testpeer

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Missing skips a test because a program is not installed, or fails it if TENDRIL_REQUIRE_PEERS is set. install
// explains how to install the program.
func Missing(t testing.TB, what, install string) {
	t.Helper()
	if os.Getenv("TENDRIL_REQUIRE_PEERS") == "1" {
		t.Fatalf("%s is required, and is not here: %s", what, install)
	}
	t.Skipf("NOT TESTED against %s, which is not here: %s", what, install)
}

// Program returns a program's path, or skips or fails the test as in [Missing].
func Program(t testing.TB, name string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, "install it so that it is found in PATH")
	}
	return path
}

// MountNamespace skips or fails the test as in [Missing] if unshare cannot create a mount namespace.
func MountNamespace(t testing.TB) {
	t.Helper()
	unshare := Program(t, "unshare")
	if out, err := exec.Command(unshare, "--mount", "mount", "--make-rprivate", "/").CombinedOutput(); err != nil {
		Missing(t, fmt.Sprintf("a mount namespace (%v: %s)", err, out), "run the tests as root")
	}
}

// Python returns the path of an interpreter with the modules. install names their packages.
func Python(t testing.TB, install string, modules ...string) (path string) {
	t.Helper()
	return python(t, "TENDRIL_PYTHON", "python3", install, modules)
}

// PythonProgram is [Program] for a program from a Python package, which it first looks for next to the interpreter.
func PythonProgram(t testing.TB, install, name string) (path string) {
	t.Helper()
	path = filepath.Join(filepath.Dir(Python(t, install)), name)
	if _, err := exec.LookPath(path); err == nil {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, pythonHelp("TENDRIL_PYTHON", install))
	}
	return path
}

func pythonHelp(variable, install string) string {
	return "python3 -m venv venv && venv/bin/pip install '" + install + "', and set " + variable +
		"=$PWD/venv/bin/python"
}

// QueryPython is [Python] for packages from before November 2023, whose SDK uses the Query protocol.
func QueryPython(t testing.TB, install string, modules ...string) (path string) {
	t.Helper()
	return python(t, "TENDRIL_PYTHON_QUERY", "", install, modules)
}

func python(t testing.TB, variable, fallback, install string, modules []string) (path string) {
	t.Helper()
	help := pythonHelp(variable, install)
	name := cmp.Or(os.Getenv(variable), fallback)
	if name == "" {
		Missing(t, install, help)
	}
	path = Program(t, name)
	if len(modules) == 0 {
		return path
	}
	if out, err := runPython(path, "import "+strings.Join(modules, ", ")); err != nil {
		lines := strings.Split(out, "\n")
		Missing(t, install, help+": "+lines[len(lines)-1])
	}
	return path
}

var pythonRuns sync.Map

func runPython(path, script string) (out string, err error) {
	run, _ := pythonRuns.LoadOrStore([2]string{path, script}, sync.OnceValues(func() (string, error) {
		out, err := exec.Command(path, "-c", script).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}))
	return run.(func() (string, error))()
}

// Jars returns a class path with the archives in the folder named by an environment variable. It requires java. install
// explains how to get the archives.
func Jars(t testing.TB, variable, install string) (classPath string) {
	t.Helper()
	Program(t, "java")
	folder := os.Getenv(variable)
	if jars, err := filepath.Glob(filepath.Join(folder, "*.jar")); err != nil || folder == "" || len(jars) == 0 {
		Missing(t, "a folder of Java archives", install+", and set "+variable+" to the folder")
	}
	return filepath.Join(folder, "*")
}

// NodeModules returns the path of a node_modules folder with the packages. It requires node.
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
