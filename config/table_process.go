package config

import (
	"time"

	"tendril/bundle"
)

func appOptions() []Option {
	return []Option{{
		Name: "port", Group: GroupApp, Default: "5000", OtherVariables: []string{"PORT"}, properties: []string{"PORT"},
		Help:  "Port that the app is told to listen on, as its PORT.",
		value: integer(func(s *Settings) *int { return &s.Port }, 1, 65535),
	}, {
		Name: "healthcheck", Group: GroupApp, Example: "HTTP:5000/health", DaemonKey: "healthcheck",
		DefaultNote: "TCP on the app's port",
		Help:        "What must answer before messages are received: TCP:PORT or HTTP:PORT/PATH.",
		Detail:      "The port stands for that of each replica.",
		value:       checked(func(s *Settings) *string { return &s.Healthcheck }, "TCP:PORT or HTTP:PORT/PATH", healthcheck),
	}, {
		Name: "app-ready-timeout", Group: GroupApp, Default: "300s",
		Help:   "Time that the app may take to be ready at the start; 0 is for ever.",
		Detail: "After it tendril gives up.",
		value:  duration(func(s *Settings) *time.Duration { return &s.AppReadyTimeout }, 0, twelveHours),
	}, {
		Name: "app-grace", Group: GroupApp, Default: "10s", OtherVariables: []string{"WORKER_SHUTDOWN_DELAY"},
		properties: []string{"WORKER_SHUTDOWN_DELAY"},
		Help:       "Time that the app may take to end after TERM before it gets KILL.",
		Detail:     "KILL goes to its whole process group.",
		value:      duration(func(s *Settings) *time.Duration { return &s.AppGrace }, 0, twelveHours),
	}, {
		Name: "restart-limit", Group: GroupApp, Default: "10",
		Help:   "Maximum restarts of a process within restart-window; 0 never restarts.",
		Detail: "After one more failure tendril gives the process up.",
		value:  integer(func(s *Settings) *int { return &s.RestartLimit }, 0, 1000),
	}, {
		Name: "restart-window", Group: GroupApp, Default: "300s",
		Help:  "Time over which restarts are counted.",
		value: duration(func(s *Settings) *time.Duration { return &s.RestartWindow }, time.Second, 24*time.Hour),
	}, {
		Name: "deploy-timeout", Group: GroupApp, Default: "300s",
		Help:   "Time that a new version of the app may take to be ready.",
		Detail: "When it takes longer, the old version stays.",
		value:  duration(func(s *Settings) *time.Duration { return &s.DeployTimeout }, time.Second, twelveHours),
	}, {
		Name: "processes-min", Group: GroupApp, Default: "1",
		Help:  "Minimum processes of the app, which share its messages.",
		value: integer(func(s *Settings) *int { return &s.ProcessesMin }, 1, maxProcesses),
	}, {
		Name: "processes-max", Group: GroupApp, Default: "1", DefaultNote: "or processes-min",
		Help:  "Maximum processes of the app.",
		value: integer(func(s *Settings) *int { return &s.ProcessesMax }, 1, maxProcesses),
	}}
}

// ownAppOptions say as whom and how the app is run.
func ownAppOptions() []Option {
	return []Option{{
		Name: "app-user", Group: GroupApp, Example: "webapp",
		DefaultNote: "the user that tendril runs as",
		Help:        "User that the app's processes run as; changing it needs root.",
		value: checked(func(s *Settings) *string {
			return &s.AppUser
		}, "the name or number of a user, or UID:GID", userName),
	}, {
		Name: "allow-root", Group: GroupApp, Default: "false",
		Help:  "Allow the app to run as root outside of a container.",
		value: onOff(func(s *Settings) *bool { return &s.AllowRoot }),
	}, {
		Name: "app-limit", Group: GroupApp, Example: "nofile=1024", DefaultNote: "none", list: true,
		Help:   "Limits of each of the app's processes, as NAME=VALUE of ulimit.",
		Detail: "Values are bytes, seconds or numbers.",
		value: list(func(s *Settings) *[]string {
			return &s.AppLimit
		}, "NAME=VALUE or NAME=unlimited with commas between, or off; NAME is "+orList(resources()), processLimit),
	}, {
		Name: "app-log-dir", Group: GroupApp, Example: "/var/log/tendril", DefaultNote: "off: the app's output is printed",
		Help:  "Folder of rotated files that also get the app's output.",
		value: checked(func(s *Settings) *string { return &s.AppLogDir }, "a path of a folder, or off", appLogFolder),
	}, {
		Name: "app-log-rate", Group: GroupApp, Default: "1000",
		Help:   "Maximum lines of output per second and process, over five seconds.",
		Detail: "How many were left out is printed too.",
		value:  integer(func(s *Settings) *int { return &s.AppLogRate }, 1, 1_000_000),
	}, {
		Name: "pid-file", Group: GroupApp, Example: "/run/tendril/app.pid", DefaultNote: "none",
		Help:  "File that holds the process id of the app's main process while it runs.",
		value: checked(func(s *Settings) *string { return &s.PIDFile }, "a path of a file", filePath),
	}}
}

