package inspect

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
)

type runningEnvironment struct {
	// Name is unique on this machine; Environment may not be.
	Name        string    `json:"name"`
	Environment string    `json:"environment"`
	Folder      string    `json:"folder,omitempty"`
	DataDir     string    `json:"data_dir"`
	PID         int       `json:"pid"`
	State       string    `json:"state,omitempty"`
	Health      string    `json:"health,omitempty"`
	Problem     string    `json:"problem,omitempty"`
	Queues      []string  `json:"queues"`
	Endpoint    string    `json:"endpoint,omitempty"`
	Console     string    `json:"console,omitempty"`
	Started     time.Time `json:"started_at"`
}

const psTimeout = 2 * time.Second

// NewPS returns the command 'tendril ps'.
func NewPS(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the environments running on this machine",
		Long: `Lists the environments of this user that are running on this machine, with their folders, health, queues and
ports. Other commands use the environment of the working folder, else the only one running; -e NAME selects one.
Environments with the same name are listed as NAME@FOLDER, with the end of their data directory's path.`,
		Args: cobra.NoArgs,
	}

	var name string
	cmd.Flags().StringVarP(&name, "environment", "e", "", "List only this environment.")
	base.Prints(c, cmd, func(ctx context.Context, _ []string) ([]runningEnvironment, error) {
		all := []runningEnvironment{}
		for _, found := range api.Running(knownDirectories(c)) {
			if name == "" || name == found.Name || name == found.Environment {
				all = append(all, describeEnvironment(ctx, &found))
			}
		}
		if name != "" && len(all) == 0 {
			return nil, base.NotFoundf("environment %q not found", name).Hint("'tendril ps' lists the running ones")
		}
		return all, nil
	}, environmentList.View(c, func(all []runningEnvironment) error {
		for _, e := range all {
			if e.Problem != "" {
				c.PrintErrf("%s: %s\n", e.Name, e.Problem)
			}
		}
		return nil
	}))
	return cmd
}

func knownDirectories(c *base.CLI) []string {
	dirs := api.DataDirectories(c.StateFolder())
	if own := c.Env("TENDRIL_DATA_DIR"); own != "" {
		own, _ = filepath.Abs(own) // an environment announces the absolute path
		dirs = append(dirs, own)
	}
	return dirs
}

func describeEnvironment(ctx context.Context, found *api.Found) runningEnvironment {
	e := runningEnvironment{Name: found.Name, Environment: found.Environment, Folder: found.Folder, DataDir: found.DataDir,
		PID: found.PID, Queues: []string{}, Endpoint: found.Endpoint, Console: found.ConsoleURL(), Started: found.StartedAt}
	for _, q := range found.Queues {
		e.Queues = append(e.Queues, q.Name)
	}

	st, err := requestStatus(ctx, found.DataDir)
	if err != nil {
		e.Problem = err.Error()
		return e
	}

	e.State = st.State
	if st.Health != nil {
		e.Health = string(st.Health.Status)
	}
	return e
}

func requestStatus(ctx context.Context, dataDir string) (api.Status, error) {
	client, err := api.Dial(dataDir)
	if err != nil {
		return api.Status{}, err
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(ctx, psTimeout)
	defer cancel()
	return client.Status(ctx)
}

var environmentList = base.List[runningEnvironment]{
	Heading: []string{"NAME", "STATE", "HEALTH", "QUEUES", "ENDPOINT", "CONSOLE", "UP", "PROCESS", "FOLDER"},
	Name:    func(e *runningEnvironment) string { return e.Name },
	Empty:   "no environment is running; start one with 'tendril up'",
	Row: func(e *runningEnvironment) []string {
		state := e.State
		if e.Problem != "" {
			state = "no response"
		}
		row := []string{e.Name, state, e.Health, strings.Join(e.Queues, ","), e.Endpoint, e.Console, base.Since(e.Started),
			fmt.Sprint(e.PID), e.Folder}
		for i := range row {
			row[i] = cmp.Or(row[i], "-")
		}
		return row
	},
}
