package config

import (
	"strings"
	"time"
)

// The values of Backend.
const (
	backendAuto     = "auto"     // sqs if a queue URL is given, else embedded; resolved by [Load]
	BackendEmbedded = "embedded" // the queue inside this process
	BackendSQS      = "sqs"      // Amazon SQS or a compatible server
)

// The values of ConsoleAuth.
const (
	consoleAuthToken = "token" // callers with a token or a session
	ConsoleAuthNone  = "none"  // every caller on loopback
)

// The values of ConsoleBodies.
const (
	consoleBodiesShown  = "shown"
	ConsoleBodiesHidden = "hidden" // until requested explicitly
)

// The values of Leader, the instance that enqueues periodic tasks.
const (
	leaderElect = "elect" // elected by the instances that share a registry
	LeaderLocal = "local" // this instance, which must be the only one
)

// The values of PeriodicTrust, the messages accepted as runs of periodic tasks.
const (
	trustAll      = "all"      // all with a task's attributes, as in aws-sqsd
	TrustRegistry = "registry" // only those whose run is in the registry
)

const (
	// Off is the value of Console for no listener, and of CloudWatch for no metrics.
	Off = "off"
	// On is the value of CloudWatch that sends metrics.
	On = "on"
	// auto derives CloudWatch from the queues and the name; resolved by [Load].
	auto = "auto"
)

// The values of LogFormat.
const (
	LogAuto = "auto" // LogText on a terminal, else logJSON
	LogText = "text" // short lines for people
	logJSON = "json" // one JSON object per line
	LogSQSD = "sqsd" // LogText with deliveries in the format of aws-sqsd
)

// The values of MachineSections.
const (
	machineIgnore = "ignore"
	MachineApply  = "apply"
)

// PerQueue are the settings that a queue can override.
type PerQueue struct {
	// Backend is BackendEmbedded or BackendSQS.
	Backend string
	// MaxWait is the age, since it was sent, at which a message overrides the order of the queues, 0 to 1209600 s; 0
	// is off.
	MaxWait time.Duration
	// Target is the app's URL: http, https or unix, without a path (for unix, the path is the socket's). "" means the
	// supervised app on Port, unless Function or Lambda is set. At most one of the three is set.
	Target string
	// Function is the name or ARN of a Lambda function that gets the messages instead of an app; may be "".
	Function string
	// Lambda is the shell command of a function that runs on this machine; may be "".
	Lambda string
	// TargetCA is a PEM file with the certificate authorities of an https target; "" for the system's.
	TargetCA string
	// TargetCert and TargetKey are PEM files with the client certificate for an https target and its private key; may
	// be "".
	TargetCert, TargetKey string
	// HTTPPath is the path of every POST. It starts with "/" and may contain a query.
	HTTPPath string
	// MimeType is the Content-Type of every POST.
	MimeType string
	// TerminalCodes are the statuses that send a message to the dead-letter queue at once, in the format of
	// SuccessCodes; may be "".
	TerminalCodes string
	// BatchSize is the maximum number of messages per invocation or POST, 1 to 10.
	BatchSize int
	// BatchWindow is the maximum time an invocation or POST waits for more messages, 0 to 300 s.
	BatchWindow time.Duration
	// SigningSecret are the keys that sign every POST, in the format of package webhook. POSTs are unsigned if it is
	// empty. It is secret.
	SigningSecret []string
	// SigningSecretFile is the file with SigningSecret; may be "".
	SigningSecretFile string
	// Filter is the pattern of the messages to deliver, in the format of package filter; "" matches all. Other
	// messages are deleted.
	Filter string
	// ViaSNS delivers the message in an SNS notification without the envelope.
	ViaSNS bool
	// InactivityTimeout is the maximum time without a byte from the app, 1 to 36000 s.
	InactivityTimeout time.Duration
	// Deadline is the maximum duration of a POST, 0 to 43200 s; 0 is unlimited.
	Deadline time.Duration
	// VisibilityTimeout is how long a received message stays hidden, 0 to 43200 s; at 0 it is not hidden at all.
	VisibilityTimeout time.Duration
	// ErrorVisibilityTimeout is how long a failed message stays hidden after the failure, 0 to 43200 s. Nil keeps the
	// VisibilityTimeout of the receive; 0 retries at once.
	ErrorVisibilityTimeout *time.Duration
	// RetentionPeriod is the time since its first receive during which a message is retried, 60 to 1209600 s.
	RetentionPeriod time.Duration
}

