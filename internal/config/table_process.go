package config

import (
	"time"

	"tendril/internal/bundle"
)

func appOptions(s *Settings) []Option {
	return []Option{{
		Name: "port", essential: true, Default: defaultAppPort, OtherVariables: []string{"PORT"}, properties: []string{"PORT"},
		Help:   "Port given to the app as PORT, on which it must listen.",
		Detail: "If the default is in use, the next free port is used.",
		value:  appPort(&s.Port),
	}, {
		Name: "healthcheck", AppRestart: true, Example: "HTTP:5000/health", DaemonKey: "healthcheck",
		DefaultNote: "TCP on the app's port",
		Help:        "Health check that must pass before messages are received: TCP:PORT or HTTP:PORT/PATH.",
		Detail:      "Each replica is checked on its own port.",
		value: checked(&s.Healthcheck, "TCP:PORT or "+
			"HTTP:PORT/PATH", healthcheck),
	}, {
		Name: "app-ready-timeout", Default: "300s",
		Help:   "Maximum time for the app to become ready at startup; 0 disables it.",
		Detail: "Then tendril exits.",
		value:  duration(&s.AppReadyTimeout, 0, twelveHours),
	}, {
		Name: "app-grace", AppRestart: true, Default: "10s", OtherVariables: []string{shutdownDelay},
		properties: []string{shutdownDelay},
		Help:       "Time between TERM and KILL when the app is stopped.",
		Detail:     "Signals go to all processes of the app. A WORKER_SHUTDOWN_DELAY below 10 seconds counts as 10.",
		value:      duration(&s.AppGrace, 0, twelveHours),
	}, {
		Name: "restart-limit", AppRestart: true, Default: "10",
		Help:   "Maximum restarts of a process within restart-window; 0 means none.",
		Detail: "Then it counts as failed.",
		value:  integer(&s.RestartLimit, 0, 1000),
	}, {
		Name: "restart-window", AppRestart: true, Default: "300s",
		Help:  "Period over which restarts are counted.",
		value: duration(&s.RestartWindow, time.Second, 24*time.Hour),
	}, {
		Name: "deploy-timeout", AppRestart: true, Default: "300s",
		Help:   "Maximum time for a new version of the app to become ready.",
		Detail: "Then the deployment is rolled back.",
		value:  duration(&s.DeployTimeout, time.Second, twelveHours),
	}, {
		Name: "processes-min", Default: "1",
		Help:  "Minimum number of app processes, which share the messages.",
		value: integer(&s.ProcessesMin, 1, maxProcesses),
	}, {
		Name: "processes-max", Default: "1", DefaultNote: "or processes-min",
		Help:  "Maximum number of app processes.",
		value: integer(&s.ProcessesMax, 1, maxProcesses),
	}}
}

const shutdownDelay = "WORKER_SHUTDOWN_DELAY"

func ownAppOptions(s *Settings) []Option {
	return []Option{{
		Name: "app-user", Example: "webapp",
		DefaultNote: "the user running tendril",
		Help:        "User that runs the app's processes; only root can change it.",
		value:       checked(&s.AppUser, "the name or number of a user, or UID:GID", userName),
	}, {
		Name: "allow-root", Default: "false",
		Help:  "Allow the app to run as root outside a container.",
		value: onOff(&s.AllowRoot),
	}, {
		Name: "machine-sections", Default: machineIgnore,
		Help:   "Apply sections of .ebextensions that change the machine, as root.",
		Detail: "They are packages, groups, users, sources, files, commands and services; they are never undone.",
		value:  choice(&s.MachineSections, machineIgnore, MachineApply),
	}, {
		Name: "app-limit", AppRestart: true, Example: "nofile=1024", list: true,
		Help:   "Limits of each of the app's processes, as NAME=VALUE of ulimit.",
		Detail: "Values are bytes, seconds or numbers.",
		value:  list(&s.AppLimit, "NAME=VALUE or NAME=unlimited, comma-separated, or off; NAME is "+orList(resources()), processLimit),
	}, {
		Name: "app-log-dir", Example: "/var/log/tendril", DefaultNote: "off: the app's output is printed",
		Help:  "Folder for rotated files with a copy of the app's output.",
		value: checked(&s.AppLogDir, "a folder path, or off", appLogFolder),
	}, {
		Name: "app-log-rate", AppRestart: true, Default: "1000",
		Help:   "Maximum output lines per second and process, averaged over five seconds.",
		Detail: "Dropped lines are counted in the log.",
		value:  integer(&s.AppLogRate, 1, 1_000_000),
	}, {
		Name: "pid-file", Example: "/run/tendril/app.pid",
		Help:  "File with the process ID of the app's main process while it runs.",
		value: file(&s.PIDFile),
	}}
}

