package testpeer

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tests is a set of tests, such as [testing.M].
type Tests interface{ Run() int }

type contained struct {
	tests     Tests
	variables []string
}

// Contained runs tests with their own home and temporary directories, and without AWS and XDG environment variables
// except the named ones. Packages that start processes or read AWS settings should use it in TestMain.
func Contained(tests Tests, variables ...string) Tests { return contained{tests, variables} }

func (c contained) Run() (code int) {
	dir, err := os.MkdirTemp("", "") // short, because the length of socket paths is limited
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

func contain(dir string, variables []string) error {
	// When run as root, tests start processes of other users, which write here.
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		return err
	}
	set := homesOfTools()
	set["TMPDIR"] = dir
	set["HOME"] = filepath.Join(dir, "home")
	set["XDG_STATE_HOME"] = filepath.Join(dir, "home", "state") // root's default is /var/lib
	set["AWS_EC2_METADATA_DISABLED"] = "true"                   // prevents requests to other machines

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

// homesOfTools lets the go command and pyenv find the user's folders.
func homesOfTools() map[string]string {
	set := map[string]string{}
	if out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOENV", "GOMODCACHE", "GOPATH").Output(); err == nil {
		_ = json.Unmarshal(out, &set)
	}
	if versions := filepath.Join(os.Getenv("HOME"), ".pyenv"); os.Getenv("PYENV_ROOT") == "" {
		if _, err := os.Stat(versions); err == nil {
			set["PYENV_ROOT"] = versions
		}
	}
	return set
}
