package base

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/queue"
)

// Verb returns a RunE function. SIGINT and SIGTERM cancel the context of do. Errors get an exit status and hints.
func Verb(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err := do(ctx, args)
		if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return Interrupted("interrupted")
		}
		return Explained(err)
	}
}

// Dial returns a client of the selected environment. The client is closed when the command ends, and is read-only in a
// dry run.
func (c *CLI) Dial(cmd *cobra.Command) (*api.Client, error) {
	dir, err := c.DataDir(cmd)
	if err != nil {
		return nil, err
	}
	client, err := api.Dial(dir)
	if err != nil {
		return nil, err
	}
	client.Bodies = true // typing a command requests bodies
	if IsDryRun(cmd) {
		client.OnlyRead()
	}
	c.AtEnd(client.Close)
	return client, nil
}

// Prints makes cmd print a value in the format given with -o.
func Prints[T any](c *CLI, cmd *cobra.Command, get func(context.Context, []string) (T, error),
	as view[T]) {
	f := AddOutput(cmd)
	cmd.RunE = Verb(func(ctx context.Context, args []string) error {
		answer, err := get(ctx, args)
		if err != nil {
			return err
		}
		return PrintValue(c, *f, answer, as)
	})
}

// PrintValue prints value as text, as a list of names, or encoded, depending on f.
func PrintValue[T any](c *CLI, f Format, value T, as view[T]) error {
	var names []string
	if f == AsName {
		names = as.names(value)
	}
	return f.Print(c, value, names, func() error { return as.show(value) })
}

// Asks makes cmd print a value from the running environment.
func Asks[T any](c *CLI, cmd *cobra.Command, ask func(context.Context, *api.Client, []string) (T, error),
	as view[T]) {
	AddDataDir(cmd)
	Prints(c, cmd, func(ctx context.Context, args []string) (answer T, err error) {
		client, err := c.Dial(cmd)
		if err != nil {
			return answer, err
		}
		return ask(ctx, client, args)
	}, as)
}

// Family returns a parent command. Without a subcommand, it prints its help.
func Family(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// ListCommand returns the command list of a family.
func ListCommand(short string) *cobra.Command {
	return &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: short, Args: cobra.NoArgs}
}

// Argument returns a command's only argument, or "".
func Argument(args []string) string { return strings.Join(args, "") }

// CheckLimit validates a --limit.
func CheckLimit(limit int) error {
	if limit < 1 {
		return Usagef("--limit %d is out of range", limit).Hint("use 1 or more")
	}
	return nil
}

// AddYes adds the flag --yes.
func AddYes(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("yes", false, "Do not ask for confirmation.")
}

// CheckWait validates a --wait without a maximum.
func CheckWait(wait time.Duration) error {
	if wait < 0 {
		return Usagef("--wait %s is out of range", wait).Hint("use 0s or more")
	}
	return nil
}

// CheckConsoleLimit validates a --limit of at most 1000, the console's limit.
func CheckConsoleLimit(limit int) error {
	if limit < 1 || limit > 1000 {
		return Usagef("--limit %d is out of range", limit).Hint("use 1 to 1000")
	}
	return nil
}

// Explained adds an exit status and hints to errors of the console, of queues and of file permissions.
func Explained(err error) error {
	var reported *ExitError
	var apiError *api.Error
	var refused *queue.Error
	switch {
	case err == nil || errors.As(err, &reported):
		return err
	case errors.Is(err, api.ErrNotRunning):
		errors.As(err, &apiError)
		return Fail(ExitNotFound, err, apiError.Hint)
	case errors.Is(err, queue.ErrNoQueue):
		return Fail(ExitNotFound, err, "'tendril queues list' lists the queues")
	case errors.As(err, &apiError):
		return Fail(consoleExit(apiError), err, cmp.Or(apiError.Hint, messageHint(apiError.Code, apiError.Message)))
	case errors.As(err, &refused):
		return Fail(queueExit(refused.Code), err, messageHint(refused.Code, refused.Message))
	case errors.Is(err, fs.ErrPermission):
		return Fail(ExitFailed, err, "run this as the user that owns the file")
	}

	return err
}

func messageHint(code, message string) string {
	switch {
	case strings.Contains(message, "must contain the parameter MessageBody"):
		return "send a non-empty body, such as: tendril send '{\"order\": 42}'"
	case code == queue.CodeInvalidParameterValue && strings.Contains(message, "Message must be shorter than"):
		return "store the data elsewhere and send a reference; 'tendril queues show' shows the queue's " +
			"MaximumMessageSize"
	}
	return ""
}

func consoleExit(apiError *api.Error) int {
	if apiError.Code != "" {
		return queueExit(apiError.Code)
	}
	if errors.Is(apiError, api.ErrOff) {
		return ExitUnreachable
	}
	switch apiError.Status {
	case http.StatusNotFound:
		return ExitNotFound
	case http.StatusConflict:
		return ExitConflict
	case http.StatusUnauthorized, http.StatusForbidden:
		return ExitUnreachable
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return ExitUsage
	}
	return ExitFailed
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