func embeddedOptions(s *Settings) []Option {
	return []Option{{
		Name: "data-dir", essential: true, Example: "/var/lib/tendril", Serve: true,
		DefaultNote: "the environment's folder",
		Help:        "Folder of the embedded queues; only one process at a time can use it.",
		Detail: "By default environments/NAME in $STATE_DIRECTORY (if several, the one called tendril), else in " +
			"$XDG_STATE_HOME/tendril, else ~/.local/state/tendril, for root /var/lib/tendril.",
		value: checked(&s.DataDir, "a folder path", folderPath),
	}, {
		Name: "listen", essential: true, Default: "127.0.0.1:9324", Serve: true,
		Help: "Address of the SQS endpoint of the embedded queues; port 0 selects a free one.",
		Detail: "If the default is in use, the next free port is used. An address other than loopback needs " +
			"credentials. unix:PATH is a socket for the owner and the group of its folder.",
		value: checked(&s.Listen, allowedAddresses, endpointAddresses),
	}, {
		Name: "credentials", Serve: true, Example: "/etc/tendril/credentials.json", DefaultNote: "none: callers on this " +
			"machine are trusted",
		Help:   "File of the key pairs that may call the SQS endpoint.",
		Detail: "Every request then needs a valid signature. 'tendril credentials create' creates the file.",
		value:  file(&s.Credentials),
	}, {
		Name: "tls-cert", Serve: true, Example: "/etc/tendril/queue.crt", DefaultNote: "none: plain HTTP",
		Help:  "PEM certificate of the SQS endpoint, with its chain; enables HTTPS.",
		value: file(&s.TLSCert),
	}, {
		Name: "tls-key", Serve: true, Example: "/etc/tendril/queue.key",
		Help:  "PEM private key for tls-cert.",
		value: file(&s.TLSKey),
	}, {
		Name: "account-id", Default: "000000000000", Serve: true,
		Help:  "AWS account in the URLs and ARNs of the embedded queues.",
		value: checked(&s.AccountID, "12 digits", accountID),
	}}
}

func periodicOptions(s *Settings) []Option {
	return []Option{{
		Name: "cron", Example: "cron.yaml",
		DefaultNote: "cron.yaml in the app's folder, if present",
		Help:        "File of periodic tasks.",
		value:       file(&s.Cron),
	}, {
		Name: "leader", Default: leaderElect,
		Help:  "Instance that enqueues periodic tasks: the elected leader, or only this one.",
		value: choice(&s.Leader, leaderElect, LeaderLocal),
	}, {
		Name: "periodic-trust", Default: trustAll,
		Help:  "Messages treated as periodic tasks: all with task attributes, or only registered runs.",
		value: choice(&s.PeriodicTrust, trustAll, TrustRegistry),
	}}
}

func fleetOptions(s *Settings) []Option {
	return []Option{{
		Name: "fleet-key", secretFile: &s.FleetKeyFile,
		Help: "Key that signs changes for all instances of the environment, such as pauses.",
		Detail: "Give every instance the same key. To replace it, see docs/fleet.md. Without a key, changes apply to one " +
			"instance.",
		value: sharedSecret(&s.FleetKey, fleetKey),
	}, {
		Name: "registry-table", Example: "jobs-registry", DaemonKey: "registry_table",
		DefaultNote: "none: the registry is embedded",
		Help:        "DynamoDB table for electing the leader of periodic tasks.",
		Detail:      "Use it with queues on Amazon SQS.",
		value:       checked(&s.RegistryTable, "3 to 255 letters, digits, \"_\", \"-\" and \".\"", tableName),
	}, {
		Name: "registry-create", Default: "false",
		Help:  "Create the registry table if it is missing.",
		value: onOff(&s.RegistryCreate),
	}, {
		Name: "registry-token", Serve: true, secretFile: &s.RegistryTokenFile,
		DefaultNote: "generated in the data directory of the embedded queue",
		Help:        "Registry token of an embedded queue that several instances share.",
		Detail:      "Environments of the same user on the same machine find it. Do not use a flag: other users can see it.",
		value:       sharedSecret(&s.RegistryToken, token),
	}, {
		Name: "registry-insecure", Default: "false",
		Help: "Send the registry token to a server that cannot prove that it knows it.",
		Detail: "Any program that takes over the port of a stopped server then gets the token. Needed for older " +
			"servers, and for forwarded ports with another number.",
		value: onOff(&s.RegistryInsecure),
	}, {
		Name: "lease", Default: "15s",
		Help:   "Time without a sign of the leader before another instance is elected.",
		Detail: "It must be the same on all instances.",
		value:  duration(&s.Lease, 5*time.Second, 300*time.Second),
	}, {
		Name: "registry-lost-after", Live: true, Default: "0s", DefaultNote: "off",
		Help: "Stop receiving after the shared registry has not responded for this long; 0 never stops.",
		Detail: "Receiving resumes once the registry responds and its pauses and version are known. Without this, the last known " +
			"ones apply.",
		value: duration(&s.RegistryLostAfter, 0, twelveHours),
	}, {
		Name: "versions", Example: "s3://my-archives/orders", DefaultNote: "the tendril that serves the queue",
		Help: "Shared location of archives deployed to all instances: a folder or s3://BUCKET/PREFIX.",
		Detail: "Only with a fleet key. With --registry-table and without this, deployments apply to one instance. Archives " +
			"that can no longer be restored are deleted.",
		value: checked(&s.Versions, "a folder path, or s3://BUCKET/PREFIX", archiveLocation),
	}}
}