// Settings are the values in force. [Load] sets every field, so zero values have no default meaning. Ranges are
// inclusive and already checked.
type Settings struct {
	// PerQueue holds the settings of queues that do not override them. Backend, Queue and QueueURL are the first
	// queue's.
	PerQueue
	// Name is the environment's name: 1 to 64 letters, digits, "_" and "-".
	Name string
	// Queues are the 1 to 64 queues to receive from, with unique names and complete settings.
	Queues []QueueSettings
	// Strict is true if a queue is served only while all queues before it are empty, and for a single queue without a
	// weight. Otherwise Weight is each queue's share of free slots.
	Strict bool
	// QueueURL is the URL or ARN of a queue on Amazon SQS; "" if the queue is embedded or known by its name only.
	QueueURL string
	// Queue is the queue's name, or the name in QueueURL: 1 to 80 letters, digits, "_" and "-". A FIFO queue's ends
	// in ".fifo".
	Queue string
	// Region is an AWS region. The default is "us-east-1", see [Config.IsSet].
	Region string
	// EndpointURL is the address of the SQS API; "" means the AWS SDK's default or AWS_ENDPOINT_URL_SQS.
	EndpointURL string
	// WaitTime is the maximum time a receive waits for a message, 0 to 20 s. Less than 1 s counts as 1 s, to avoid
	// polling an empty queue in a tight loop.
	WaitTime time.Duration
	// Sleep is the pause after a full wait found all queues empty, 0 to 3600 s; 0 is off.
	Sleep time.Duration
	// DeleteLinger is the maximum time a delete waits for others to share its request, 0 to 1 s; 0 sends each at
	// once.
	DeleteLinger time.Duration
	// HTTPConnections is the maximum number of concurrent deliveries over all queues, 1 to 1000.
	HTTPConnections int
	// SuccessCodes are the statuses of a successful delivery, such as "200,202-204": sorted, within 200 to 599,
	// without overlaps.
	SuccessCodes string
	// HeaderBudget is the maximum size of a POST's attribute headers, 256 B to 64 KiB.
	HeaderBudget int64
	// Keepalive reuses connections to the app.
	Keepalive bool
	// S3Payloads are the buckets from which bodies that messages point to are fetched. If it is empty, pointers are
	// delivered unchanged.
	S3Payloads []string
	// FunctionTimeout is the maximum duration of an invocation, 1 to 900 s.
	FunctionTimeout time.Duration

	// Rate is the maximum number of deliveries started per second; 0 is unlimited.
	Rate float64
	// AdaptiveConcurrency finds the concurrency that the app can handle, between 1 and HTTPConnections.
	AdaptiveConcurrency bool
	// Breaker is the percentage of failures that stops deliveries, 1 to 100; 0 is off.
	Breaker int
	// BreakerWindow is the period in which failures count, 1 to 600 s.
	BreakerWindow time.Duration
	// BreakerDelay is the time without deliveries before one is tried, 1 to 3600 s.
	BreakerDelay time.Duration

	// ConnectTimeout is the time limit for connecting to the app, 1 to 60 s.
	ConnectTimeout time.Duration

	// MaxRetries is the maxReceiveCount of the redrive policies that tendril sets, 1 to 1000.
	MaxRetries int
	// DeadLetterReasons makes tendril itself move messages that failed for the last time to the dead-letter queue on
	// Amazon SQS, with the reason.
	DeadLetterReasons bool
	// RespectRetryAfter uses the app's Retry-After as the pause before the next attempt.
	RespectRetryAfter bool
	// BackoffMin is the pause after the first failure, 0 to 43200 s; 0 turns backoff off.
	BackoffMin time.Duration
	// BackoffMax is the maximum pause, BackoffMin to 43200 s.
	BackoffMax time.Duration
	// BackoffDoublings is the number of doublings, 0 to 16, before the pause grows linearly.
	BackoffDoublings int
	// BackoffJitter is the maximum random reduction of a pause in percent, 0 to 100.
	BackoffJitter int

	// Port is the port of the supervised app and its PORT variable, 1 to 65535.
	Port int
	// Healthcheck is "TCP:port" or "HTTP:port/path"; "" means TCP on Target, if set, or Port.
	Healthcheck string
	// AppReadyTimeout is the maximum time the app takes to become ready at startup, 0 to 43200 s; 0 is unlimited.
	AppReadyTimeout time.Duration
	// AppGrace is the time between TERM and KILL for the app, 0 to 43200 s; 0 kills at once.
	AppGrace time.Duration
	// RestartLimit is the maximum number of restarts in RestartWindow, 0 to 1000; 0 turns restarts off.
	RestartLimit int
	// RestartWindow is the period in which restarts count, 1 to 86400 s.
	RestartWindow time.Duration

	// DeployTimeout is the maximum time a new version takes to become ready, 1 to 43200 s.
	DeployTimeout time.Duration
	// ProcessesMin and ProcessesMax limit the number of app processes, 1 to 64.
	ProcessesMin, ProcessesMax int
	// AppUser is the user that the app runs as: "NAME", "UID" or "UID:GID"; "" means tendril's own user.
	AppUser string
	// AllowRoot lets the app run as root outside a container.
	AllowRoot bool
	// MachineSections is MachineApply to apply the sections of .ebextensions that change the machine.
	MachineSections string
	// AppLimit are limits of each app process, "NAME=NUMBER" or "NAME=unlimited", with the names of ulimit: nofile,
	// nproc, core and others.
	AppLimit []string
	// AppLogDir is the absolute path of the folder with the app's log files; may be "".
	AppLogDir string
	// AppLogRate is the maximum number of lines per second and process, 1 to 1000000.
	AppLogRate int
	// PIDFile is the path of the file with the main process's ID; may be "".
	PIDFile string

	// ScaleTarget is ScaleNone, ScaleAuto, ScaleProcesses, ScalePublish, ScaleGroup followed by the name of an Auto
	// Scaling group, or ScaleService followed by "CLUSTER/SERVICE" of Amazon ECS.
	ScaleTarget string
	// ScaleDrainWithin is the target time for processing the waiting messages, 1 s to 24 h. ScaleTargetBusy is the
	// target percentage of busy delivery slots, 1 to 100. Both apply without a ScaleMeasureName only.
	ScaleDrainWithin time.Duration
	ScaleTargetBusy  int
	// ScaleInProtection is [protectionAuto] or [ProtectionOff].
	ScaleInProtection string
	// ScaleMinSize and ScaleMaxSize limit the size of a group, 1 to 10000.
	ScaleMinSize, ScaleMaxSize int
	// ScaleCooldown is the minimum time between two changes of size, 0 to 10000 s.
	ScaleCooldown time.Duration
	// ScaleMeasureName is "CPUUtilization", "BacklogPerProcess", "OldestMessageAge" or "BusyShare"; "" means no
	// trigger.
	ScaleMeasureName string
	// ScaleStatistic is "Average", "Minimum", "Maximum" or "Sum".
	ScaleStatistic string
	// ScaleUnit is the unit of the measure: "Percent", "Count" or "Seconds". It is meaningless without a measure.
	ScaleUnit string
	// ScaleLowerThreshold and ScaleUpperThreshold are the limits of the measure, 0 to 20000000, the lower one below
	// the upper. They are meaningless without a measure.
	ScaleLowerThreshold, ScaleUpperThreshold float64
	// ScaleLowerBreachScaleIncrement is the change of size below the lower threshold, -10000 to -1, and
	// ScaleUpperBreachScaleIncrement the change above the upper one, 1 to 10000.
	ScaleLowerBreachScaleIncrement, ScaleUpperBreachScaleIncrement int
	// ScalePeriod is the period that one value of the measure covers, 1 to 36000 s.
	ScalePeriod time.Duration
	// ScaleEvaluationPeriods is the number of consecutive periods that must breach, 1 to 600.
	ScaleEvaluationPeriods int
	// ScaleBreachDuration is the minimum duration of a breach, 0 to 36000 s; 0 means the duration of the periods.
	ScaleBreachDuration time.Duration

	// DataDir is the absolute path of the folder with the embedded queue, the console's token and the instance file.
	DataDir string
	// Listen is the address of the SQS endpoint: a host and a port (0 for any free one), "unix:" and the path of a
	// socket, or both with a comma between.
	Listen string
	// Credentials is the file of the key pairs that may call the SQS endpoint; "" trusts all callers on a loopback
	// address or socket.
	Credentials string
	// TLSCert and TLSKey are PEM files for TLS on the SQS endpoint, both set or both "".
	TLSCert, TLSKey string
	// RegistryToken authenticates access to the registry of an embedded queue, in this process or in the tendril that
	// serves the queue, 16 to 256 printable characters; "" means a generated one. It is secret. RegistryTokenFile is
	// the file with the token; may be "".
	RegistryToken, RegistryTokenFile string
	// RegistryInsecure sends the token even to a server that cannot prove that it knows it.
	RegistryInsecure bool
	// AccountID is the 12 digits in the embedded queues' URLs and ARNs.
	AccountID string

	// Cron is the file of periodic tasks; "" means the bundle's cron.yaml, if it has one.
	Cron string
	// RegistryTable is the DynamoDB table in which instances on Amazon SQS elect the leader for periodic tasks; may
	// be "". RegistryCreate creates a missing table.
	RegistryTable  string
	RegistryCreate bool
	// Leader is leaderElect or LeaderLocal.
	Leader string
	// PeriodicTrust is trustAll or TrustRegistry.
	PeriodicTrust string
	// Lease is the time after which an unresponsive leader is replaced, 5 to 300 s.
	Lease time.Duration

	// Console is a host and a port (0 for any free one), or [Off].
	Console string
	// ConsoleTLSCert and ConsoleTLSKey are PEM files for TLS on the console, both set or both "".
	ConsoleTLSCert, ConsoleTLSKey string
	// ConsoleInsecure allows an unencrypted console on any address.
	ConsoleInsecure bool
	// ConsoleAuth is "token", or [ConsoleAuthNone] to let every user of this machine use the console.
	ConsoleAuth string
	// ConsoleReadOnly refuses every action.
	ConsoleReadOnly bool
	// ConsoleBodies is "shown", or [ConsoleBodiesHidden] to show message bodies on request only.
	ConsoleBodies string
	// ConsoleTrustedProxy are the networks of proxies with trusted X-Forwarded headers.
	ConsoleTrustedProxy []string
	// ConsoleHosts are the host names that requests to the console may use, in addition to localhost and its own
	// addresses.
	ConsoleHosts []string
	// ConsoleToken is the console's token, 16 to 256 printable characters; "" means a new one at each start. It is
	// secret. ConsoleTokenFile is the file with the token; may be "".
	ConsoleToken, ConsoleTokenFile string
	// ConsoleDrainToken allows the hooks /-/drain and /-/quiet only; may be "". It is secret. ConsoleDrainTokenFile
	// is the file with the token; may be "".
	ConsoleDrainToken, ConsoleDrainTokenFile string
	// HealthIgnoreClientErrors excludes deliveries answered with 4xx from the health status.
	HealthIgnoreClientErrors bool

	// Quiet leaves only warnings and errors; Verbose adds detail. At most one is true.
	Quiet, Verbose bool
	// LogFormat is [LogAuto], [LogText], "json" or [LogSQSD].
	LogFormat string
	// LogSample is the maximum number of lines about deliveries per second, 0 to 100000; 0 is unlimited.
	LogSample int

	// CloudWatch is On or Off.
	CloudWatch string
	// MetricsInterval is the interval between transmissions to CloudWatch, 1 to 3600 s.
	MetricsInterval time.Duration
	// EnvironmentName is the Elastic Beanstalk environment that reports its health to CloudWatch; may be "".
	EnvironmentName string

	// ShutdownTimeout is the time that deliveries in flight get after TERM, 0 to 43200 s; 0 returns all messages at
	// once.
	ShutdownTimeout time.Duration

	// ConfigFile is the settings file in use; may be "".
	ConfigFile string
}

