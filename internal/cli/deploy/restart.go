package deploy

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/cli/base"
)

// NewRestart returns the command 'tendril restart'.
func NewRestart(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restart PROCESS",
		Short: "Restart one process of the app",
		Long: `Restarts one process of the app; 'tendril status' lists them. A replica that takes messages is
restarted without downtime: its replacement starts beside it under another name and gets the messages
once it is ready; then the previous one finishes its work and stops. If no replica has the given
name, not even a draining one, the name is a position: web is the first replica, web-2 the second.
If the replacement does not become ready, nothing changes and the exit status is 1. A process that
takes no messages stops first. The other processes keep running; 'tendril deploy' restarts all of
them.`,
		Example: "  tendril restart web\n  tendril restart mailer",
		Args:    cobra.ExactArgs(1),
	}

	f := base.AddOutput(cmd)
	return base.ChangesRunning(c, cmd, func(ctx context.Context, client *api.Client, args []string) (*base.Plan, error) {
		name := args[0]
		return base.PlanOf(func() ([]string, error) {
			st, err := client.Status(ctx)
			if err != nil {
				return nil, err
			}
			at, err := processToRestart(st.App, name)
			return []string{"restart " + base.Plain(at)}, err
		}, func() error {
			noteStarting(ctx, c, client)
			newName, err := client.RestartProcess(ctx, name)
			if err != nil {
				printFailedStep(c, err)
				return err
			}
			text := base.Plain(name) + " was restarted"
			if newName != name {
				text += " as " + base.Plain(newName)
			}
			return f.PrintDone(c, api.RestartedProcess{Process: newName}, newName, text)
		}), nil
	})
}

func processToRestart(app []api.Process, name string) (string, error) {
	var names, retired []string
	for _, p := range app {
		switch {
		case p.Role == api.RoleRetired:
			retired = append(retired, p.Name)
		case p.Role != api.RoleQuarantine:
			names = append(names, p.Name)
		case p.Name == name:
			return name, nil
		}
	}

	if at := bundle.ProcessIndex(names, retired, name); at >= 0 {
		return names[at], nil
	}
	if slices.Contains(retired, name) {
		return "", base.Conflictf("process %q is draining: it was replaced and stops after its deliveries", name).
			Hint("restart one of " + strings.Join(names, ", "))
	}
	return "", base.NotFoundf("process %q not found", name).Hint("'tendril status' lists them")
}
