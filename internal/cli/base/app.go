package base

import (
	"errors"
	"fmt"
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
	dirs, dash := len(args), cmd.ArgsLenAtDash()
	if dash >= 0 {
		dirs = dash
	}
	switch {
	case dirs > 1:
		return fmt.Errorf("%s takes one folder or archive, not %q; put a command to run after --", cmd.Name(), args[:dirs])
	case dash == len(args):
		return errors.New("no command after --")
	}
	return nil
}

// PrepareApp reads the arguments and settings of 'tendril up', and opens the app's folder.
func PrepareApp(c *CLI, cmd *cobra.Command, args []string,
	open func(path string) (*bundle.Bundle, error)) (environment.Options, error) {
	dirs, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		dirs, command = args[:dash], args[dash:]
	}

	var err error
	if len(dirs) == 0 {
		if dirs, err = CurrentFolder(c, cmd, command); err != nil {
			return environment.Options{}, err
		}
	}

	var b *bundle.Bundle
	if len(dirs) > 0 {
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
	opts, err := upOptions(c, cfg, b, command)
	opts.Config = cfg
	opts.AppEnv = c.Environ
	opts.Version = c.Version
	return opts, err
}

func upOptions(c *CLI, cfg *config.Config, b *bundle.Bundle, command []string) (environment.Options, error) {
	opts := environment.Options{Bundle: b, Command: command}
	if len(command) > 0 || b != nil && len(b.Processes) > 0 {
		if b != nil && len(command) == 0 {
			if _, err := b.Web(); err != nil {
				return opts, Fail(ExitUsage, err)
			}
		}
		return opts, nil
	}

	for i := range cfg.Queues {
		if q := &cfg.Queues[i]; q.ToOwnApp() && cfg.DaemonFile() {
			q.Target = "http://localhost"
		}
	}

	if !cfg.AnyToOwnApp() {
		return opts, nil
	}

	if opts.Bundle = withDefault(c, b); opts.Bundle != b {
		return opts, nil
	}

	if b != nil {
		_, err := b.Web()
		return opts, Fail(ExitUsage, err)
	}

	here := ""
	if app, err := scaffold.Recognize(os.DirFS("."), false); err == nil {
		here = "this folder has an app (" + app.Platform + "): 'tendril init' writes a Procfile for it"
	}

	return opts, Usagef("no app to deliver to").Hint(here,
		"name a folder with a Procfile: tendril up DIR", "or a command: tendril up -- python3 app.py",
		"or the URL of a running app: tendril up --target http://127.0.0.1:8080/",
		"or a Lambda function: tendril up --function NAME, or --lambda COMMAND for a local one")
}

func withDefault(c *CLI, b *bundle.Bundle) *bundle.Bundle {
	if b == nil || b.Default == nil {
		return b
	}
	d := b.Default
	c.PrintErrf("no Procfile: running %s, the default of Elastic Beanstalk's %s platform for %s\n",
		Plain(d.Process.Command), d.Platform, d.File)
	return b.WithDefault()
}

// TakeFreePorts reloads the settings with free ports if the default ones are in use. It does nothing if the environment
// is already running.
func TakeFreePorts(c *CLI, cmd *cobra.Command, opts *environment.Options) error {
	if _, err := api.ReadInstance(opts.Config.DataDir); err == nil {
		return nil
	}
	if c.Free, opts.Announced = opts.FreePorts(); len(c.Free) == 0 {
		return nil
	}
	cfg, err := c.LoadSettings(cmd, opts.Bundle)
	if err == nil {
		folder, announced := opts.Folder, opts.Announced
		*opts, err = optionsFor(c, cfg, opts.Bundle, opts.Command)
		opts.Folder, opts.Announced = folder, announced
	}
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

// CurrentFolder returns the working directory if it contains an app and the user named neither a target nor a command.
func CurrentFolder(c *CLI, cmd *cobra.Command, command []string) ([]string, error) {
	const here = "."
	if !bundle.MarksFolder(here) {
		return nil, nil
	}

	cfg, err := c.LoadSettings(cmd, nil)
	if err != nil {
		return nil, err
	}

	if len(command) > 0 || !cfg.AnyToOwnApp() || cfg.DaemonFile() {
		if _, err := os.Stat("cron.yaml"); err == nil && cfg.Cron == "" {
			c.PrintWarnings(yamlfile.Problem{Where: "cron.yaml", Text: "this file is ignored because the app does " +
				"not run from this folder", Hint: "add --cron=cron.yaml, or name the folder: tendril " + cmd.Name() + " ."})
		}
		return nil, nil
	}

	if _, err := FoundFolder(c, cmd); err != nil {
		return nil, err
	}

	return []string{here}, nil
}

// FoundFolder opens the working directory. It fails if other users can change the code there, because the user did not
// name the folder.
func FoundFolder(c *CLI, cmd *cobra.Command) (*bundle.Bundle, error) {
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