func rolloutOptions(s *Settings) []Option {
	return []Option{{
		Name: "rollout-policy", Live: true, Beanstalk: "DeploymentPolicy", Default: RolloutAllAtOnce,
		Help: "How a deployment reaches all instances: AllAtOnce, or Rolling in batches.",
		value: anyCase(&s.RolloutPolicy, "AllAtOnce or Rolling; other Elastic Beanstalk policies are not supported",
			[]string{RolloutAllAtOnce, RolloutRolling}, foreignPolicies()...),
	}, {
		Name: "rollout-batch-size-type", Live: true, Beanstalk: "BatchSizeType", Default: RolloutPercentage,
		Help:  "Unit of rollout-batch-size.",
		value: choice(&s.RolloutBatchSizeType, RolloutPercentage, rolloutFixed),
	}, {
		Name: "rollout-batch-size", Live: true, Beanstalk: "BatchSize", Default: "100",
		Help:   "Batch size of a rolling deployment, as a percentage or a number of instances.",
		Detail: "A percentage is rounded down, and a batch has at least one instance.",
		value:  integer(&s.RolloutBatchSize, 1, maxSize),
	}, {
		Name: "rollout-timeout", Live: true, Beanstalk: "Timeout", Default: "600s",
		Help:   "Maximum time until a batch runs a new version and is healthy.",
		Detail: "Then the deployment is rolled back on all instances.",
		value:  duration(&s.RolloutTimeout, time.Second, time.Hour),
	}, {
		Name: "rollout-ignore-health", Live: true, Beanstalk: "IgnoreHealthCheck", Default: "false",
		Help:  "Continue a rolling deployment although instances of a batch are unhealthy.",
		value: onOff(&s.RolloutIgnoreHealth),
	}}
}