// QueueSettings are the complete settings of one queue. [Load] sets every field; ranges are those in [Settings].
type QueueSettings struct {
	PerQueue
	// Name is the queue's unique name; with a URL, it is the name in the URL. A FIFO queue's ends in ".fifo".
	Name string
	// URL is the URL or ARN of a queue on Amazon SQS; "" if the queue is embedded or known by its name only.
	URL string
	// Managed is true if no setting names the queue and it is on Amazon SQS: tendril creates it with the
	// environment's name.
	Managed bool
	// Region is the AWS region in the URL or ARN, else Settings.Region.
	Region string
	// Weight is the queue's share of free slots, 1 to 1000; 0 in every queue means strict order.
	Weight int
	// Concurrency is the queue's maximum number of concurrent deliveries, 1 to 1000. All queues together are limited
	// to Settings.HTTPConnections.
	Concurrency int
}

// FIFO reports whether the queue is a FIFO queue, judging by its name.
func (q *QueueSettings) FIFO() bool { return strings.HasSuffix(q.Name, fifoSuffix) }

// ToFunction reports whether the messages go to a Lambda function, on AWS or on this machine, rather than to an app
// over HTTP.
func (q *QueueSettings) ToFunction() bool { return q.Function != "" || q.Lambda != "" }

// ToOwnApp reports whether the messages go to the supervised app: neither a target nor a function is set.
func (q *QueueSettings) ToOwnApp() bool { return q.Target == "" && !q.ToFunction() }

