package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tendril/broker"
	"tendril/internal/cli/base"
	"tendril/internal/config/yamlfile"
)

// NewBackup returns the command 'tendril backup'.
func NewBackup(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the embedded queues to a file, even while the environment runs",
		Long: `Writes the embedded queues of a data directory to a new file: messages, attempts, queues and the
registry of periodic tasks, as one consistent snapshot, even while the environment runs. The copy is
verified: the file, and the checksum of each message.

The file is an SQLite database readable only by its owner; 'tendril restore' restores it. Pauses of
queues, tokens and versions of the app are not included: see docs/backup.md.`,
		Example: "  tendril backup /backups/orders-$(date +%F).db\n  tendril backup orders.db --data-dir /var/lib/tendril",
		Args:    cobra.ExactArgs(1),
	}

	base.AddDataDir(cmd)
	return base.Changes(c, cmd, func(_ context.Context, args []string) (*base.Plan, error) {
		folder, err := os.Stat(filepath.Dir(args[0]))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !folder.IsDir() {
			return nil, base.Usagef("cannot write %s: its folder does not exist", args[0]).Hint("create the folder, or use another one")
		}
		dir, err := c.DataDir(cmd)
		if err != nil {
			return nil, err
		}
		would := base.Step("write the embedded queues in %s to %s", dir, args[0])
		return base.PlanOf(would, func() error {
			queues, err := broker.Backup(dir, args[0])
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return base.Fail(base.ExitNotFound, err, "name the data directory with --data-dir, or the environment with -e")
			case errors.Is(err, fs.ErrExist):
				return base.Fail(base.ExitConflict, err)
			case err != nil:
				return err
			}
			reportCopied(c, queues, "wrote", "to "+args[0])
			return nil
		}), nil
	})
}

// NewRestore returns the command 'tendril restore'.
func NewRestore(c *base.CLI) *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup of the embedded queues to a data directory",
		Long: `Verifies a backup and restores it to the data directory, which no environment may be using. Fails
if the directory holds queues; with --replace they are kept as queues.db.replaced.

Messages sent after the backup are lost, and messages processed after it are processed again.`,
		Example: "  tendril restore orders.db --data-dir /var/lib/tendril",
		Args:    cobra.ExactArgs(1),
	}

	base.AddDataDir(cmd)
	cmd.Flags().BoolVar(&replace, "replace", false, "Replace the queues in the data directory.")
	return base.Changes(c, cmd, func(_ context.Context, args []string) (*base.Plan, error) {
		dir, err := c.DataDir(cmd)
		if err != nil {
			return nil, err
		}
		would := base.Step("restore the queues of %s to %s", args[0], dir)
		return base.PlanOf(would, func() error {
			queues, err := broker.Restore(args[0], dir, replace)
			switch {
			case errors.Is(err, broker.ErrInUse):
				return base.Fail(base.ExitConflict, err)
			case errors.Is(err, broker.ErrUsed):
				return base.Fail(base.ExitConflict, err, "add --replace, which keeps them as "+broker.ReplacedFile,
					"or name a new directory with --data-dir")
			case err != nil:
				return err
			}
			reportCopied(c, queues, "restored", "into "+dir)
			return nil
		}), nil
	})
}

func reportCopied(c *base.CLI, queues []broker.StoredQueue, verb, where string) {
	messages := 0
	for _, q := range queues {
		messages += int(q.Messages)
		if q.Damaged > 0 {
			c.PrintWarnings(yamlfile.Problem{Text: fmt.Sprintf("%s of queue %s damaged, and copied unchanged",
				base.Plural(int(q.Damaged), "message"), q.Name), Hint: "see docs/backup.md"})
		}
	}
	c.PrintErrf("%s %s of %s %s, verified\n", verb, base.Plural(messages, "message"), base.Plural(len(queues), "queue"),
		base.Plain(where))
}
