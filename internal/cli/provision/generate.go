package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/internal/cli/generate"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/environment"
)

// NewGenerate returns the command 'tendril generate'.
func NewGenerate(c *base.CLI) *cobra.Command {
	return base.Family("generate", "Print deployment files: units, images, manifests, policies, alarms",
		`Prints files for deploying and operating an environment. Use the same settings and arguments as
for 'tendril up'. Settings that come from outside the app's folder become flags in the files, except
secrets: the files only name the variables that hold them.`,
		newSystemd(c), newDocker(c),
		newManifest(c, "compose", "Print a Docker Compose file", generate.Compose),
		newManifest(c, "kubernetes", "Print a Kubernetes manifest", generate.Kubernetes),
		newManifest(c, "keda", "Print a KEDA manifest that scales the pods, with queues on Amazon SQS", generate.KEDA),
		newIAM(c), newAlarms(c), newDashboard(c))
}

func newGenerator(c *base.CLI, name, short string,
	make func(ctx context.Context, cmd *cobra.Command, args []string) ([]generate.File, error)) *cobra.Command {
	cmd := &cobra.Command{Use: name + " [DIR|ZIP] [-- COMMAND ARGS...]", Short: short, Args: base.OneApp}
	base.AddSettings(cmd)
	path := cmd.Flags().StringP("file", "f", "", "New file to write, or a folder (default: standard output).")
	cmd.RunE = base.Verb(func(ctx context.Context, args []string) error {
		made, err := make(ctx, cmd, args)
		if err != nil {
			return err
		}
		return placeFiles(c, made, *path)
	})
	return cmd
}

func placeFiles(c *base.CLI, made []generate.File, path string) error {
	if path == "" {
		return printFiles(c, made)
	}

	info, err := os.Stat(path)
	folder := err == nil && info.IsDir()
	if !folder && len(made) > 1 && !made[1].Beside {
		return base.Usagef("cannot write %d files to %s", len(made), path).Hint("name an existing folder")
	}

	for i, file := range made {
		to := path
		switch {
		case folder:
			to = filepath.Join(path, file.Path)
		case i > 0:
			to = filepath.Join(filepath.Dir(path), file.Path)
		}
		if err := writeFile(c, to, file); err != nil {
			return err
		}
	}

	return nil
}