// reference returns the queue's URL or ARN, else its name.
func (q *QueueSettings) reference() string {
	if q.URL != "" {
		return q.URL
	}
	return q.Name
}

// unixPrefix starts the path of a socket in Listen.
const unixPrefix = "unix:"

// ListenOn returns the address and the unix socket's path of the SQS endpoint; one of them may be "".
func (s *Settings) ListenOn() (address, socket string) {
	for part := range strings.SplitSeq(s.Listen, ",") {
		if path, ok := strings.CutPrefix(part, unixPrefix); ok {
			socket = path
		} else {
			address = part
		}
	}
	return address, socket
}

// any reports whether holds is true for any queue.
func (s *Settings) any(holds func(*QueueSettings) bool) bool {
	for i := range s.Queues {
		if holds(&s.Queues[i]) {
			return true
		}
	}
	return false
}

// AnyEmbedded reports whether any queue is embedded.
func (s *Settings) AnyEmbedded() bool {
	return s.any(func(q *QueueSettings) bool { return q.Backend == BackendEmbedded })
}

// anyCreated reports whether tendril creates any queue, and so sets its redrive policy.
func (s *Settings) anyCreated() bool {
	return s.any(func(q *QueueSettings) bool { return q.Backend == BackendEmbedded || q.Managed })
}

