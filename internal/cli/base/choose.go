package base

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/host/terminal"
)

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

// DataDir returns the data directory of the environment that flags or settings select, else of the one in the working
// directory, else of the only running one, else the default.
func (c *CLI) DataDir(cmd *cobra.Command) (string, error) {
	flags := cmd.Flags()
	if flags.Changed("data-dir") {
		return flags.Lookup("data-dir").Value.String(), nil
	}

	cfg, err := c.LoadSettings(cmd, nil)
	if err != nil {
		return "", err
	}

	name, _ := flags.GetString("environment")
	if !flags.Changed("environment") {
		if cfg.IsSet("data-dir") {
			return cfg.DataDir, nil
		}
		name = c.Env("TENDRIL_ENVIRONMENT")
	}
	if name != "" {
		return chooseNamed(name, api.DataDirectories(c.StateFolder()))
	}
	return c.chooseUnnamed(cmd, cfg)
}

func (c *CLI) chooseUnnamed(cmd *cobra.Command, cfg *config.Config) (string, error) {
	state := c.StateFolder()
	var running, elsewhere []api.Found
	for _, f := range api.Running(api.DataDirectories(state)) {
		if Within(f.DataDir, state) {
			running = append(running, f)
		} else {
			elsewhere = append(elsewhere, f)
		}
	}

	here, _ := os.Getwd() // "" if unknown
	// Environments that run elsewhere are reported before the folder is read, which may have mistakes.
	dir, err := chooseRunning(cfg, here, running, elsewhere)
	if err == nil && len(running) == 0 && !cfg.IsSet("name") {
		return c.dataDirOfWorkingFolder(cmd, dir)
	}
	return dir, err
}

// StateFolder returns the folder with this user's environments.
func (c *CLI) StateFolder() string { return config.StateFolder(c.Environ, os.Geteuid() == 0) }

// dataDirOfWorkingFolder returns the data directory of the app in the working folder, or fallback if no app is there.
// If the app's settings have mistakes, the error wraps [api.ErrNotRunning].
func (c *CLI) dataDirOfWorkingFolder(cmd *cobra.Command, fallback string) (string, error) {
	if !bundle.MarksFolder(".") {
		return fallback, nil
	}

	b, err := OpenBundle(".")
	var cfg *config.Config
	if err == nil {
		cfg, err = c.LoadSettings(cmd, b)
	}
	if err != nil {
		unknown := fmt.Errorf("%w, and the data directory of the app in this folder is unknown because of mistakes",
			api.ErrNotRunning)
		hint := "correct them, or choose an environment with -e or --data-dir"
		return "", errors.Join(Fail(ExitNotFound, unknown, hint), err)
	}
	return cfg.DataDir, nil
}

func chooseNamed(name string, dirs []string) (string, error) {
	running := api.Running(dirs)
	var sameName []api.Found
	for _, found := range running {
		switch name {
		case found.Name:
			return found.DataDir, nil
		case found.Environment:
			sameName = append(sameName, found)
		}
	}
	if len(sameName) > 0 {
		return "", severalNamed(sameName)
	}

	dirs = dirs[:max(len(dirs)-1, 0)] // the last one is the state folder itself
	for _, dir := range dirs {
		if filepath.Base(dir) == name {
			return dir, nil
		}
	}
	return "", NotFoundf("environment %q not found", name).Hint(existingHint(running, dirs))
}

func existingHint(running []api.Found, dirs []string) string {
	names := foundNames(running)
	for _, dir := range dirs {
		if !slices.ContainsFunc(running, func(f api.Found) bool { return f.DataDir == dir }) {
			names = append(names, filepath.Base(dir))
		}
	}
	if len(names) == 0 {
		return "start it with 'tendril up'"
	}
	slices.Sort(names)
	return "choose one of " + strings.Join(slices.Compact(names), ", ") + ", or start it with 'tendril up'"
}

func severalNamed(all []api.Found) error {
	return Usagef("%d environments named %q are running: %s", len(all), all[0].Environment, nameList(all)).
		Hint(chooseHint(all))
}

var foundNames = Named(func(f *api.Found) string { return f.Name })

func nameList(all []api.Found) string { return strings.Join(foundNames(all), ", ") }

// chooseRunning prefers the environment named in the settings, then the one started in here or the closest parent
// folder, then the only running one. An environment with a data directory elsewhere is never chosen, and neither is
// another one in its folder.
func chooseRunning(cfg *config.Config, here string, running, elsewhere []api.Found) (string, error) {
	if cfg.Origin("name").Layer > config.FromBundle { // a bundle's name may be that of its folder
		running = slices.DeleteFunc(running, func(f api.Found) bool { return f.Environment != cfg.Name })
		if len(running) > 1 {
			return "", severalNamed(running)
		}
	} else if dir, err := chooseByFolder(here, running, elsewhere); dir != "" || err != nil {
		return dir, err
	}

	switch len(running) {
	case 0:
		return cfg.DataDir, nil
	case 1:
		return running[0].DataDir, nil
	}

	running = append(running, elsewhere...)
	names := Named(func(f *api.Found) string { return fmt.Sprintf("%s (%s)", f.Name, cmp.Or(f.Folder, f.DataDir)) })(running)
	return "", Usagef("%d environments are running, none of them in this folder: %s", len(running),
		strings.Join(names, ", ")).Hint(chooseHint(running))
}

// chooseByFolder returns "" if no environment was started in here or a parent folder.
func chooseByFolder(here string, running, elsewhere []api.Found) (dataDir string, err error) {
	containing := deepestContaining(here, running)
	others := deepestContaining(here, elsewhere)
	isElsewhere := len(others) > 0 && (len(containing) == 0 || len(others[0].Folder) > len(containing[0].Folder))
	switch {
	case isElsewhere && len(others) > 1:
		return "", Usagef("%d environments are running in this folder, with their own data directories: %s", len(others),
			nameList(others)).Hint(chooseHint(others))
	case isElsewhere:
		return "", Usagef("environment %q is running in this folder, with its own data directory",
			others[0].Name).Hint("name it with --data-dir " + terminal.ShellWord(others[0].DataDir))
	case len(containing) == 1:
		return containing[0].DataDir, nil
	case len(containing) > 1:
		return "", Usagef("%d environments are running in %s: %s", len(containing), containing[0].Folder,
			nameList(containing)).Hint(chooseHint(containing))
	}
	return "", nil
}

func chooseHint(choices []api.Found) string {
	return "name one with -e, such as -e " + terminal.ShellWord(choices[0].Name)
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