func consoleOptions(s *Settings) []Option {
	return []Option{{
		Name: "console", essential: true, Default: "127.0.0.1:9325", Serve: true,
		Help: "Address of health, metrics and the API; port 0 selects a free one, off disables it.",
		Detail: "If the default is in use, the next free port is used. An address other than loopback needs TLS or " +
			"console-insecure. Counts and health are public; actions and message bodies require the token.",
		value: checked(&s.Console, "an address and a port, such as 127.0.0.1:9325, or off", consoleAddress),
	}, {
		Name: "console-tls-cert", Serve: true, Example: "/etc/tendril/tls.crt",
		DefaultNote: "none: plain HTTP",
		Help:        "PEM certificate of the console, with its chain; enables HTTPS.",
		value:       file(&s.ConsoleTLSCert),
	}, {
		Name: "console-tls-key", Serve: true, Example: "/etc/tendril/tls.key",
		Help:  "PEM private key for console-tls-cert.",
		value: file(&s.ConsoleTLSKey),
	}, {
		Name: "console-auth", Serve: true, Default: consoleAuthToken,
		Help: "Access to the console on loopback: with a token or link, or none for everyone.",
		Detail: "With none, all users and programs on this machine have all scopes: read, act and deploy. " +
			"'tendril open' prints a link.",
		value: choice(&s.ConsoleAuth, consoleAuthToken, ConsoleAuthNone),
	}, {
		Name: "console-read-only", Serve: true, Default: "false",
		Help:   "Reject every action on the console and by commands that use it.",
		Detail: "Signals and login links from 'tendril open' still work.",
		value:  onOff(&s.ConsoleReadOnly),
	}, {
		Name: "console-bodies", Serve: true, Default: consoleBodiesShown,
		Help:   "Show message bodies to authorized callers, or hide them until requested.",
		Detail: "With hidden, they need body=1 in the request. Reads of bodies are always logged.",
		value:  choice(&s.ConsoleBodies, consoleBodiesShown, ConsoleBodiesHidden),
	}, {
		Name: "console-trusted-proxy", Serve: true, list: true, Example: "10.0.0.0/24",
		Help: "Networks of the proxies that serve the console over HTTPS.",
		Detail: "Their X-Forwarded-Proto and X-Forwarded-For are trusted. An address other than loopback then needs " +
			"no TLS; other machines only see health, counts and metrics.",
		value: list(&s.ConsoleTrustedProxy, "networks such as 10.0.0.0/24, or addresses, comma-separated, or off", network),
	}, {
		Name: "console-insecure", Serve: true, Default: "false",
		Help:   "Serve the console without TLS on an address other than loopback.",
		Detail: "Anyone who can read the traffic can read the token and deploy.",
		value:  onOff(&s.ConsoleInsecure),
	}, {
		Name: "console-hosts", Serve: true, list: true, Example: "tendril,worker.internal",
		Help:   "Additional host names of the console.",
		Detail: "Localhost and its own addresses are always allowed; requests for other names are rejected.",
		value:  list(&s.ConsoleHosts, "host names or addresses without ports, comma-separated, or off", hostName),
	}, {
		Name: "health-ignore-client-errors", Namespace: bundle.NamespaceHealth,
		Beanstalk: "ConfigDocument", Default: "false",
		Help:   "Ignore 4xx responses of the app in the health status.",
		Detail: "In a ConfigDocument it is the rule ApplicationRequests4xx.",
		value:  onOff(&s.HealthIgnoreClientErrors),
	}, {
		Name: "console-token", Serve: true, secretFile: &s.ConsoleTokenFile,
		DefaultNote: "generated at each start, in the data directory",
		Help:        "Token required for changes and message bodies on the console.",
		Detail:      "Do not use a flag: other users can see it.",
		value:       sharedSecret(&s.ConsoleToken, token),
	}, {
		Name: "console-drain-token", Serve: true, secretFile: &s.ConsoleDrainTokenFile,
		Help:   "Token that only allows the hooks /-/drain and /-/quiet.",
		Detail: "A Kubernetes manifest contains it, because hooks cannot read a Secret.",
		value:  sharedSecret(&s.ConsoleDrainToken, token),
	}}
}

func outputOptions(s *Settings) []Option {
	return []Option{{
		Name: "quiet", DaemonKey: "quiet", Default: "false", Serve: true,
		Help:  "Print only warnings and errors.",
		value: onOff(&s.Quiet),
	}, {
		Name: "verbose", DaemonKey: "verbose", Default: "false", Serve: true,
		Help:  "Print more detail.",
		value: onOff(&s.Verbose),
	}, {
		Name: "log-format", Default: LogAuto, Serve: true,
		Help:   "Log format: text, json or sqsd.",
		Detail: "Auto is text on a terminal, else JSON; sqsd is the format of aws-sqsd.",
		value:  choice(&s.LogFormat, LogAuto, LogText, logJSON, LogSQSD),
	}, {
		Name: "log-sample", Default: "100",
		Help:   "Maximum log lines about deliveries with the same outcome per second; 0 disables the limit.",
		Detail: "Dropped lines are counted in the log.",
		value:  integer(&s.LogSample, 0, 100_000),
	}, {
		Name: "config", essential: true, Example: "tendril.yaml", Serve: true,
		DefaultNote: "tendril.yaml, else $XDG_CONFIG_HOME/tendril/config.yaml, else /etc/tendril/config.yaml",
		Help:        "Settings file of tendril or aws-sqsd.",
		value:       file(&s.ConfigFile),
	}}
}

func stopOptions(s *Settings) []Option {
	return []Option{{
		Name: "shutdown-timeout", AppRestart: true, DaemonKey: "drain_timeout", Default: "30s", Serve: true,
		Help:   "Maximum time for work in flight to finish after TERM or INT.",
		Detail: "Unfinished messages return to their queue.",
		value:  duration(&s.ShutdownTimeout, 0, twelveHours),
	}}
}