// AnyOnSQS reports whether any queue is on Amazon SQS.
func (s *Settings) AnyOnSQS() bool {
	return s.any(func(q *QueueSettings) bool { return q.Backend == BackendSQS })
}

// AnyToOwnApp reports whether any queue's messages go to the supervised app.
func (s *Settings) AnyToOwnApp() bool {
	return s.any((*QueueSettings).ToOwnApp)
}

func (s *Settings) toFunction() bool {
	return s.any((*QueueSettings).ToFunction)
}

func (s *Settings) toApp() bool {
	return s.any(func(q *QueueSettings) bool { return !q.ToFunction() })
}

func (s *Settings) anyTLS() bool {
	return s.any(func(q *QueueSettings) bool {
		return !q.ToFunction() && strings.HasPrefix(q.Target, "https:")
	})
}

// The values of ScaleTarget.
const (
	ScaleNone      = "none"      // nothing
	ScaleAuto      = "auto"      // the group or service of this instance, else the processes
	ScaleProcesses = "processes" // the number of app processes on this machine
	ScalePublish   = "publish"   // nothing here: the backlog is published for another scaler
	ScaleGroup     = "asg:"      // and a name: the size of an Auto Scaling group
	ScaleService   = "ecs:"      // and CLUSTER/SERVICE: the tasks of an ECS service
)

// ScalesInstances reports whether the target is certainly a number of instances, not of processes on this one.
func (s *Settings) ScalesInstances() bool {
	return s.ScaleTarget == ScalePublish || strings.HasPrefix(s.ScaleTarget, ScaleGroup) ||
		strings.HasPrefix(s.ScaleTarget, ScaleService)
}
