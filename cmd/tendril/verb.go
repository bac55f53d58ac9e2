package main

import (
	"context"
	"errors"
	"net/http"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tendril/config"
	"tendril/console"
	"tendril/queue"
)

// verb makes the RunE of a command that works on a running environment or on
// Amazon SQS: INT and TERM end its context, so that it can give back what it
// holds, and an error gets its exit status and hints.
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

// addDataDir gives a verb the flag that says which environment is meant.
func addDataDir(cmd *cobra.Command) {
	addSettings(cmd, func(o config.Option) bool { return o.Name == "data-dir" })
}

// dataDir is the folder of the environment that is meant.
func (c *cli) dataDir(cmd *cobra.Command) (string, error) {
	if f := cmd.Flags().Lookup("data-dir"); f != nil && f.Changed {
		return f.Value.String(), nil
	}
	cfg, err := c.loadSettings(cmd, nil)
	if err != nil {
		return "", err
	}
	return cfg.DataDir, nil
}

// dial finds the running environment.
func (c *cli) dial(cmd *cobra.Command) (*console.Client, error) {
	dir, err := c.dataDir(cmd)
	if err != nil {
		return nil, err
	}
	return console.Dial(dir)
}

// asks makes a command ask the running environment for one value, and show it or print
// it as JSON.
func asks[T any](c *cli, cmd *cobra.Command, ask func(context.Context, *console.Client, []string) (T, error),
	show func(T) error) {
	addDataDir(cmd)
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		defer client.Close()
		answer, err := ask(ctx, client, args)
		switch {
		case err != nil:
			return err
		case *f == asJSON:
			return c.printJSON(answer)
		}
		return show(answer)
	})
}

// explained gives errors of the console and of queues their exit status and
// hints; others stay what they are.
func explained(err error) error {
	var reported *exitError
	var said *console.Error
	var refused *queue.Error
	switch {
	case err == nil || errors.As(err, &reported):
		return err
	case errors.Is(err, console.ErrNotRunning):
		errors.As(err, &said)
		return fail(exitNotFound, err, said.Hint)
	case errors.Is(err, queue.ErrNoQueue):
		return fail(exitNotFound, err, "'tendril queues list' shows the queues")
	case errors.As(err, &said):
		return fail(consoleExit(said), err, said.Hint)
	case errors.As(err, &refused):
		return fail(queueExit(refused.Code), err)
	}
	return err
}

func consoleExit(said *console.Error) int {
	if said.Code != "" {
		return queueExit(said.Code)
	}
	switch said.Status {
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict:
		return exitConflict
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitUnreachable
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return exitUsage
	}
	if errors.Is(said, console.ErrOff) {
		return exitUnreachable
	}
	return exitFailed
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
