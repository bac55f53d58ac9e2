package keys

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
	"tendril/internal/config"
)

type lifetime string

func addExpires(cmd *cobra.Command, help string) *lifetime {
	var l lifetime
	cmd.Flags().StringVar((*string)(&l), "expires", "", help)
	return &l
}

func (l lifetime) end(now time.Time) (time.Time, error) {
	if l == "" {
		return time.Time{}, nil
	}
	lasts, err := config.ParseDuration(string(l))
	if err != nil || lasts <= 0 {
		return time.Time{}, base.Usagef("invalid --expires %q", l).Hint("use a duration such as 12h or 30d")
	}
	return now.Add(lasts).UTC().Truncate(time.Second), nil
}

// revokes gets the file or folder of the keys from place.
func revokes(c *base.CLI, cmd *cobra.Command, noun string, place func(*cobra.Command) (string, error),
	canRevoke, revoke func(place, name string) error) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	return base.Changes(c, cmd, func(_ context.Context, args []string) (*base.Plan, error) {
		at, err := place(cmd)
		if err != nil {
			return nil, err
		}
		name := args[0]
		if err := canRevoke(at, name); err != nil {
			return nil, err
		}
		return base.PlanOf(base.Step("revoke the %s %s in %s", noun, name, at), func() error {
			if err := revoke(at, name); err != nil {
				return err
			}
			c.PrintErrf("revoked %s\n", name)
			return nil
		}), nil
	})
}

func timeOrNever(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Format(time.RFC3339)
}
