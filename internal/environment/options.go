package environment

import (
	"os"
	"strings"

	"tendril/internal/aws"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/observe/logging"
)

// Options say what to build. Config and Logger are required.
type Options struct {
	// Config holds the settings in force, and who set them.
	Config *config.Config
	// Bundle is the folder that holds the app; nil when there is none.
	Bundle *bundle.Bundle
	// Command is the app's program and arguments; empty when the bundle's
	// Procfile or Settings.Target says where the app is.
	Command []string
	// Announced is called when the other commands find this environment; nil for nothing.
	Announced func()
	// Folder is where the environment was started: the absolute path of the app's folder, or the working folder.
	Folder string
	// Load reads the settings anew with another bundle, to check it before it is deployed, and with another settings
	// file, nil for that on disk. It is nil for no check.
	Load func(b *bundle.Bundle, file *config.File) (*config.Config, error)
	// QueuesOnly serves the embedded queues without worker and app.
	QueuesOnly bool
	// AppEnv is the environment that the app inherits, as NAME=value.
	AppEnv []string
	// Logger prints events, one line for each settled message, and the app's output.
	Logger *logging.Logger
	// Memory is how many bytes this process may use; 0 for any number.
	Memory int64
	// Terminal is whether a person reads the log on a terminal: the start then prints a link to the console.
	Terminal bool
	// Version is shown and sent in User-Agent.
	Version string
}

// HasApp reports whether tendril runs the app, rather than standing beside it.
func (o *Options) HasApp() bool {
	return len(o.Command) > 0 || o.Bundle != nil && len(o.Bundle.Processes) > 0
}

// runsHere reports whether a queue's function runs on this machine.
func runsHere(set config.QueueSettings) bool { return set.Lambda != "" }

// commandText says how the app is started, for a person.
func (o *Options) commandText() string {
	switch {
	case len(o.Command) > 0:
		return "  (" + strings.Join(o.Command, " ") + ")"
	case o.HasApp():
		return "  (" + o.Bundle.Processes[0].Command + ")"
	}
	return ""
}

// CronFile is the path of the file of tasks; "" when there is none.
func (o *Options) CronFile() string {
	if o.Config.Cron == "" && o.Bundle != nil {
		return o.Bundle.Cron
	}
	return o.Config.Cron
}

// aws are the options of a connection to Amazon. The region is that of the settings where one is
// given, else what the environment, the profile or the metadata of the machine say.
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

// stateFolder is where this user's environments find each other; "" for a process without an environment.
func (o *Options) stateFolder() string {
	if len(o.AppEnv) == 0 {
		return ""
	}
	return config.StateFolder(o.AppEnv, os.Geteuid() == 0)
}
