package main

import (
	"github.com/spf13/cobra"

	"tendril/config"
	"tendril/environment"
)

func (c *cli) newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the embedded queues alone, over the SQS protocol",
		Args:  cobra.NoArgs,
		Example: `  tendril serve
  tendril serve --data-dir /var/lib/tendril --listen 127.0.0.1:9324`,
	}
	addSettings(cmd, func(o config.Option) bool { return o.Serve })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := c.loadSettings(cmd, nil)
		if err != nil {
			return err
		}
		cfg.Backend = config.BackendEmbedded
		return c.runEnvironment(cfg, environment.Options{QueuesOnly: true})
	}
	return cmd
}
