package environment

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"tendril/internal/app"
	"tendril/internal/aws"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/observe/logging"
)

// Options configure an [Environment]. Config and Logger are required.
type Options struct {
	Config *config.Config
	Bundle *bundle.Bundle
	// Command starts the app in place of the bundle's Procfile; may be empty.
	Command []string
	// Announced is called when other commands can find this environment; may be nil.
	Announced func()
	// Shared identifies the version in Bundle if it is deployed to all instances; see [DesiredVersion].
	Shared app.SharedVersion
	// Folder is the absolute path of the app's folder, or of the working folder at startup.
	Folder string
	// Again means that this start follows one that ended with a [DesiredVersion] or [NewSettings].
	Again bool
	// Registry contains the settings for all instances that are in Config; nil if they are not known yet.
	Registry *config.File
	// Load reloads the settings with the Bundle, File and Registry of its argument; nil disables reloading.
	Load func(config.Sources) (*config.Config, error)
	// QueuesOnly serves the embedded queues without workers or an app.
	QueuesOnly bool
	// AppEnv is the environment that the app inherits, as NAME=value strings.
	AppEnv []string
	Logger *logging.Logger
	// Memory is this process's memory limit in bytes; 0 means none.
	Memory int64
	// Terminal means that the log goes to a terminal. Startup then prints a link to the console.
	Terminal bool
	// Version is displayed and sent in User-Agent.
	Version string
}

// HasApp reports whether tendril runs the app itself.
func (o *Options) HasApp() bool {
	return len(o.Command) > 0 || o.Bundle != nil && len(o.Bundle.Processes) > 0
}

func runsHere(set config.QueueSettings) bool { return set.Lambda != "" }

func (o *Options) commandText() string {
	switch {
	case len(o.Command) > 0:
		return "  (" + strings.Join(o.Command, " ") + ")"
	case o.HasApp():
		return "  (" + o.Bundle.Processes[0].Command + ")"
	}
	return ""
}

// CronFile returns the path of the task file, or "" without one.
func (o *Options) CronFile() string {
	if o.Config.Cron == "" && o.Bundle != nil {
		return o.Bundle.Cron
	}
	return o.Config.Cron
}

func (o *Options) log(component string) *slog.Logger { return o.Logger.With("component", component) }

func (o *Options) aws() *aws.Options {
	opts := &aws.Options{}
	if o.Logger != nil {
		opts.Log = o.Logger.SDK
	}
	if o.Config.IsSet("region") {
		opts.Region = o.Config.Region
	}
	return opts
}

// openS3 tries s.Region, if set, after the AWS configuration's own region.
func (o *Options) openS3(ctx context.Context, s *config.Settings) (*aws.S3, error) {
	opts := o.aws()
	s3, err := aws.OpenS3(ctx, opts)
	if err != nil && o.Config.Origin("region") != (config.Origin{}) {
		opts.Region = s.Region
		s3, err = aws.OpenS3(ctx, opts)
	}
	return s3, err
}

// stateFolder returns the folder where this user's environments find each other; "" if AppEnv is empty.
func (o *Options) stateFolder() string {
	if len(o.AppEnv) == 0 {
		return ""
	}
	return config.StateFolder(o.AppEnv, os.Geteuid() == 0)
}
