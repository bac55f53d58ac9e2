package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tendril/internal/cli/base"
	"tendril/internal/config"
	"tendril/internal/host/terminal"
)

type meaning struct{ name, words string }

// commandMeanings lists the names of similar commands in other programs.
var commandMeanings = []meaning{
	{"up", "start run dev launch local begin boot"},
	{"init", "new scaffold generate-app setup"},
	{"ps", "list ls env envs environment environments"},
	{"drain", "stop down shutdown halt quit kill"},
	{"terminate", "rm remove destroy delete"},
	{"message delete", "rm remove delete"},
	{"deploy", "redeploy push release update"},
	{"reload", "refresh hup"},
	{"rollback", "undo revert"},
	{"serve", "server sqs"},
	{"send", "enqueue publish produce submit post"},
	{"peek", "messages browse"},
	{"receive", "pop poll consume"},
	{"message show", "messages get"},
	{"dead redrive", "retry redrive requeue"},
	{"message retry", "retry"},
	{"replay", "repost resend"},
	{"dead", "dlq dead-letter dead-letters deadletters failed failures"},
	{"queues purge", "purge flush"},
	{"queues pause", "pause suspend"},
	{"queues resume", "resume unpause"},
	{"queues create", "create"},
	{"tasks", "cron crons crontab schedule schedules scheduled periodic"},
	{"logs", "tail"},
	{"top", "watch monitor"},
	{"open", "ui web dashboard browser login"},
	{"status", "stat info state"},
	{"describe", "inspect show"},
	{"events", "history audit"},
	{"check", "validate lint verify"},
	{"doctor", "diagnose troubleshoot"},
	{"migrate", "move"},
	{"generate", "systemd docker compose kubernetes k8s keda iam"},
	{"explain", "option options"},
	{"config show", "settings conf"},
	{"credentials create", "keys key"},
	{"generate alarms", "alarms alarm alerts alert"},
}

var subcommandMeanings = []meaning{
	{"list", "ls all"},
	{"show", "get describe inspect view info"},
	{"create", "add new make"},
	{"delete", "rm remove destroy drop clear"},
	{"purge", "clear empty flush"},
	{"revoke", "rm remove delete destroy drop"},
	{"redrive", "retry replay requeue move"},
	{"retry", "redrive replay requeue"},
	{"pause", "stop suspend disable"},
	{"resume", "start unpause continue enable"},
	{"run", "trigger start now"},
	{"history", "log logs runs"},
	{"export", "save dump download"},
}

var flagMeanings = []meaning{
	{"environment", "e env name"},
	{"name", "e env environment"},
	{"output", "json yaml format"},
	{"http-connections", "workers threads parallel parallelism"},
	{"max-retries", "retries max-receives attempts"},
	{"inactivity-timeout", "timeout"},
	{"http-path", "path"},
	{"listen", "bind addr address"},
	{"data-dir", "dir data"},
	{"verbose", "debug v"},
	{"yes", "y f force"},
	{"limit", "n max count"},
	{"queue", "q queue-name"},
}

func meant(meanings []meaning, word string) (names []string) {
	for _, m := range meanings {
		if slices.Contains(strings.Fields(m.words), word) {
			names = append(names, m.name)
		}
	}
	return names
}

func suggestCommands(cmd *cobra.Command, word string) []string {
	word = strings.ToLower(word)
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}

	meanings := commandMeanings
	if cmd.HasParent() {
		meanings = subcommandMeanings
	}

	near := slices.DeleteFunc(meant(meanings, word), func(line string) bool {
		first, _, _ := strings.Cut(line, " ")
		return !slices.Contains(names, first)
	})
	if len(near) == 0 {
		near = config.Nearest(word, names)
	}

	for _, name := range names {
		if len(word) > 1 && strings.HasPrefix(name, word) && !slices.Contains(near, name) {
			near = append(near, name)
		}
	}

	for i := range near {
		near[i] = cmd.CommandPath() + " " + near[i]
	}

	return near
}

func didYouMean(near []string, format string) string {
	if len(near) == 0 {
		return ""
	}
	for i := range near {
		near[i] = fmt.Sprintf(format, near[i])
	}
	return "did you mean " + strings.Join(near, " or ") + "?"
}

