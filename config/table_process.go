package config

import (
	"time"

	"tendril/bundle"
)

func appOptions() []Option {
	return []Option{{
		Name: "port", Default: "5000", OtherVariables: []string{"PORT"}, properties: []string{"PORT"},
		Help: "Port that the app is told to listen on, as its PORT.", value: integer(1, 65535),
	}, {
		Name: "healthcheck", Example: "HTTP:5000/health", DaemonKey: "healthcheck",
		DefaultNote: "TCP on the app's port",
		Help:        "What must answer before messages are received: TCP:PORT or HTTP:PORT/PATH.",
		Detail:      "The port stands for that of each replica.", value: checked("TCP:PORT or HTTP:PORT/PATH", healthcheck),
	}, {
		Name: "app-ready-timeout", Default: "300s",
		Help:   "Time that the app may take to be ready at the start; 0 is for ever.",
		Detail: "After it tendril gives up.", value: duration(0, twelveHours),
	}, {
		Name: "app-grace", Default: "10s", OtherVariables: []string{"WORKER_SHUTDOWN_DELAY"},
		properties: []string{"WORKER_SHUTDOWN_DELAY"},
		Help:       "Time that the app may take to end after TERM before it gets KILL.",
		Detail:     "KILL goes to its whole process group.", value: duration(0, twelveHours),
	}, {
		Name: "restart-limit", Default: "10",
		Help:   "Maximum restarts of a process within restart-window; 0 never restarts.",
		Detail: "After one more failure tendril gives the process up.", value: integer(0, 1000),
	}, {
		Name: "restart-window", Default: "300s",
		Help: "Time over which restarts are counted.", value: duration(time.Second, 24*time.Hour),
	}, {
		Name: "deploy-timeout", Default: "300s",
		Help:   "Time that a new version of the app may take to be ready.",
		Detail: "When it takes longer, the old version stays.", value: duration(time.Second, twelveHours),
	}, {
		Name: "processes-min", Default: "1",
		Help: "Minimum processes of the app, which share its messages.", value: integer(1, maxProcesses),
	}, {
		Name: "processes-max", Default: "1", DefaultNote: "or processes-min",
		Help: "Maximum processes of the app.", value: integer(1, maxProcesses),
	}}
}

// ownAppOptions say as whom and how the app is run.
func ownAppOptions() []Option {
	return []Option{{
		Name: "app-user", Example: "webapp",
		DefaultNote: "the user that tendril runs as",
		Help:        "User that the app's processes run as; changing it needs root.",
		value:       checked("the name or number of a user, or UID:GID", userName),
	}, {
		Name: "allow-root", Default: "false",
		Help: "Allow the app to run as root outside of a container.", value: onOff(),
	}, {
		Name: "app-limit", Example: "nofile=1024", DefaultNote: "none", list: true,
		Help:   "Limits of each of the app's processes, as NAME=VALUE of ulimit.",
		Detail: "Values are bytes, seconds or numbers.",
		value:  list("NAME=VALUE or NAME=unlimited with commas between, or off; NAME is "+orList(resources()), processLimit),
	}, {
		Name: "app-log-dir", Example: "/var/log/tendril", DefaultNote: "off: the app's output is printed",
		Help:  "Folder of rotated files that also get the app's output.",
		value: checked("a path of a folder, or off", appLogFolder),
	}, {
		Name: "app-log-rate", Default: "1000",
		Help:   "Maximum lines of output per second and process, over five seconds.",
		Detail: "How many were left out is printed too.", value: integer(1, 1_000_000),
	}, {
		Name: "pid-file", Example: "/run/tendril/app.pid", DefaultNote: "none",
		Help:  "File that holds the process id of the app's main process while it runs.",
		value: checked("a path of a file", filePath),
	}}
}

func embeddedOptions() []Option {
	return []Option{{
		Name: "data-dir", Example: "/var/lib/tendril", Serve: true,
		DefaultNote: "$STATE_DIRECTORY (of several, the one called tendril), else $XDG_STATE_HOME/tendril, else " +
			"~/.local/state/tendril, for root /var/lib/tendril",
		Help:  "Folder of the embedded queues; one process at a time uses it.",
		value: checked("a path of a folder", folderPath),
	}, {
		Name: "listen", Default: "127.0.0.1:9324", Serve: true,
		Help:  "Address of the SQS protocol for the embedded queues; port 0 takes any free one.",
		value: checked(allowedAddress, loopbackAddress),
	}, {
		Name: "account-id", Default: "000000000000", Serve: true,
		Help: "AWS account in the URLs and ARNs of the embedded queues.", value: checked("12 digits", accountID),
	}}
}

