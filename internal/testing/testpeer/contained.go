package testpeer

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tests are the tests of a package, as a [testing.M] runs them.
type Tests interface{ Run() int }

type contained struct {
	tests     Tests
	variables []string
}

// Contained runs the tests of a package with a home and a folder for temporary files of their own, and without the
// variables of AWS and XDG but the given ones. Neither the tests nor the processes that they start read what the user has at home, or
// leave anything there or in the machine's folder for temporary files, even when they are killed. TestMain of each
// package that starts processes, or reads the settings of AWS, uses it.
func Contained(tests Tests, variables ...string) Tests { return contained{tests, variables} }

// Run implements [Tests].
func (c contained) Run() (code int) {
	dir, err := os.MkdirTemp("", "") // short: the path of a socket has a limit
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for the tests:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := contain(dir, c.variables); err != nil {
		fmt.Fprintln(os.Stderr, "setting the environment of the tests:", err)
		return 1
	}
	return c.tests.Run()
}

// contain has the variables of this process name the folder.
func contain(dir string, variables []string) error {
	// As for /tmp: processes of other users, which some tests start as root, write there too.
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		return err
	}
	set := homesOfTools()
	set["TMPDIR"] = dir
	set["HOME"] = filepath.Join(dir, "home")
	set["XDG_STATE_HOME"] = filepath.Join(dir, "home", "state") // root's is /var/lib otherwise
	set["AWS_EC2_METADATA_DISABLED"] = "true"                   // no request leaves this machine

	for _, entry := range variables {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}

	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "XDG_") {
			os.Unsetenv(name)
		}
	}
	for name, value := range set {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return os.Mkdir(set["HOME"], 0o700)
}

// homesOfTools are the variables that name what the programs of tests would look for at home.
func homesOfTools() map[string]string {
	set := map[string]string{}
	if out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOENV", "GOMODCACHE", "GOPATH").Output(); err == nil {
		_ = json.Unmarshal(out, &set) // without Go no test builds anything
	}
	if versions := filepath.Join(os.Getenv("HOME"), ".pyenv"); os.Getenv("PYENV_ROOT") == "" {
		if _, err := os.Stat(versions); err == nil {
			set["PYENV_ROOT"] = versions
		}
	}
	return set
}
