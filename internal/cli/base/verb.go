package base

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/queue"
)

// Verb makes the RunE of a command that works on a running environment or on Amazon SQS: INT and TERM end its
// context, so that it can give back what it holds, and an error gets its exit status and hints.
func Verb(do func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err := do(ctx, cmd, args)
		if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return Fail(ExitSignal+int(syscall.SIGINT), errors.New("interrupted"))
		}
		return Explained(err)
	}
}

// Dial returns a client of the environment that a command asks. It is closed when the command ends, and sends nothing
// that would change something in a dry run.
func (c *CLI) Dial(cmd *cobra.Command) (*api.Client, error) {
	dir, err := c.DataDir(cmd)
	if err != nil {
		return nil, err
	}
	client, err := api.Dial(dir)
	if err != nil {
		return nil, err
	}
	client.Bodies = true // who types a command has asked for them
	if IsDryRun(cmd) {
		client.OnlyRead()
	}
	c.AtEnd(client.Close)
	return client, nil
}

// Prints makes a command get one value, and print it as -o says.
func Prints[T any](c *CLI, cmd *cobra.Command, get func(context.Context, *cobra.Command, []string) (T, error),
	as view[T]) {
	f := AddOutput(cmd)
	cmd.RunE = Verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		answer, err := get(ctx, cmd, args)
		if err != nil {
			return err
		}
		return PrintValue(c, *f, answer, as)
	})
}

// PrintValue prints a value in a format.
func PrintValue[T any](c *CLI, f Format, value T, as view[T]) error {
	var names []string
	if f == AsName {
		names = as.names(value)
	}
	return f.Print(c, value, names, func() error { return as.show(value) })
}

// Asks makes a command ask the running environment for the value that it prints.
func Asks[T any](c *CLI, cmd *cobra.Command, ask func(context.Context, *api.Client, []string) (T, error),
	as view[T]) {
	AddDataDir(cmd)
	Prints(c, cmd, func(ctx context.Context, cmd *cobra.Command, args []string) (answer T, err error) {
		client, err := c.Dial(cmd)
		if err != nil {
			return answer, err
		}
		return ask(ctx, client, args)
	}, as)
}

// Family is a command that only has subcommands.
func Family(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// Argument is the only argument of a command, "" where there is none.
func Argument(args []string) string { return strings.Join(args, "") }

// CheckLimit refuses a --limit that lists nothing.
func CheckLimit(limit int) error {
	if limit < 1 {
		return Usagef("--limit %d is out of range", limit).Hint("use 1 or more")
	}
	return nil
}

// CheckShown refuses a --limit that the console does not take.
func CheckShown(limit int) error {
	if limit < 1 || limit > 1000 {
		return Usagef("--limit %d is out of range", limit).Hint("use 1 to 1000")
	}
	return nil
}

// Explained gives errors of the console and of queues their exit status and hints; others stay what they are.
func Explained(err error) error {
	var reported *ExitError
	var said *api.Error
	var refused *queue.Error
	switch {
	case err == nil || errors.As(err, &reported):
		return err
	case errors.Is(err, api.ErrNotRunning):
		errors.As(err, &said)
		return Fail(ExitNotFound, err, said.Hint)
	case errors.Is(err, queue.ErrNoQueue):
		return Fail(ExitNotFound, err, "'tendril queues list' shows the queues")
	case errors.As(err, &said):
		return Fail(consoleExit(said), err, cmp.Or(said.Hint, refusedHint(said.Code, said.Message)))
	case errors.As(err, &refused):
		return Fail(queueExit(refused.Code), err, refusedHint(refused.Code, refused.Message))
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
	exits := map[int]int{http.StatusNotFound: ExitNotFound, http.StatusConflict: ExitConflict,
		http.StatusUnauthorized: ExitUnreachable, http.StatusForbidden: ExitUnreachable,
		http.StatusBadRequest: ExitUsage, http.StatusRequestEntityTooLarge: ExitUsage}
	if errors.Is(said, api.ErrOff) {
		return ExitUnreachable
	}
	return cmp.Or(exits[said.Status], ExitFailed)
}

func queueExit(code string) int {
	switch code {
	case queue.CodeQueueDoesNotExist, queue.CodeResourceNotFound:
		return ExitNotFound
	case queue.CodeAccessDenied, queue.CodeUnreachable:
		return ExitUnreachable
	case queue.CodePurgeQueueInProgress, queue.CodeQueueNameExists, queue.CodeQueueDeletedRecently:
		return ExitConflict
	case queue.CodeInvalidParameterValue, queue.CodeMissingRequiredParameter, queue.CodeInvalidAttributeName,
		queue.CodeInvalidAttributeValue, queue.CodeInvalidMessageContents, queue.CodeInvalidAddress:
		return ExitUsage
	}
	return ExitFailed
}
