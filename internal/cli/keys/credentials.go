package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/internal/access"
	"tendril/internal/cli/base"
)

// NewCredentials returns the command 'tendril credentials'.
func NewCredentials(c *base.CLI) *cobra.Command {
	return base.Family("credentials", "Create, list and revoke key pairs for the SQS endpoint",
		`Manages the file of key pairs given with --credentials. With such a file, 'tendril up' and 'tendril serve'
may listen on any address, and every request must be signed, which AWS SDKs do by default. Changes take effect
within a second, without a restart.`, newCredentialsCreate(c), newCredentialsList(c), newCredentialsRevoke(c))
}

func credentialsFile(c *base.CLI, cmd *cobra.Command) (string, error) {
	if f := cmd.Flags().Lookup("credentials"); f.Changed {
		return f.Value.String(), nil
	}
	cfg, err := c.LoadSettings(cmd, nil)
	switch {
	case err != nil:
		return "", err
	case cfg.Credentials == "":
		return "", base.Usagef("no credentials file given").
			Hint("add --credentials FILE, or set TENDRIL_CREDENTIALS")
	}
	return cfg.Credentials, nil
}

// createdPair is the JSON output of create, the only command that prints the secret key.
type createdPair struct {
	Name            string    `json:"name"`
	AccessKeyID     string    `json:"access_key_id"`
	SecretAccessKey string    `json:"secret_access_key"`
	SessionToken    string    `json:"session_token,omitempty"`
	Expires         time.Time `json:"expires,omitzero"`
}

func newCredentialsCreate(c *base.CLI) *cobra.Command {
	var sendOnly bool
	var queues []string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Add a key pair and print it once, as environment variables",
		Example: `  tendril credentials create web --send-only --queue orders \
      --credentials /etc/tendril/credentials.json
  tendril credentials create ops --expires 12h`,
		Args: cobra.ExactArgs(1),
	}

	cmd.Flags().BoolVar(&sendOnly, "send-only", false, "Allow sending messages only.")
	cmd.Flags().StringSliceVar(&queues, "queue", nil, "Queues that the pair may use, comma-separated (default all).")
	expires := addExpires(cmd, "Lifetime, such as 12h or 30d; the pair then has a session token (default unlimited).")
	base.AddSettings(cmd, "credentials")
	f := base.AddOutput(cmd)
	return base.Changes(c, cmd, func(_ context.Context, args []string) (*base.Plan, error) {
		path, err := credentialsFile(c, cmd)
		if err != nil {
			return nil, err
		}

		now := time.Now()
		pair := access.KeyPair{Name: args[0], Allow: access.AllowAll, Queues: queues}
		if sendOnly {
			pair.Allow = access.AllowSend
		}
		if pair.Expires, err = expires.end(now); err != nil {
			return nil, err
		}
		if err := access.CanCreate(path, pair); err != nil {
			return nil, base.Fail(base.ExitUsage, err)
		}

		return base.PlanOf(base.Step("create the key pair %s in %s", pair.Name, path), func() error {
			pair, err := access.Create(path, pair, now)
			if err != nil {
				return base.Fail(base.ExitUsage, err)
			}
			c.PrintErrf("created %s in %s; the secret is not shown again\n", pair.Name, path)
			created := createdPair{pair.Name, pair.AccessKeyID, string(pair.SecretAccessKey), string(pair.SessionToken),
				pair.Expires}
			return f.Print(c, created, []string{pair.Name}, func() error {
				_, err := c.Println(created.variables())
				return err
			})
		}), nil
	})
}

func (p *createdPair) variables() string {
	text := fmt.Sprintf("AWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s", p.AccessKeyID, p.SecretAccessKey)
	if p.SessionToken != "" {
		text += "\nAWS_SESSION_TOKEN=" + p.SessionToken
	}
	return text
}

type listedPair struct {
	Name        string    `json:"name"`
	AccessKeyID string    `json:"access_key_id"`
	Allow       string    `json:"allow"`
	Queues      []string  `json:"queues,omitempty"`
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires,omitzero"`
}

func newCredentialsList(c *base.CLI) *cobra.Command {
	cmd := base.ListCommand("List the key pairs, without their secrets")
	base.AddSettings(cmd, "credentials")
	base.Prints(c, cmd, func(_ context.Context, _ []string) ([]listedPair, error) {
		path, err := credentialsFile(c, cmd)
		if err != nil {
			return nil, err
		}
		pairs, err := access.ReadFile(path)
		if err != nil {
			return nil, fileFailure(err)
		}
		listed := make([]listedPair, len(pairs))
		for i, p := range pairs {
			listed[i] = listedPair{p.Name, p.AccessKeyID, p.Allow, p.Queues, p.Created, p.Expires}
		}
		return listed, nil
	}, pairList.View(c))

	return cmd
}

var pairList = base.List[listedPair]{
	Heading: []string{"NAME", "ACCESS KEY", "ALLOW", "QUEUES", "CREATED", "EXPIRES"},
	Name:    func(p *listedPair) string { return p.Name },
	Row: func(p *listedPair) []string {
		return []string{p.Name, p.AccessKeyID, p.Allow, cmp.Or(strings.Join(p.Queues, ","), "all"),
			p.Created.Format(time.RFC3339), timeOrNever(p.Expires)}
	},
}

func newCredentialsRevoke(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "revoke NAME", Short: "Remove a key pair, by its name or access key"}
	base.AddSettings(cmd, "credentials")
	return revokes(c, cmd, "key pair", func(cmd *cobra.Command) (string, error) { return credentialsFile(c, cmd) },
		func(path, name string) error { return fileFailure(access.CanRevoke(path, name)) },
		func(path, name string) error { return fileFailure(access.Revoke(path, name)) })
}

func fileFailure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return base.Fail(base.ExitNotFound, err, "'tendril credentials create NAME' creates the file")
	}
	return base.Fail(base.ExitUsage, err)
}