func embeddedOptions() []Option {
	return []Option{{
		Name: "data-dir", Group: GroupEmbedded, Example: "/var/lib/tendril", Serve: true,
		DefaultNote: "$STATE_DIRECTORY (of several, the one called tendril), else $XDG_STATE_HOME/tendril, else " +
			"~/.local/state/tendril, for root /var/lib/tendril",
		Help:  "Folder of the embedded queues; one process at a time uses it.",
		value: checked(func(s *Settings) *string { return &s.DataDir }, "a path of a folder", folderPath),
	}, {
		Name: "listen", Group: GroupEmbedded, Default: "127.0.0.1:9324", Serve: true,
		Help:  "Address of the SQS protocol for the embedded queues; port 0 takes any free one.",
		value: checked(func(s *Settings) *string { return &s.Listen }, allowedAddress, loopbackAddress),
	}, {
		Name: "account-id", Group: GroupEmbedded, Default: "000000000000", Serve: true,
		Help:  "AWS account in the URLs and ARNs of the embedded queues.",
		value: checked(func(s *Settings) *string { return &s.AccountID }, "12 digits", accountID),
	}}
}

func periodicOptions() []Option {
	return []Option{{
		Name: "cron", Group: GroupPeriodic, Example: "cron.yaml",
		DefaultNote: "cron.yaml in the app's folder, where there is one",
		Help:        "File of periodic tasks.",
		value:       checked(func(s *Settings) *string { return &s.Cron }, "a path of a file", filePath),
	}, {
		Name: "registry-table", Group: GroupPeriodic, Example: "jobs-registry", DaemonKey: "registry_table",
		DefaultNote: "none: the registry is embedded",
		Help:        "DynamoDB table in which instances elect who enqueues periodic tasks.",
		Detail:      "It is for queues on Amazon SQS.",
		value: checked(func(s *Settings) *string {
			return &s.RegistryTable
		}, "3 to 255 letters, digits, \"_\", \"-\" and \".\"", tableName),
	}, {
		Name: "registry-create", Group: GroupPeriodic, Default: "false",
		Help:  "Create the registry table when it is missing.",
		value: onOff(func(s *Settings) *bool { return &s.RegistryCreate }),
	}, {
		Name: "leader", Group: GroupPeriodic, Default: LeaderElect,
		Help:  "Who enqueues periodic tasks: the elected instance, or this one alone.",
		value: choice(func(s *Settings) *string { return &s.Leader }, LeaderElect, LeaderLocal),
	}, {
		Name: "lease", Group: GroupPeriodic, Default: "15s",
		Help:   "Time that a silent leader is waited for before another one is elected.",
		Detail: "It must be the same on all instances.",
		value:  duration(func(s *Settings) *time.Duration { return &s.Lease }, 5*time.Second, 300*time.Second),
	}, {
		Name: "periodic-trust", Group: GroupPeriodic, Default: TrustAll,
		Help:   "Which messages count as periodic tasks: all with a task's attributes, or registered.",
		Detail: "With registry only those count whose run is in the registry.",
		value:  choice(func(s *Settings) *string { return &s.PeriodicTrust }, TrustAll, TrustRegistry),
	}}
}

