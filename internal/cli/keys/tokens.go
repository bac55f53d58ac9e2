package keys

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/console/tokens"
)

// NewTokens returns the command 'tendril tokens'.
func NewTokens(c *base.CLI) *cobra.Command {
	return base.Family("tokens", "Create, list and revoke tokens for the console",
		`Manages tokens that let programs and people use the console and its API, each with scopes:

  read    message bodies, settings, events, logs, versions, instances, and texts from the app,
          hooks and other servers
  act     sending; changing queues, messages, tasks and most options; stopping the environment
  deploy  deployments, restarts and reloads; options for programs, files and targets

The data directory holds their digests. Changes take effect at once, without a restart.`,
		newTokensCreate(c), newTokensList(c), newTokensRevoke(c))
}

// createdToken is the JSON output of create, the only command that prints the token's secret.
type createdToken struct {
	Name    string    `json:"name"`
	Token   string    `json:"token"`
	Scopes  []string  `json:"scopes"`
	Expires time.Time `json:"expires,omitzero"`
}

func newTokensCreate(c *base.CLI) *cobra.Command {
	var scopes []string
	cmd := &cobra.Command{
		Use:   "create NAME --scope SCOPES",
		Short: "Create a token and print it once",
		Example: `  tendril tokens create ci --scope deploy --expires 90d
  tendril tokens create grafana --scope read`,
		Args: cobra.ExactArgs(1),
	}

	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "Scopes of the token, comma-separated: read, act, deploy.")
	base.Complete(cmd, "scope", api.ScopeRead, api.ScopeAct, api.ScopeDeploy)
	expires := addExpires(cmd, "Lifetime, such as 12h or 30d (default unlimited).")
	base.AddDataDir(cmd)
	f := base.AddOutput(cmd)
	return base.Changes(c, cmd, func(_ context.Context, args []string) (*base.Plan, error) {
		dir, err := c.DataDir(cmd)
		if err != nil {
			return nil, err
		}

		now := time.Now()
		token := tokens.Token{Name: args[0], Scopes: scopes}
		if token.Expires, err = expires.end(now); err != nil {
			return nil, err
		}
		if err := tokens.CanCreate(dir, token); err != nil {
			return nil, err
		}

		would := base.Step("create the token %s in %s with the scopes %s", token.Name, dir, strings.Join(scopes, ", "))
		return base.PlanOf(would, func() error {
			secret, err := tokens.Create(dir, token, now)
			if err != nil {
				return err
			}
			c.PrintErrf("created %s in %s; the token is not shown again\n", token.Name, dir)
			return f.Print(c, createdToken{token.Name, secret, scopes, token.Expires}, []string{token.Name}, func() error {
				_, err := c.Println(secret)
				return err
			})
		}), nil
	})
}

func newTokensList(c *base.CLI) *cobra.Command {
	cmd := base.ListCommand("List the tokens, without their secrets")
	base.AddDataDir(cmd)
	base.Prints(c, cmd, func(_ context.Context, _ []string) ([]tokens.Token, error) {
		dir, err := c.DataDir(cmd)
		if err != nil {
			return nil, err
		}
		return tokens.List(dir)
	}, tokenList.View(c))
	return cmd
}

var tokenList = base.List[tokens.Token]{
	Heading: []string{"NAME", "SCOPES", "CREATED", "EXPIRES", "LAST USED"},
	Name:    func(t *tokens.Token) string { return t.Name },
	Row: func(t *tokens.Token) []string {
		return []string{t.Name, strings.Join(t.Scopes, ","), timeOrNever(t.Created), timeOrNever(t.Expires),
			timeOrNever(t.LastUsed)}
	},
}

func newTokensRevoke(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "revoke NAME", Short: "Remove a token"}
	base.AddDataDir(cmd)
	return revokes(c, cmd, "token", c.DataDir, tokens.CanRevoke, tokens.Revoke)
}