func periodicOptions() []Option {
	return []Option{{
		Name: "cron", Example: "cron.yaml",
		DefaultNote: "cron.yaml in the app's folder, where there is one",
		Help:        "File of periodic tasks.", value: checked("a path of a file", filePath),
	}, {
		Name: "registry-table", Example: "jobs-registry", DaemonKey: "registry_table",
		DefaultNote: "none: the registry is embedded",
		Help:        "DynamoDB table in which instances elect who enqueues periodic tasks.",
		Detail:      "It is for queues on Amazon SQS.",
		value:       checked("3 to 255 letters, digits, \"_\", \"-\" and \".\"", tableName),
	}, {
		Name: "registry-create", Default: "false",
		Help: "Create the registry table when it is missing.", value: onOff(),
	}, {
		Name: "leader", Default: leaderElect,
		Help:  "Who enqueues periodic tasks: the elected instance, or this one alone.",
		value: choice(leaderElect, LeaderLocal),
	}, {
		Name: "lease", Default: "15s",
		Help:   "Time that a silent leader is waited for before another one is elected.",
		Detail: "It must be the same on all instances.", value: duration(5*time.Second, 300*time.Second),
	}, {
		Name: "periodic-trust", Default: trustAll,
		Help:   "Which messages count as periodic tasks: all with a task's attributes, or registered.",
		Detail: "With registry only those count whose run is in the registry.", value: choice(trustAll, TrustRegistry),
	}}
}

func consoleOptions() []Option {
	return []Option{{
		Name: "console", Default: "127.0.0.1:9325", Serve: true,
		Help: "Address of health, metrics and the API; port 0 takes any free one, off disables it.",
		Detail: "tendril's other commands use it. Another address than loopback needs TLS or console-insecure; " +
			"whoever reaches it sees counts and health, while acts and message bodies ask for the token.",
		value: checked("an address and a port, such as 127.0.0.1:9325, or off", consoleAddress),
	}, {
		Name: "console-tls-cert", Serve: true, Example: "/etc/tendril/tls.crt",
		DefaultNote: "none: plain HTTP",
		Help:        "Certificate of the console in PEM, with its chain, which makes it HTTPS.",
		Detail:      "The file is read again when it changes.", value: checked("a path of a file", filePath),
	}, {
		Name: "console-tls-key", Serve: true, Example: "/etc/tendril/tls.key", DefaultNote: "none",
		Help:   "Private key of console-tls-cert in PEM.",
		Detail: "The file is read again when it changes.", value: checked("a path of a file", filePath),
	}, {
		Name: "console-insecure", Serve: true, Default: "false",
		Help:   "Serve the console in clear text on another address than loopback.",
		Detail: "Whoever can read that network's traffic can read the token and deploy.", value: onOff(),
	}, {
		Name: "console-hosts", Serve: true, list: true, Example: "tendril,worker.internal",
		DefaultNote: "none",
		Help:        "Further host names by which the console may be addressed, such as a scraper's.",
		Detail: "Localhost and its own addresses always count. Requests to other names are refused, since a web " +
			"page can have any name point here.",
		value: list("host names or addresses without ports, with commas between, or off", hostName),
	}, {
		Name: "health-ignore-client-errors", Namespace: bundle.NamespaceHealth,
		Beanstalk: "ConfigDocument", Default: "false",
		Help:   "Judge health without the deliveries that the app answers with 4xx.",
		Detail: "In a ConfigDocument it is the rule ApplicationRequests4xx.", value: onOff(),
	}, {
		Name: "console-token", Serve: true, secret: true, Example: "4f1b0c2a9d8e7f60",
		DefaultNote: "a new one at each start, in the data directory",
		Help:        "Token that acts and message bodies on the console ask for.",
		Detail:      "Better set as a variable than as a flag, which other users can see.",
		value:       checked("16 to 256 printable ASCII characters without blanks", consoleToken),
	}}
}

func outputOptions() []Option {
	return []Option{{
		Name: "quiet", DaemonKey: "quiet", Default: "false", Serve: true,
		Help: "Print warnings and errors only.", value: onOff(),
	}, {
		Name: "verbose", DaemonKey: "verbose", Default: "false", Serve: true,
		Help: "Print more detail.", value: onOff(),
	}, {
		Name: "log-format", Default: LogAuto, Serve: true,
		Help:   "How lines are printed: text, json or sqsd.",
		Detail: "Auto is text on a terminal and JSON elsewhere; sqsd has a line per delivery as aws-sqsd writes it.",
		value:  choice(LogAuto, LogText, logJSON, LogSQSD),
	}, {
		Name: "log-sample", Default: "100",
		Help:   "Maximum lines about deliveries per second; 0 is all.",
		Detail: "How many were left out is printed too.", value: integer(0, 100_000),
	}, {
		Name: "config", Example: "tendril.yaml", Serve: true,
		DefaultNote: "tendril.yaml, else $XDG_CONFIG_HOME/tendril/config.yaml, else /etc/tendril/config.yaml",
		Help:        "Settings file, tendril's own or one of aws-sqsd.", value: checked("a path of a file", filePath),
	}}
}

func stopOptions() []Option {
	return []Option{{
		Name: "shutdown-timeout", DaemonKey: "drain_timeout", Default: "30s", Serve: true,
		Help:   "Time that the work in flight may take after TERM or INT.",
		Detail: "What is not done by then goes back to its queue.", value: duration(0, twelveHours),
	}}
}