func unknownCommand(cmd *cobra.Command, word string) error {
	err := fmt.Errorf("unknown command %q", word)
	if cmd.HasParent() {
		err = fmt.Errorf("unknown command %q for %q", word, cmd.CommandPath())
	}

	near := suggestCommands(cmd, word)
	if len(near) == 0 && !cmd.HasParent() {
		if info, err := os.Stat(word); err == nil && (info.IsDir() || base.IsArchive(word)) {
			near = []string{cmd.CommandPath() + " up " + terminal.ShellWord(word)}
		}
	}

	return base.Fail(base.ExitUsage, err, cmp.Or(didYouMean(near, "'%s'"), seeHelp(cmd)))
}

func seeHelp(cmd *cobra.Command) string { return "see '" + cmd.CommandPath() + " --help'" }

func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	hint := seeHelp(cmd)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if letters := unknown.GetSpecifiedShortnames(); len(letters) > 1 {
			if word, _, _ := strings.Cut(letters, "="); len(word) > 2 { // a long flag with a single dash
				name, err = word, fmt.Errorf("unknown flag: -%s", word)
			}
		}
		hint = unknownFlagHint(cmd, name)
	case errors.As(err, &empty):
		name := empty.GetFlag().Name
		example := strings.ToUpper(kindOf(empty.GetFlag()))
		if o, found := config.Lookup(name); found && base.IsSetting(empty.GetFlag()) {
			example = o.ExampleText()
		}
		hint = fmt.Sprintf("use --%s=%s", name, example)
	case errors.As(err, &invalid):
		return invalidFlag(invalid)
	}
	return base.Fail(base.ExitUsage, err, hint)
}

func unknownFlagHint(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden || base.IsSetting(f) {
			names = append(names, f.Name)
		}
	})
	near := slices.DeleteFunc(meant(flagMeanings, name), func(n string) bool { return !slices.Contains(names, n) })
	if o, found := config.Lookup(name); found && slices.Contains(names, o.Name) {
		near = []string{o.Name}
	}

	if len(near) == 0 {
		near = config.Nearest(name, names)
	}

	if hint := didYouMean(near, "--%s"); hint != "" {
		return hint
	}

	if others := commandsWith(cmd.Root(), name); len(others) > 0 {
		return "--" + name + " is a flag of '" + strings.Join(others[:min(len(others), 3)], "', '") + "'"
	}

	if base.IsFlag(name) {
		return "--" + name + " is a flag of 'tendril up'"
	}

	return seeHelp(cmd)
}

func commandsWith(cmd *cobra.Command, name string) (paths []string) {
	for _, sub := range cmd.Commands() {
		if f := sub.Flags().Lookup(name); f != nil && !f.Hidden && !base.IsSetting(f) {
			paths = append(paths, sub.CommandPath())
		}
		paths = append(paths, commandsWith(sub, name)...)
	}
	return paths
}

func invalidFlag(invalid *pflag.InvalidValueError) error {
	name, value := "--"+invalid.GetFlag().Name, invalid.GetValue()
	switch invalid.GetFlag().Value.Type() {
	case "duration":
		return base.Usagef("invalid %s %q: not a duration", name, value).
			Hint("use a number and its unit (ms, s, m or h), such as " + name + "=30s")
	case "int":
		return base.Usagef("invalid %s %q: not a whole number", name, value).
			Hint("use digits only, such as " + name + "=10")
	case "bool":
		return base.Usagef("invalid %s %q: neither true nor false", name, value).
			Hint("write " + name + " alone for true, or " + name + "=false")
	}

	text, hint, _ := strings.Cut(invalid.Unwrap().Error(), ": use ")
	if hint != "" {
		hint = "use " + hint
	}

	return base.Usagef("%s: %s", name, text).Hint(hint)
}

func argumentsError(cmd *cobra.Command, args []string, err error) error {
	var reported *base.ExitError
	hint := "usage: " + strings.TrimSpace(cmd.UseLine())
	switch {
	case errors.As(err, &reported):
		return err
	case cmd.HasAvailableSubCommands() && len(args) > 0:
		return unknownCommand(cmd, args[0])
	case strings.HasPrefix(err.Error(), "unknown command") && len(args) > 0:
		err = fmt.Errorf("%s takes no arguments, not %q", cmd.Name(), args[0])
		if cmd.Flags().Lookup("environment") != nil {
			hint = "to choose an environment, type: " + cmd.CommandPath() + " -e " + terminal.ShellWord(args[0])
		}
	default:
		text := strings.NewReplacer("arg(s)", "arguments", " received ", " got ").Replace(err.Error())
		text = strings.Replace(text, " 1 arguments", " 1 argument", 1)
		if first, _, _ := strings.Cut(text, " "); first == "accepts" || first == "requires" {
			text = strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + " " + text
		}
		err = errors.New(text)
	}

	return base.Fail(base.ExitUsage, err, hint)
}
