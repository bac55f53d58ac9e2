package cli

import (
	"bytes"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tendril/internal/cli/base"
	"tendril/internal/cli/deploy"
	"tendril/internal/cli/inspect"
	"tendril/internal/cli/keys"
	"tendril/internal/cli/messages"
	"tendril/internal/cli/provision"
	"tendril/internal/cli/queues"
	"tendril/internal/cli/run"
	"tendril/internal/cli/send"
	"tendril/internal/cli/settings"
	"tendril/internal/cli/tasks"
	"tendril/internal/cli/transfer"
)

// NewRoot returns the command tendril with all its subcommands.
func NewRoot(c *base.CLI) *cobra.Command {
	root := &cobra.Command{
		Use:   "tendril",
		Short: "A complete worker environment in one binary",
		Long: `tendril receives messages from a queue, POSTs each to your app, and deletes or retries it
according to the response. The queue is embedded and durable, or on Amazon SQS.

  tendril init                          write a Procfile for the app in this folder
  tendril up examples/thumbnails        run an app from a folder with a Procfile
  tendril up -- python3 app.py          run a command
  tendril up --target http://127.0.0.1:8080/   deliver to a running app
  tendril send '{"order": 42}'          send a message
  tendril status                        show the current state
  tendril deploy examples/thumbnails    deploy a new version without downtime

Without a command, the flags of 'tendril up' run it, like a Workerless command line:

  tendril --function resize --queues payments:3,default:1

Exit status: 0 ok, 1 failed, 2 usage or settings, 3 drained late, 4 queue
unreachable, 5 app failed, 6 not found, 7 in use, 128+n killed by a second
signal.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       c.Version,
		Args:          cobra.ArbitraryArgs,
	}
	// These flags belong to 'tendril up'. Declaring them here keeps them from being read as commands.
	base.AddSettings(root)
	root.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	root.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && cmd.Flags().NFlag() > 0:
			root.SetArgs(append([]string{"up"}, c.Args...))
			return root.Execute()
		case len(args) == 0:
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}

	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(printUsage)
	root.SetHelpFunc(printHelp)
	root.AddGroup(&cobra.Group{ID: "run", Title: "Run"}, &cobra.Group{ID: "work", Title: "Messages and queues"},
		&cobra.Group{ID: "look", Title: "Inspect and control"}, &cobra.Group{ID: "settings", Title: "Settings"})
	add := func(group string, commands ...*cobra.Command) {
		for _, cmd := range commands {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}

	add("run", run.NewUp(c), run.NewInit(c), deploy.NewDeploy(c), deploy.NewRollback(c), deploy.NewRestart(c),
		run.NewServe(c))
	add("work", send.NewSend(c), messages.NewPeek(c), messages.NewReceive(c), messages.NewMessage(c),
		messages.NewReplay(c), queues.NewQueues(c), messages.NewDead(c), transfer.NewMigrate(c), transfer.NewBackup(c),
		transfer.NewRestore(c), keys.NewCredentials(c), keys.NewTokens(c))
	add("look", inspect.NewPS(c), inspect.NewStatus(c), inspect.NewTop(c), inspect.NewOpen(c), inspect.NewDescribe(c),
		inspect.NewHealth(c), deploy.NewVersions(c), inspect.NewScale(c), inspect.NewInstances(c), inspect.NewEvents(c),
		inspect.NewLogs(c), tasks.NewTasks(c), deploy.NewReload(c), deploy.NewDrain(c), provision.NewTerminate(c))
	add("settings", settings.NewCheck(c), inspect.NewDoctor(c), settings.NewExplain(c), provision.NewGenerate(c),
		settings.NewConfig(c), settings.NewGetConfig(c), newVersion(c))

	// See docs/decisions/0052.
	for _, plural := range root.Commands() {
		switch plural.Name() {
		case "queues", "tasks", "logs", "events", "tokens", "instances":
			plural.Aliases = append(plural.Aliases, strings.TrimSuffix(plural.Name(), "s"))
		}
	}

	addMan(c, root)
	wrapArguments(root)
	if len(c.Args) > 0 && strings.HasPrefix(c.Args[0], cobra.ShellCompRequestCmd) {
		base.CompleteFlags(root)
		completeSubcommands(c, root)
	}
	root.InitDefaultCompletionCmd()
	plainBash(root)
	return root
}

// wordsOfPackage, in cobra's script, needs the package bash-completion; wordsOfBash replaces it. Without the package, bash
// also splits words at "=" and ":", so such words are not completed.
const (
	wordsOfPackage = `    _get_comp_words_by_ref "$@" cur prev words cword
`
	wordsOfBash = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
    else
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=${words[cword]}
        prev=${words[cword-1]}
    fi
`
)

func plainBash(root *cobra.Command) {
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil {
		return
	}
	bash.RunE = func(cmd *cobra.Command, _ []string) error {
		bare, err := cmd.Flags().GetBool("no-descriptions")
		if err != nil {
			return err
		}
		var script bytes.Buffer
		if err := root.GenBashCompletionV2(&script, !bare); err != nil {
			return err
		}
		_, err = io.WriteString(root.OutOrStdout(), strings.Replace(script.String(), wordsOfPackage, wordsOfBash, 1))
		return err
	}
}

// wrapArguments makes --help-all print the help, whatever the arguments.
func wrapArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if all, err := cmd.Flags().GetBool(base.HelpAll); err == nil && all && cmd.HasParent() {
				return pflag.ErrHelp
			}
			if err := check(cmd, args); err != nil {
				return argumentsError(cmd, args, err)
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArguments(sub)
	}
}

func newVersion(c *base.CLI) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.Printf("tendril %s%s %s %s/%s\n", c.Version, revision(), runtime.Version(), runtime.GOOS,
				runtime.GOARCH)
			return err
		},
	}
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return " " + s.Value[:12]
		}
	}
	return ""
}
