package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"tendril/internal/bundle/getconfig"
	"tendril/internal/cli/base"
)

// The output formats of Elastic Beanstalk.
const (
	formJSON = "JSON"
	formYAML = "YAML"
)

type getConfigCommand struct {
	cli  *base.CLI
	form string
}

// NewGetConfig returns the command 'tendril get-config'.
func NewGetConfig(c *base.CLI) *cobra.Command {
	g := &getConfigCommand{cli: c}
	cmd := base.Family("get-config", "Print settings of the environment for scripts",
		`Prints the values that scripts read with Elastic Beanstalk's get-config tool: environment
properties, option settings, paths. Objects are JSON on one line; a single value is plain text.
Hooks and the app get the values of their own version, other callers those of the version that
serves in the data directory. Hooks, build commands and the app find it as "get-config" on their
PATH.`,
		g.command(getconfig.Environment, "Environment properties of the app", "key"),
		g.command(getconfig.OptionSettings, "Options of Elastic Beanstalk in force, by namespace", "namespace",
			"option-name"),
		g.command(getconfig.Container, "Paths and names on this machine", "key"),
		g.command(getconfig.Meta, "The region, and the worker's settings with their aws-sqsd keys", "key"),
		g.command(getconfig.Addons, "The database described by the RDS_ properties", "add-on", "key"),
		g.command(getconfig.PlatformConfig, "User, folders and port of the app", "key"),
	)

	cmd.Example = `  tendril get-config environment -k DATABASE_URL
  tendril get-config optionsettings -n aws:elasticbeanstalk:sqsd -o HttpPath
  tendril get-config --output YAML meta -k sqsdconfig`
	cmd.PersistentFlags().StringVar(&g.form, "output", formJSON, "Format of objects: JSON or YAML.")
	base.Complete(cmd, "output", formJSON, formYAML)
	return cmd
}

var optionHelp = map[string]string{
	"key": "Print only the value of this key.", "namespace": "Print only the options of this namespace.",
	"option-name": "Print only the value of this option of the namespace.", "add-on": "Print only this add-on.",
}

func (g *getConfigCommand) command(use, short string, options ...string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	path := make([]string, len(options))
	for i, name := range options {
		cmd.Flags().StringVarP(&path[i], name, name[:1], "", optionHelp[name])
	}

	base.AddDataDir(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if g.form = strings.ToUpper(g.form); g.form != formJSON && g.form != formYAML {
			return base.Usagef("invalid --output %q", g.form).Hint("use JSON or YAML")
		}
		if len(path) > 1 && path[0] == "" && path[1] != "" {
			return base.Usagef("--%s needs --%s", options[1], options[0])
		}
		answer, err := g.ask(cmd, use, path)
		if err != nil {
			return err
		}
		text, err := g.text(answer)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(g.cli.DataOut(), text)
		return err
	}

	return cmd
}

// ask includes inherited variables in the answer for a process of an environment.
func (g *getConfigCommand) ask(cmd *cobra.Command, command string, path []string) (any, error) {
	file, dir := g.cli.Env(getconfig.FileVariable), ""
	if file == "" || cmd.Flags().Changed("data-dir") {
		file = ""
		var err error
		if dir, err = g.cli.DataDir(cmd); err != nil {
			return nil, err
		}
	}

	facts, err := getconfig.Open(file, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && file == "":
		return nil, base.NotFoundf("no environment is running in %s", dir).
			Hint("name its data directory with --data-dir, or start it with 'tendril up'")
	case errors.Is(err, fs.ErrPermission):
		return nil, base.Fail(base.ExitUnreachable, fmt.Errorf("the data directory belongs to another user: %w", err), "run it with sudo")
	case err != nil:
		return nil, base.Fail(base.ExitFailed, err)
	}

	answer, err := facts.Answer(command, path...)
	if err == nil {
		return answer, nil
	}

	if value, inherited := g.cli.LookUp(path[0]); inherited && command == getconfig.Environment && file != "" {
		return value, nil
	}

	return nil, base.Fail(base.ExitNotFound, err, "docs/bundles.md#get-config lists the keys")
}

func (g *getConfigCommand) text(answer any) (string, error) {
	if _, single := answer.(string); !single && g.form == formYAML {
		text, err := base.AsYAMLText(answer)
		return strings.TrimSuffix(text, "\n"), err
	}
	return getconfig.Format(answer)
}