func printFiles(c *base.CLI, made []generate.File) error {
	for i, file := range made {
		if file.Beside {
			c.PrintErrf("hint: write %s too, to keep secrets out of the image: add --file FOLDER\n", file.Path)
			continue
		}
		if i > 0 {
			fmt.Fprintln(c.DataOut())
		}
		if _, err := fmt.Fprint(c.DataOut(), file.Text); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(c *base.CLI, path string, file generate.File) error {
	err := base.WriteNew(path, file.Text)
	exists := errors.Is(err, fs.ErrExist)
	switch {
	case exists && file.Beside:
		c.PrintErrf("kept %s: make sure it excludes *.env and .git\n", base.Plain(path))
		return nil
	case exists:
		return base.Conflictf("%s exists", path).Hint("delete it, or name another file")
	case err == nil:
		c.PrintErrf("wrote %s\n", base.Plain(path))
	}
	return err
}

func newManifest(c *base.CLI, name, short string, files func(*generate.Plan) []generate.File) *cobra.Command {
	var image, tendrilImage string
	cmd := newGenerator(c, name, short, func(_ context.Context, cmd *cobra.Command, args []string) ([]generate.File, error) {
		p, err := deploymentPlan(c, cmd, args)
		if err != nil {
			return nil, err
		}
		if name == "keda" && p.Embedded {
			return nil, base.Usagef("an embedded queue serves one pod: there is nothing to scale").
				Hint("name a queue on Amazon SQS with --queue-url, or add --backend sqs and --name")
		}
		p.Name = generate.Label(p.Name)
		p.Image = cmp.Or(image, p.Name+":1")
		p.TendrilImage = tendrilImage
		return files(p), nil
	})
	cmd.Flags().StringVar(&image, "image", "", "Image of the app (default: NAME:1).")
	cmd.Flags().StringVar(&tendrilImage, "tendril-image", "tendril:"+strings.TrimSuffix(c.Version, "-dev"),
		"Image of tendril, built with deploy/docker/Dockerfile.")
	return cmd
}

func newDocker(c *base.CLI) *cobra.Command {
	cmd := newManifest(c, "docker", "Print a Dockerfile for the app with tendril", generate.Docker)
	cmd.Example = "  tendril generate docker path/to/app > path/to/app/Dockerfile"
	return cmd
}

func newSystemd(c *base.CLI) *cobra.Command {
	var split bool
	cmd := newGenerator(c, "systemd", "Print a systemd unit", func(_ context.Context, cmd *cobra.Command,
		args []string) ([]generate.File, error) {
		p, err := deploymentPlan(c, cmd, args)
		if err != nil {
			return nil, err
		}
		if split && p.AppCommand == "" {
			return nil, base.Usagef("--split needs an app for tendril to start").
				Hint("name its folder, or add a command after --")
		}
		return generate.Systemd(p, split), nil
	})
	cmd.Flags().BoolVar(&split, "split", false, "Print one unit for tendril and one for the app.")
	cmd.Example = `  tendril generate systemd /srv/orders > tendril-orders.service
  tendril generate systemd --split /srv/orders --file /etc/systemd/system`
	return cmd
}

func deploymentPlan(c *base.CLI, cmd *cobra.Command, args []string) (*generate.Plan, error) {
	opts, err := base.PrepareApp(c, cmd, args, c.OpenForInspection)
	if err != nil {
		return nil, err
	}
	c.PrintWarnings(opts.Config.Warnings...)

	s := &opts.Config.Settings
	p := &generate.Plan{Name: s.Name, App: s.AnyToOwnApp(), Command: opts.Command, Embedded: s.AnyEmbedded(),
		AWS: s.AnyOnSQS(), Region: s.Region, AppPort: s.Port, Account: accountOf(s), ShutdownTimeout: s.ShutdownTimeout,
		AppGrace: s.AppGrace, AppReadyTimeout: s.AppReadyTimeout, MaxReplicas: generate.DefaultMaxReplicas}
	if opts.Config.IsSet("scale-max-size") {
		p.MaxReplicas = s.ScaleMaxSize
	} else {
		p.AdvisesPods = s.ScaleTarget == config.ScaleNone && !p.Embedded
	}
	p.Runtime = runtimeOf(opts.Folder, p.App)
	addApp(p, &opts, args)
	return p, addArgs(c, p, &opts)
}

func addApp(p *generate.Plan, opts *environment.Options, args []string) {
	fromBundle := p.App && opts.Bundle != nil
	switch {
	case len(opts.Command) > 0:
		p.AppCommand = strings.Join(opts.Command, " ")
	case fromBundle:
		web, _ := opts.Bundle.Web() // PrepareApp has checked it
		p.AppCommand = web.Command
	}

	running := targetOf(&opts.Config.Settings)
	switch {
	case fromBundle && len(opts.Command) == 0 && len(args) > 0 && base.IsArchive(args[0]):
		p.Folder = "/srv/" + p.Name
	case p.App:
		p.Folder = opts.Folder
	case running != nil:
		port, _ := strconv.Atoi(running.Port())
		p.Beside = true
		p.AppPort = cmp.Or(port, 80)
	}
}

func targetOf(s *config.Settings) *url.URL {
	for i := range s.Queues {
		if u, err := url.Parse(s.Queues[i].Target); err == nil && u.Host != "" {
			return u
		}
	}
	return nil
}

func accountOf(s *config.Settings) string {
	for i := range s.Queues {
		if ref, err := aws.ParseReference(s.Queues[i].URL); err == nil && ref.Account != "" {
			return ref.Account
		}
	}
	return "123456789012" // to be replaced by the user
}

// localOptions apply to this machine only.
var localOptions = []string{"config", "data-dir", "listen", "console", "console-insecure", "console-hosts", "pid-file", "name"}

func addArgs(c *base.CLI, p *generate.Plan, opts *environment.Options) error {
	cfg := opts.Config
	fileInFolder := p.App && base.Within(filepath.Dir(absolute(cfg.ConfigFile)), opts.Folder)
	p.Args = []string{"--name=" + cfg.Name}
	for _, o := range config.Options() {
		from := cfg.Origin(o.Name)
		fromFile := from.Layer.String() == "file"
		if slices.Contains(localOptions, o.Name) || from.Layer <= config.FromBundle || fromFile && fileInFolder {
			continue
		}

		e, err := cfg.Explain(o.Name)
		if err != nil {
			return err
		}
		switch {
		case e.Value != "" && o.IsSecret(), strings.Contains(o.WithoutQuery(e.Value), "(hidden)"):
			p.Secrets = append(p.Secrets, o.Variable)
		case e.Value != "":
			p.Args = append(p.Args, "--"+o.Name+"="+e.Value)
		}
		if o.Name == "queues" && fromFile {
			c.PrintWarnings(yamlfile.Problem{Where: from.Where, Text: "per-queue settings cannot be written as flags",
				Hint: "copy " + cfg.ConfigFile + " to the machine that runs tendril, and name it with --config"})
		}
	}

	return nil
}

func absolute(path string) string {
	if at, err := filepath.Abs(path); err == nil && path != "" {
		return at
	}
	return path
}

var runtimes = []struct {
	file string
	generate.Runtime
}{
	{"package-lock.json", generate.Runtime{Image: "node:24-bookworm-slim",
		Steps: []string{"COPY package.json package-lock.json ./", "RUN npm ci --omit=dev"}}},
	{"package.json", generate.Runtime{Image: "node:24-bookworm-slim"}},
	{"requirements.txt", generate.Runtime{Image: "python:3.13-slim-bookworm",
		Steps: []string{"COPY requirements.txt ./", "RUN pip install --no-cache-dir -r requirements.txt"}}},
	{"*.py", generate.Runtime{Image: "python:3.13-slim-bookworm"}},
	{"Gemfile", generate.Runtime{Image: "ruby:3.4-slim-bookworm",
		Steps: []string{"COPY Gemfile* ./", "RUN bundle install"}}},
	{"*.jar", generate.Runtime{Image: "eclipse-temurin:25-jre"}},
	{"composer.json", generate.Runtime{Image: "php:8.4-cli-bookworm"}},
}

// runtimeOf defaults to a small Debian, which suits static binaries.
func runtimeOf(folder string, app bool) generate.Runtime {
	for _, r := range runtimes {
		if found, _ := filepath.Glob(filepath.Join(folder, r.file)); app && len(found) > 0 {
			return r.Runtime
		}
	}
	return generate.Runtime{Image: "debian:bookworm-slim"}
}

func newIAM(c *base.CLI) *cobra.Command {
	var role string
	cmd := newGenerator(c, "iam", "Print the IAM policy of a role", func(_ context.Context, cmd *cobra.Command,
		args []string) ([]generate.File, error) {
		if role != RoleRun && role != RoleOperate {
			return nil, base.Usagef("invalid --role %q", role).Hint("use run or operate")
		}
		policy, err := IamPolicy(c, cmd, args, role)
		if err != nil || policy == nil {
			return nil, err
		}
		text, err := base.IndentedJSON(policy)
		return []generate.File{{Path: "policy.json", Text: text}}, err
	})
	cmd.Flags().StringVar(&role, "role", RoleRun, "Role: run for the environment, operate for people who run "+
		"commands.")
	base.Complete(cmd, "role", RoleRun, RoleOperate)
	return cmd
}