func consoleOptions() []Option {
	return []Option{{
		Name: "console", Group: GroupConsole, Default: "127.0.0.1:9325", Serve: true,
		Help: "Address of health, metrics and the API; port 0 takes any free one, off disables it.",
		Detail: "tendril's other commands use it. Another address than loopback needs TLS or console-insecure; " +
			"whoever reaches it sees counts and health, while acts and message bodies ask for the token.",
		value: checked(func(s *Settings) *string {
			return &s.Console
		}, "an address and a port, such as 127.0.0.1:9325, or off", consoleAddress),
	}, {
		Name: "console-tls-cert", Group: GroupConsole, Serve: true, Example: "/etc/tendril/tls.crt",
		DefaultNote: "none: plain HTTP",
		Help:        "Certificate of the console in PEM, with its chain, which makes it HTTPS.",
		Detail:      "The file is read again when it changes.",
		value:       checked(func(s *Settings) *string { return &s.ConsoleTLSCert }, "a path of a file", filePath),
	}, {
		Name: "console-tls-key", Group: GroupConsole, Serve: true, Example: "/etc/tendril/tls.key", DefaultNote: "none",
		Help:   "Private key of console-tls-cert in PEM.",
		Detail: "The file is read again when it changes.",
		value:  checked(func(s *Settings) *string { return &s.ConsoleTLSKey }, "a path of a file", filePath),
	}, {
		Name: "console-insecure", Group: GroupConsole, Serve: true, Default: "false",
		Help:   "Serve the console in clear text on another address than loopback.",
		Detail: "Whoever can read that network's traffic can read the token and deploy.",
		value:  onOff(func(s *Settings) *bool { return &s.ConsoleInsecure }),
	}, {
		Name: "console-hosts", Group: GroupConsole, Serve: true, list: true, Example: "tendril,worker.internal",
		DefaultNote: "none",
		Help:        "Further host names by which the console may be addressed, such as a scraper's.",
		Detail: "Localhost and its own addresses always count. Requests to other names are refused, since a web " +
			"page can have any name point here.",
		value: list(func(s *Settings) *[]string {
			return &s.ConsoleHosts
		}, "host names or addresses without ports, with commas between, or off", hostName),
	}, {
		Name: "health-ignore-client-errors", Group: GroupConsole, Namespace: bundle.NamespaceHealth,
		Beanstalk: "ConfigDocument", Default: "false",
		Help:   "Judge health without the deliveries that the app answers with 4xx.",
		Detail: "In a ConfigDocument it is the rule ApplicationRequests4xx.",
		value:  onOff(func(s *Settings) *bool { return &s.HealthIgnoreClientErrors }),
	}, {
		Name: "console-token", Group: GroupConsole, Serve: true, secret: true, Example: "4f1b0c2a9d8e7f60",
		DefaultNote: "a new one at each start, in the data directory",
		Help:        "Token that acts and message bodies on the console ask for.",
		Detail:      "Better set as a variable than as a flag, which other users can see.",
		value: checked(func(s *Settings) *string {
			return &s.ConsoleToken
		}, "16 to 256 printable ASCII characters without blanks", consoleToken),
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
		Name: "log-format", Group: GroupOutput, Default: LogAuto, Serve: true,
		Help:   "How lines are printed: text, json or sqsd.",
		Detail: "Auto is text on a terminal and JSON elsewhere; sqsd has a line per delivery as aws-sqsd writes it.",
		value:  choice(func(s *Settings) *string { return &s.LogFormat }, LogAuto, LogText, LogJSON, LogSQSD),
	}, {
		Name: "log-sample", Group: GroupOutput, Default: "100",
		Help:   "Maximum lines about deliveries per second; 0 is all.",
		Detail: "How many were left out is printed too.",
		value:  integer(func(s *Settings) *int { return &s.LogSample }, 0, 100_000),
	}, {
		Name: "config", Group: GroupOutput, Example: "tendril.yaml", Serve: true,
		DefaultNote: "tendril.yaml, else $XDG_CONFIG_HOME/tendril/config.yaml, else /etc/tendril/config.yaml",
		Help:        "Settings file, tendril's own or one of aws-sqsd.",
		value:       checked(func(s *Settings) *string { return &s.ConfigFile }, "a path of a file", filePath),
	}}
}

func stopOptions() []Option {
	return []Option{{
		Name: "shutdown-timeout", Group: GroupStop, DaemonKey: "drain_timeout", Default: "30s", Serve: true,
		Help:   "Time that the work in flight may take after TERM or INT.",
		Detail: "What is not done by then goes back to its queue.",
		value:  duration(func(s *Settings) *time.Duration { return &s.ShutdownTimeout }, 0, twelveHours),
	}}
}
