package base

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/cli/scaffold"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/environment"
	"tendril/internal/host/trust"
)

// OneApp accepts at most one folder or archive, optionally followed by -- and a command.
func OneApp(cmd *cobra.Command, args []string) error {
	dirs, _ := splitAtDash(cmd, args)
	switch {
	case len(dirs) > 1:
		return fmt.Errorf("%s takes one folder or archive, not %q; put a command to run after --", cmd.Name(), dirs)
	case cmd.ArgsLenAtDash() == len(args):
		return errors.New("no command after --")
	}
	return nil
}

func splitAtDash(cmd *cobra.Command, args []string) (dirs, command []string) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return args, nil
	}
	return args[:dash], args[dash:]
}

// PrepareApp reads the arguments and settings of 'tendril up', and opens the app. If only a runnable app is missing, it
// returns options with a Config along with the error.
func PrepareApp(c *CLI, cmd *cobra.Command, args []string,
	open func(path string) (*bundle.Bundle, error)) (environment.Options, error) {
	dirs, command := splitAtDash(cmd, args)
	if len(dirs) == 0 {
		isApp, err := IsAppHere(c, cmd, command)
		if err != nil {
			return environment.Options{}, err
		}
		if isApp {
			dirs = []string{"."}
		}
	}

	var b *bundle.Bundle
	if len(dirs) > 0 {
		var err error
		if b, err = open(dirs[0]); err != nil {
			return environment.Options{}, err
		}
	}

	cfg, err := c.LoadSettings(cmd, b)
	if err != nil {
		return environment.Options{}, err
	}

	opts, err := optionsFor(c, cfg, b, command)
	opts.Folder = FolderOf(dirs)
	return opts, err
}

func optionsFor(c *CLI, cfg *config.Config, b *bundle.Bundle, command []string) (environment.Options, error) {
	opts := environment.Options{Config: cfg, Bundle: b, Command: command, AppEnv: c.Environ, Version: c.Version}
	hasApp := opts.HasApp()
	if !hasApp && cfg.DaemonFile() {
		deliverToLocalhost(cfg)
	}

	switch {
	case len(command) > 0 || !hasApp && !cfg.AnyToOwnApp():
		return opts, nil
	case b == nil:
		return opts, noAppError()
	case !hasApp && b.Default != nil:
		opts.Bundle = withDefaultProcess(c, b)
		return opts, nil
	}

	if _, err := b.Web(); err != nil {
		return opts, Fail(ExitUsage, err)
	}
	return opts, nil
}

// deliverToLocalhost is for a daemon that runs next to the app's web server.
func deliverToLocalhost(cfg *config.Config) {
	for i := range cfg.Queues {
		if q := &cfg.Queues[i]; q.ToOwnApp() {
			q.Target = "http://localhost"
		}
	}
}

func withDefaultProcess(c *CLI, b *bundle.Bundle) *bundle.Bundle {
	d := b.Default
	c.PrintErrf("no Procfile: running %s, the default of Elastic Beanstalk's %s platform for %s\n",
		Plain(d.Process.Command), d.Platform, d.File)
	return b.WithDefault()
}

func noAppError() error {
	return Usagef("no app to deliver to").Hint(initHint(os.DirFS(".")),
		"name a folder with a Procfile: tendril up DIR", "or a command: tendril up -- python3 app.py",
		"or the URL of a running app: tendril up --target http://127.0.0.1:8080/",
		"or a Lambda function: tendril up --function NAME, or --lambda COMMAND for a local one")
}

func initHint(folder fs.FS) string {
	app, err := scaffold.Recognize(folder, false)
	if err != nil {
		return ""
	}
	file := "Procfile"
	if app.Lambda != "" {
		file = "tendril.yaml"
	}
	return "this folder has an app (" + app.Platform + "): 'tendril init' writes a " + file + " for it"
}

// TakeFreePorts reloads the settings with free ports if the default ones are in use, unless the environment is already
// running. It sets opts.Announced, which may be nil.
func TakeFreePorts(c *CLI, cmd *cobra.Command, opts *environment.Options) error {
	if _, err := api.ReadInstance(opts.Config.DataDir); err == nil {
		return nil
	}

	free, announced := opts.FreePorts()
	c.Free = free
	opts.Announced = announced
	if len(free) == 0 {
		return nil
	}

	cfg, err := c.LoadSettings(cmd, opts.Bundle)
	if err != nil {
		return err
	}
	again, err := optionsFor(c, cfg, opts.Bundle, opts.Command)
	opts.Config, opts.Bundle = again.Config, again.Bundle
	return err
}

// FolderOf returns the absolute path of the folder given to 'tendril up', or of the working directory; "" if unknown.
func FolderOf(dirs []string) string {
	path := "."
	if len(dirs) > 0 {
		if info, err := os.Stat(dirs[0]); err == nil && info.IsDir() {
			path = dirs[0]
		}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	return absolute
}

// IsAppHere reports whether the working directory contains the app to run. A command, a target, a function or an aws-sqsd
// settings file takes precedence.
func IsAppHere(c *CLI, cmd *cobra.Command, command []string) (bool, error) {
	if !bundle.MarksFolder(".") {
		return false, nil
	}

	cfg, err := c.LoadSettings(cmd, nil)
	if err != nil {
		return false, err
	}

	if len(command) > 0 || !cfg.AnyToOwnApp() || cfg.DaemonFile() {
		warnOfIgnoredCron(c, cmd, cfg)
		return false, nil
	}

	_, err = OpenTrustedFolder(cmd)
	return err == nil, err
}

func warnOfIgnoredCron(c *CLI, cmd *cobra.Command, cfg *config.Config) {
	if _, err := os.Stat("cron.yaml"); err != nil || cfg.Cron != "" {
		return
	}
	c.PrintWarnings(yamlfile.Problem{Where: "cron.yaml", Text: "this file is ignored because the app does " +
		"not run from this folder", Hint: "add --cron=cron.yaml, or name the folder: tendril " + cmd.Name() + " ."})
}

// OpenTrustedFolder opens the working directory. It fails if other users can change the code there.
func OpenTrustedFolder(cmd *cobra.Command) (*bundle.Bundle, error) {
	b, err := OpenBundle(".")
	if err != nil {
		return nil, err
	}
	var wrong *trust.Error
	if err := b.Trusted(); errors.As(err, &wrong) {
		return nil, Usagef("the working folder is not trusted: %w", wrong).Hint("type '"+wrong.Fix+"'",
			"or name the folder if you trust it: tendril "+cmd.Name()+" .")
	} else if err != nil {
		return nil, err
	}
	return b, nil
}
