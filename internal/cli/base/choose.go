package base

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
)

const environmentVariable = "TENDRIL_ENVIRONMENT"

// AddDataDir adds the flags that select an environment.
func AddDataDir(cmd *cobra.Command) {
	AddSettings(cmd, "data-dir")
	AddEnvironment(cmd)
}

// AddEnvironment adds the flag -e, which selects an environment by name.
func AddEnvironment(cmd *cobra.Command) {
	cmd.Flags().StringP("environment", "e", "",
		"Environment (default: the one of the working folder, else the only one running).")
}

// DataDir returns the data directory of the selected environment: the named one, the one in the working directory, or
// the only running one.
func (c *CLI) DataDir(cmd *cobra.Command) (string, error) {
	if f := cmd.Flags().Lookup("data-dir"); f != nil && f.Changed {
		return f.Value.String(), nil
	}

	cfg, err := c.LoadSettings(cmd, nil)
	if err != nil {
		return "", err
	}

	state := c.StateFolder()
	name := c.Env(environmentVariable)
	if f := cmd.Flags().Lookup("environment"); f != nil && f.Changed {
		name = f.Value.String()
	} else if cfg.IsSet("data-dir") {
		return cfg.DataDir, nil
	}

	if name != "" {
		return chooseNamed(name, api.DataDirectories(state))
	}

	// Environments with a data directory elsewhere must be named.
	var running, elsewhere []api.Found
	for _, f := range api.Running(api.DataDirectories(state)) {
		if Within(f.DataDir, state) {
			running = append(running, f)
		} else {
			elsewhere = append(elsewhere, f)
		}
	}
	if len(running) == 0 && !cfg.IsSet("name") {
		cfg = c.settingsOfWorkingFolder(cmd, cfg)
	}

	here, err := os.Getwd()
	if err != nil {
		here = ""
	}
	return chooseRunning(cfg, here, running, elsewhere)
}

// StateFolder returns the folder with this user's environments.
func (c *CLI) StateFolder() string { return config.StateFolder(c.Environ, os.Geteuid() == 0) }

// settingsOfWorkingFolder returns cfg with the settings of the app in the working directory, if there is one.
func (c *CLI) settingsOfWorkingFolder(cmd *cobra.Command, cfg *config.Config) *config.Config {
	if !bundle.MarksFolder(".") {
		return cfg
	}
	b, err := OpenBundle(".")
	if err != nil {
		return cfg
	}
	ofFolder, err := c.LoadSettings(cmd, b)
	if err != nil {
		return cfg
	}
	return ofFolder
}

func chooseNamed(name string, dirs []string) (string, error) {
	var names []string
	for _, found := range api.Running(dirs) {
		if found.Environment == name {
			return found.DataDir, nil
		}
		names = append(names, found.Environment)
	}

	for _, dir := range dirs[:max(len(dirs)-1, 0)] { // the last one is the state folder itself
		if filepath.Base(dir) == name {
			return dir, nil
		}
		names = append(names, filepath.Base(dir))
	}

	slices.Sort(names)
	hint := "start it with 'tendril up'"
	if names = slices.Compact(names); len(names) > 0 {
		hint = "choose one of " + strings.Join(names, ", ") + ", or start it with 'tendril up'"
	}

	return "", NotFoundf("environment %q not found", name).Hint(hint)
}

// chooseRunning prefers the environment named in the settings, then the one running from here or the closest parent
// folder, then the only running one. If none is running, it returns the settings' data directory. An
// environment with a data directory elsewhere is never chosen, but in its folder no other is either.
func chooseRunning(cfg *config.Config, here string, running, elsewhere []api.Found) (string, error) {
	if cfg.IsSet("name") {
		if i := slices.IndexFunc(running, func(f api.Found) bool { return f.Environment == cfg.Name }); i >= 0 {
			return running[i].DataDir, nil
		}
		return cfg.DataDir, nil
	}

	if len(running) == 0 {
		return cfg.DataDir, nil
	}

	containing := deepestContaining(here, running)
	others := deepestContaining(here, elsewhere)
	switch {
	case len(others) > 0 && (len(containing) == 0 || len(others[0].Folder) > len(containing[0].Folder)):
		return "", Usagef("environment %q is running in this folder, with its own data directory",
			others[0].Environment).Hint("name it with --data-dir " + others[0].DataDir)
	case len(containing) == 1:
		return containing[0].DataDir, nil
	case len(containing) > 1:
		var names []string
		for _, f := range containing {
			names = append(names, f.Environment)
		}
		return "", Usagef("%d environments are running in %s: %s", len(containing), containing[0].Folder,
			strings.Join(names, ", ")).Hint(chooseHint(containing))
	}

	if len(running) == 1 {
		return running[0].DataDir, nil
	}

	running = append(running, elsewhere...)
	var names []string
	for _, f := range running {
		names = append(names, fmt.Sprintf("%s (%s)", f.Environment, cmp.Or(f.Folder, f.DataDir)))
	}
	return "", Usagef("%d environments are running, none of them in this folder: %s", len(running),
		strings.Join(names, ", ")).Hint(chooseHint(running))
}

func chooseHint(choices []api.Found) string {
	return "name one with -e, such as -e " + choices[0].Environment
}

// deepestContaining may return several environments, because one folder can run several under different names.
func deepestContaining(here string, running []api.Found) (containing []api.Found) {
	for _, f := range running {
		switch {
		case !Within(here, f.Folder):
		case len(containing) == 0 || len(f.Folder) > len(containing[0].Folder):
			containing = []api.Found{f}
		case f.Folder == containing[0].Folder:
			containing = append(containing, f)
		}
	}
	return containing
}

// Within reports whether folder is parent or is inside it.
func Within(folder, parent string) bool {
	if folder == "" || parent == "" {
		return false
	}
	relative, err := filepath.Rel(parent, folder)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}
