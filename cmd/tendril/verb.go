package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/queue"
)

// verb makes the RunE of a command that works on a running environment or on Amazon SQS: INT and TERM end its
// context, so that it can give back what it holds, and an error gets its exit status and hints.
func verb(do func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err := do(ctx, cmd, args)
		if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return fail(exitSignal+int(syscall.SIGINT), errors.New("interrupted"))
		}
		return explained(err)
	}
}

// dial returns a client of the environment that a command asks. It is closed when the command ends, and sends nothing
// that would change something in a dry run.
func (c *cli) dial(cmd *cobra.Command) (*api.Client, error) {
	dir, err := c.dataDir(cmd)
	if err != nil {
		return nil, err
	}
	client, err := api.Dial(dir)
	if err != nil {
		return nil, err
	}
	client.Bodies = true // who types a command has asked for them
	if isDryRun(cmd) {
		client.OnlyRead()
	}
	c.atEnd(client.Close)
	return client, nil
}

// prints makes a command get one value, and print it as -o says.
func prints[T any](c *cli, cmd *cobra.Command, get func(context.Context, *cobra.Command, []string) (T, error),
	as view[T]) {
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		answer, err := get(ctx, cmd, args)
		if err != nil {
			return err
		}
		return printValue(c, *f, answer, as)
	})
}

// printValue prints a value in a format.
func printValue[T any](c *cli, f format, value T, as view[T]) error {
	var names []string
	if f == asName {
		names = as.names(value)
	}
	return f.print(c, value, names, func() error { return as.show(value) })
}

// asks makes a command ask the running environment for the value that it prints.
func asks[T any](c *cli, cmd *cobra.Command, ask func(context.Context, *api.Client, []string) (T, error),
	as view[T]) {
	addDataDir(cmd)
	prints(c, cmd, func(ctx context.Context, cmd *cobra.Command, args []string) (answer T, err error) {
		client, err := c.dial(cmd)
		if err != nil {
			return answer, err
		}
		return ask(ctx, client, args)
	}, as)
}

// family is a command that only has subcommands.
func family(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// argument is the only argument of a command, "" where there is none.
func argument(args []string) string { return strings.Join(args, "") }

// complete offers words as the values of a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	// The only error is a flag that was not added before.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// checkLimit refuses a --limit that lists nothing.
func checkLimit(limit int) error {
	if limit < 1 {
		return fail(exitUsage, fmt.Errorf("--limit %d is out of range", limit), "use 1 or more")
	}
	return nil
}

// explained gives errors of the console and of queues their exit status and hints; others stay what they are.
func explained(err error) error {
	var reported *exitError
	var said *api.Error
	var refused *queue.Error
	switch {
	case err == nil || errors.As(err, &reported):
		return err
	case errors.Is(err, api.ErrNotRunning):
		errors.As(err, &said)
		return fail(exitNotFound, err, said.Hint)
	case errors.Is(err, queue.ErrNoQueue):
		return fail(exitNotFound, err, "'tendril queues list' shows the queues")
	case errors.As(err, &said):
		return fail(consoleExit(said), err, cmp.Or(said.Hint, refusedHint(said.Code, said.Message)))
	case errors.As(err, &refused):
		return fail(queueExit(refused.Code), err, refusedHint(refused.Code, refused.Message))
	}
	return err
}

// refusedHint says what to do when a queue refused a message, in the words of SQS; "" for other refusals.
func refusedHint(code, message string) string {
	switch {
	case code == queue.CodeMissingRequiredParameter && strings.Contains(message, "MessageBody"):
		return "a message needs a body of at least one character: tendril send '{\"order\": 42}'"
	case code == queue.CodeInvalidParameterValue && strings.Contains(message, "must be shorter than"):
		return "put the data elsewhere and send where it is; 'tendril queues show' shows the queue's MaximumMessageSize"
	}
	return ""
}

func consoleExit(said *api.Error) int {
	if said.Code != "" {
		return queueExit(said.Code)
	}
	exits := map[int]int{http.StatusNotFound: exitNotFound, http.StatusConflict: exitConflict,
		http.StatusUnauthorized: exitUnreachable, http.StatusForbidden: exitUnreachable,
		http.StatusBadRequest: exitUsage, http.StatusRequestEntityTooLarge: exitUsage}
	if errors.Is(said, api.ErrOff) {
		return exitUnreachable
	}
	return cmp.Or(exits[said.Status], exitFailed)
}

func queueExit(code string) int {
	switch code {
	case queue.CodeQueueDoesNotExist, queue.CodeResourceNotFound:
		return exitNotFound
	case queue.CodeAccessDenied, queue.CodeUnreachable:
		return exitUnreachable
	case queue.CodePurgeQueueInProgress, queue.CodeQueueNameExists, queue.CodeQueueDeletedRecently:
		return exitConflict
	case queue.CodeInvalidParameterValue, queue.CodeMissingRequiredParameter, queue.CodeInvalidAttributeName,
		queue.CodeInvalidAttributeValue, queue.CodeInvalidMessageContents, queue.CodeInvalidAddress:
		return exitUsage
	}
	return exitFailed
}
