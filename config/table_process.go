package config

import "time"

func appOptions() []Option {
	return []Option{{
		Name: "port", Group: GroupApp, Default: "5000", OtherVariables: []string{"PORT"},
		Help:  "The port that the app is told to listen on, as its PORT.",
		value: integer(func(s *Settings) *int { return &s.Port }, 1, 65535),
	}, {
		Name: "healthcheck", Group: GroupApp, Example: "HTTP:5000/health", DaemonKey: "healthcheck", DefaultNote: "TCP on the app's port",
		Help:  "What must answer before messages are received.",
		value: checked(func(s *Settings) *string { return &s.Healthcheck }, "TCP:PORT or HTTP:PORT/PATH", healthcheck),
	}, {
		Name: "app-ready-timeout", Group: GroupApp, Default: "300s",
		Help:  "How long the app may take to be ready at the start before tendril gives up; 0 is for ever.",
		value: duration(func(s *Settings) *time.Duration { return &s.AppReadyTimeout }, 0, twelveHours),
	}, {
		Name: "app-grace", Group: GroupApp, Default: "10s", OtherVariables: []string{"WORKER_SHUTDOWN_DELAY"},
		Help:  "How long the app may take to end after TERM before its whole process group gets KILL.",
		value: duration(func(s *Settings) *time.Duration { return &s.AppGrace }, 0, twelveHours),
	}, {
		Name: "restart-limit", Group: GroupApp, Default: "10",
		Help:  "How many restarts of a process that ends the restart window may hold before tendril gives up; 0 is none.",
		value: integer(func(s *Settings) *int { return &s.RestartLimit }, 0, 1000),
	}, {
		Name: "restart-window", Group: GroupApp, Default: "300s",
		Help:  "The time over which restarts are counted.",
		value: duration(func(s *Settings) *time.Duration { return &s.RestartWindow }, time.Second, 24*time.Hour),
	}}
}

func embeddedOptions() []Option {
	return []Option{{
		Name: "data-dir", Group: GroupEmbedded, Example: "/var/lib/tendril", Serve: true,
		DefaultNote: "$STATE_DIRECTORY, else $XDG_STATE_HOME/tendril, else ~/.local/state/tendril, for root /var/lib/tendril",
		Help:        "The folder that holds the embedded queues; one process at a time uses it.",
		value:       checked(func(s *Settings) *string { return &s.DataDir }, "a path of a folder", folderPath),
	}, {
		Name: "listen", Group: GroupEmbedded, Default: "127.0.0.1:9324", Serve: true,
		Help:  "Where the embedded queues are served over the SQS protocol; port 0 takes any free one.",
		value: checked(func(s *Settings) *string { return &s.Listen }, allowedAddress, loopbackAddress),
	}, {
		Name: "account-id", Group: GroupEmbedded, Default: "000000000000", Serve: true,
		Help:  "The AWS account in the URLs and ARNs of the embedded queues.",
		value: checked(func(s *Settings) *string { return &s.AccountID }, "12 digits", accountID),
	}}
}

func periodicOptions() []Option {
	return []Option{{
		Name: "cron", Group: GroupPeriodic, Example: "cron.yaml", DefaultNote: "cron.yaml in the app's folder, where there is one",
		Help:  "The file of periodic tasks.",
		value: checked(func(s *Settings) *string { return &s.Cron }, "a path of a file", filePath),
	}, {
		Name: "registry-table", Group: GroupPeriodic, Example: "jobs-registry", DaemonKey: "registry_table", DefaultNote: "none: the registry is embedded",
		Help:  "The DynamoDB table by which instances on Amazon SQS agree on who enqueues periodic tasks.",
		value: checked(func(s *Settings) *string { return &s.RegistryTable }, "3 to 255 letters, digits, \"_\", \"-\" and \".\"", tableName),
	}, {
		Name: "registry-create", Group: GroupPeriodic, Default: "false",
		Help:  "Create the registry table when it is missing.",
		value: onOff(func(s *Settings) *bool { return &s.RegistryCreate }),
	}, {
		Name: "leader", Group: GroupPeriodic, Default: LeaderElect,
		Help:  "Who enqueues periodic tasks: the instance that is elected, or this one, declared the only one.",
		value: choice(func(s *Settings) *string { return &s.Leader }, LeaderElect, LeaderLocal),
	}, {
		Name: "lease", Group: GroupPeriodic, Default: "15s",
		Help:  "How long a leader that is not heard of is waited for before another one is elected; the same on all instances.",
		value: duration(func(s *Settings) *time.Duration { return &s.Lease }, 5*time.Second, 300*time.Second),
	}, {
		Name: "periodic-trust", Group: GroupPeriodic, Default: TrustAll,
		Help:  "Which messages are delivered as periodic tasks: all that have a task's attributes, or only those whose run is in the registry.",
		value: choice(func(s *Settings) *string { return &s.PeriodicTrust }, TrustAll, TrustRegistry),
	}}
}

func consoleOptions() []Option {
	return []Option{{
		Name: "console", Group: GroupConsole, Default: "127.0.0.1:9325", Serve: true,
		Help:  "Where health and the API are served that tendril's other commands use; port 0 takes any free one, off is none.",
		value: checked(func(s *Settings) *string { return &s.Console }, allowedAddress+", or off", consoleAddress),
	}}
}

func outputOptions() []Option {
	return []Option{{
		Name: "quiet", Group: GroupOutput, DaemonKey: "quiet", Default: "false", Serve: true,
		Help:  "Print warnings and errors only.",
		value: onOff(func(s *Settings) *bool { return &s.Quiet }),
	}, {
		Name: "verbose", Group: GroupOutput, DaemonKey: "verbose", Default: "false", Serve: true,
		Help:  "Print more detail.",
		value: onOff(func(s *Settings) *bool { return &s.Verbose }),
	}, {
		Name: "log-format", Group: GroupOutput, Default: "auto", Serve: true,
		Help:  "How lines are printed; auto is text on a terminal and JSON elsewhere.",
		value: choice(func(s *Settings) *string { return &s.LogFormat }, "auto", "text", "json"),
	}, {
		Name: "config", Group: GroupOutput, Example: "tendril.yaml", Serve: true,
		DefaultNote: "tendril.yaml, else $XDG_CONFIG_HOME/tendril/config.yaml, else /etc/tendril/config.yaml",
		Help:        "The settings file, tendril's own or one of aws-sqsd.",
		value:       checked(func(s *Settings) *string { return &s.ConfigFile }, "a path of a file", filePath),
	}}
}

func stopOptions() []Option {
	return []Option{{
		Name: "shutdown-timeout", Group: GroupStop, DaemonKey: "drain_timeout", Default: "30s", Serve: true,
		Help:  "How long the work in flight may take after TERM or INT; what is not done by then goes back to its queue.",
		value: duration(func(s *Settings) *time.Duration { return &s.ShutdownTimeout }, 0, twelveHours),
	}}
}
