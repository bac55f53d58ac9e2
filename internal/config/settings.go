package config

import (
	"strings"
	"time"
)

// The backends that a queue can live in.
const (
	backendAuto     = "auto"     // sqs when a queue URL is given, else embedded; a loaded [Settings] never holds it
	BackendEmbedded = "embedded" // the queue inside this process
	BackendSQS      = "sqs"      // Amazon SQS, or whatever speaks its protocol
)

// Who may use the console.
const (
	consoleAuthToken = "token" // callers with a token or a session
	ConsoleAuthNone  = "none"  // every caller on loopback
)

// How message bodies are shown to those who may read them.
const (
	consoleBodiesShown  = "shown"
	ConsoleBodiesHidden = "hidden" // on request only
)

// The ways to find out which instance enqueues periodic tasks.
const (
	leaderElect = "elect" // the instances that share a registry elect one
	LeaderLocal = "local" // this instance is declared the only one
)

// Which messages count as runs of periodic tasks.
const (
	trustAll      = "all"      // every message that has a task's attributes, as aws-sqsd has it
	TrustRegistry = "registry" // only those whose run is in the registry
)

const (
	// Off is the value of Console that means no listener, and the one of CloudWatch that means no metrics.
	Off = "off"
	// On is the value of CloudWatch that sends metrics.
	On = "on"
	// auto leaves CloudWatch to the queues and the name; a loaded [Settings] never holds it.
	auto = "auto"
)

// The values of LogFormat.
const (
	LogAuto = "auto" // LogText on a terminal, else logJSON
	LogText = "text" // short lines for people
	logJSON = "json" // one JSON object per line
	LogSQSD = "sqsd" // LogText with deliveries as aws-sqsd writes them
)

// MachineApply is the value of MachineSections that applies them; the other one is machineIgnore.
const (
	machineIgnore = "ignore"
	MachineApply  = "apply"
)

// PerQueue are the settings that a queue may have for itself.
type PerQueue struct {
	// Backend is BackendEmbedded or BackendSQS.
	Backend string
	// MaxWait is the age, counted from the send, at which a message gets the
	// next turn whatever the order says, 0 to 1209600 s; 0 means never.
	MaxWait time.Duration
	// Target is the app's URL: http, https or unix, without a path (for unix the path is the socket's); "" means
	// the supervised app on Port, unless Function or Lambda is set. At most one of the three is.
	Target string
	// Function is the name or ARN of a Lambda function that gets the messages in place of an app; may be "".
	Function string
	// Lambda is the command, for a shell, of a function that is run on this machine; may be "".
	Lambda string
	// TargetCA is a PEM file with the certificates that must have signed an https target's; "" for the system's.
	TargetCA string
	// TargetCert and TargetKey are PEM files with the certificate that is shown to an https target, and its private key;
	// "" for none.
	TargetCert, TargetKey string
	// HTTPPath is the path of every POST; begins with "/", may carry a query.
	HTTPPath string
	// MimeType is the Content-Type of every POST.
	MimeType string
	// TerminalCodes are the statuses with which a message goes to the dead-letter queue at once, written as SuccessCodes
	// are; may be "".
	TerminalCodes string
	// BatchSize is the most messages in one invocation or POST, 1 to 10.
	BatchSize int
	// BatchWindow is how long an invocation or POST may wait to be full, 0 to 300 s.
	BatchWindow time.Duration
	// SigningSecret are the keys that sign every POST, as package webhook has them; none: POSTs are not signed. They are
	// secret.
	SigningSecret []string
	// SigningSecretFile is the file that they were read from; may be "".
	SigningSecretFile string
	// Filter is the pattern of the messages to deliver, as package filter has it; "" means all. The others are deleted.
	Filter string
	// ViaSNS posts what a notification of SNS carries in place of its envelope.
	ViaSNS bool
	// InactivityTimeout is how long the app may be silent, 1 to 36000 s; each byte from it starts the time anew.
	InactivityTimeout time.Duration
	// Deadline bounds one POST as a whole, 0 to 43200 s; 0 means no bound.
	Deadline time.Duration
	// VisibilityTimeout hides a received message, 0 to 43200 s. 0 is meant as written: not hidden at all.
	VisibilityTimeout time.Duration
	// ErrorVisibilityTimeout hides a failed message, 0 to 43200 s, counted from
	// the failure. Nil leaves VisibilityTimeout to run out; 0 means retry at once.
	ErrorVisibilityTimeout *time.Duration
	// RetentionPeriod is how long after its first receive a message is still tried, 60 to 1209600 s.
	RetentionPeriod time.Duration
}

// Settings are the values in force. [Load] fills every field; the zero value
// means nothing by itself. Ranges are inclusive and already checked.
type Settings struct {
	// PerQueue is what holds for the queues that do not say otherwise. Its Backend, like
	// Queue and QueueURL, is the first queue's.
	PerQueue
	// Name is the environment's name: 1 to 64 letters, digits, "_" and "-".
	Name string
	// Queues are the queues to take messages from: 1 to 64, no two of one name,
	// each with all that holds for it. Strict says what their order means.
	Queues []QueueSettings
	// Strict means that messages are taken from a queue only while the queues before it are empty; else Weight is each one's share
	// of free slots. True as well for a single queue without a weight.
	Strict bool
	// QueueURL is the URL or ARN of a queue on Amazon SQS; "" when the queue is
	// embedded, or is to be found on Amazon SQS by its name.
	QueueURL string
	// Queue is the queue's name: 1 to 80 letters, digits, "_" and "-"; one that
	// ends in ".fifo" is a FIFO queue. With a QueueURL it is the name in there.
	Queue string
	// Region is an AWS region. "us-east-1" if it was not set, see [Config.IsSet].
	Region string
	// EndpointURL is where the SQS protocol is spoken; "" leaves it to the AWS SDK and its AWS_ENDPOINT_URL_SQS.
	EndpointURL string
	// WaitTime is how long one receive waits for a message, 0 to 20 s; less
	// than 1 s counts as 1 s, so that an empty queue is not asked in a hot loop.
	WaitTime time.Duration
	// Sleep is the rest after all queues were found empty by a whole wait, 0 to 3600 s; 0 means none.
	Sleep time.Duration
	// DeleteLinger is how long a finished message's delete may wait for others
	// to travel with it, 0 to 1 s; 0 sends each at once.
	DeleteLinger time.Duration
	// HTTPConnections is the most deliveries in work at once over all queues, 1
	// to 1000: requests to the app, or invocations.
	HTTPConnections int
	// SuccessCodes are the statuses that mean done, as "200,202-204": sorted, within 200 to 599, without overlaps.
	SuccessCodes string
	// HeaderBudget bounds the attribute headers of one POST in bytes, 256 B to 64 KiB.
	HeaderBudget int64
	// Keepalive says whether a connection to the app is used again.
	Keepalive bool
	// S3Payloads are the buckets from which the bodies are fetched that messages
	// point to; empty leaves pointers as they are.
	S3Payloads []string
	// FunctionTimeout bounds one invocation, 1 to 900 s.
	FunctionTimeout time.Duration

	// Rate is the most deliveries begun per second; 0 means no bound.
	Rate float64
	// AdaptiveConcurrency looks for the concurrency that the app bears, between 1 and HTTPConnections.
	AdaptiveConcurrency bool
	// Breaker is the percentage of failures that stops deliveries, 1 to 100; 0 means that nothing does.
	Breaker int
	// BreakerWindow is the time over which failures count, 1 to 600 s.
	BreakerWindow time.Duration
	// BreakerDelay is how long deliveries stay stopped before one is tried, 1 to 3600 s.
	BreakerDelay time.Duration

	// ConnectTimeout bounds the connect to the app, 1 to 60 s.
	ConnectTimeout time.Duration

	// MaxRetries is maxReceiveCount of the redrive policies that tendril sets, 1 to 1000.
	MaxRetries int
	// DeadLetterReasons lets tendril send what failed for the last time from a queue on Amazon SQS to its dead-letter
	// queue itself, with the reason.
	DeadLetterReasons bool
	// RespectRetryAfter lets the app's Retry-After choose the time to the next attempt.
	RespectRetryAfter bool
	// BackoffMin is the pause after a first failure, 0 to 43200 s; 0 means that there is no backoff.
	BackoffMin time.Duration
	// BackoffMax is the longest pause, BackoffMin to 43200 s.
	BackoffMax time.Duration
	// BackoffDoublings is how often the pause doubles, 0 to 16, before it grows by the same step each time.
	BackoffDoublings int
	// BackoffJitter is the percentage by which a pause may be shortened at random, 0 to 100; 0 means none.
	BackoffJitter int

	// Port is where the supervised app listens, 1 to 65535: its PORT.
	Port int
	// Healthcheck is "TCP:port" or "HTTP:port/path"; "" means TCP on Port, or on Target where there is one.
	Healthcheck string
	// AppReadyTimeout is how long the app may take to be ready at the start, 0
	// to 43200 s; 0 means as long as it likes.
	AppReadyTimeout time.Duration
	// AppGrace is the time from TERM to KILL for the app, 0 to 43200 s; 0 means KILL at once.
	AppGrace time.Duration
	// RestartLimit is how many restarts RestartWindow may hold, 0 to 1000; 0 means that the app is never restarted.
	RestartLimit int
	// RestartWindow is the time over which restarts count, 1 to 86400 s.
	RestartWindow time.Duration

	// DeployTimeout is how long a new version of the app may take to be ready, 1 to 43200 s.
	DeployTimeout time.Duration
	// ProcessesMin and ProcessesMax bound the number of the app's processes, 1 to 64; equal ones fix it.
	ProcessesMin, ProcessesMax int
	// AppUser is "NAME", "UID" or "UID:GID" of the user whom the app runs as; "" means whom tendril does.
	AppUser string
	// AllowRoot lets the app run as root outside of a container.
	AllowRoot bool
	// MachineSections is MachineApply where the sections of .ebextensions that change the machine are applied.
	MachineSections string
	// AppLimit are limits of each process of the app, "NAME=NUMBER" or
	// "NAME=unlimited", with the names of ulimit: nofile, nproc, core and others.
	AppLimit []string
	// AppLogDir is the absolute path of the folder of the app's log files; may be "".
	AppLogDir string
	// AppLogRate is the most lines per second of each process, 1 to 1000000.
	AppLogRate int
	// PIDFile is the path of the file that holds the main process's number; may be "".
	PIDFile string

	// ScaleTarget is ScaleNone, ScaleAuto, ScaleProcesses, ScalePublish, ScaleGroup and the name of an Auto Scaling
	// group, or ScaleService and "CLUSTER/SERVICE" of Amazon ECS.
	ScaleTarget string
	// ScaleDrainWithin is the time in which waiting messages are to be done, 1 s to 24 h; ScaleTargetBusy the share
	// of deliveries in work to aim at, 1 to 100 per cent. Both count without a ScaleMeasureName.
	ScaleDrainWithin time.Duration
	ScaleTargetBusy  int
	// ScaleInProtection is [protectionAuto] or [ProtectionOff].
	ScaleInProtection string
	// ScaleMinSize and ScaleMaxSize bound the size of a group, 1 to 10000.
	ScaleMinSize, ScaleMaxSize int
	// ScaleCooldown is how long after a change of size no other is made, 0 to 10000 s.
	ScaleCooldown time.Duration
	// ScaleMeasureName is "CPUUtilization", "BacklogPerProcess",
	// "OldestMessageAge" or "BusyShare"; "" means that there is no trigger.
	ScaleMeasureName string
	// ScaleStatistic is "Average", "Minimum", "Maximum" or "Sum".
	ScaleStatistic string
	// ScaleUnit is the unit of the measure: "Percent", "Count" or "Seconds"; of no meaning without one.
	ScaleUnit string
	// ScaleLowerThreshold and ScaleUpperThreshold are what the measure must fall below or exceed, 0 to 20000000,
	// the lower one less than the upper; of no meaning without a measure.
	ScaleLowerThreshold, ScaleUpperThreshold float64
	// ScaleLowerBreachScaleIncrement is how many to add below the lower threshold, -10000 to -1,
	// ScaleUpperBreachScaleIncrement above the upper one, 1 to 10000.
	ScaleLowerBreachScaleIncrement, ScaleUpperBreachScaleIncrement int
	// ScalePeriod is the time over which one value is made, 1 to 36000 s.
	ScalePeriod time.Duration
	// ScaleEvaluationPeriods is how many periods in a row must breach, 1 to 600.
	ScaleEvaluationPeriods int
	// ScaleBreachDuration is how long a breach must last, 0 to 36000 s; 0 means as long as the periods.
	ScaleBreachDuration time.Duration

	// DataDir is the absolute path of the folder that holds the embedded queue,
	// the console's token and the instance file.
	DataDir string
	// Listen is where the SQS endpoint listens: a host and a port, port 0 meaning any free one, "unix:" and the path of
	// a socket, or both with a comma between.
	Listen string
	// Credentials is the file of the key pairs that may call the SQS endpoint; "" for a loopback address or a socket
	// whose callers are trusted.
	Credentials string
	// TLSCert and TLSKey are PEM files, both set or both "": with them the SQS endpoint speaks TLS.
	TLSCert, TLSKey string
	// RegistryToken is what the registry of an embedded queue asks for, of this process or of the tendril that serves
	// the queue, 16 to 256 printable characters; "" means one that is made. It is secret.
	// RegistryTokenFile is the file that it was read from; may be "".
	RegistryToken, RegistryTokenFile string
	// RegistryInsecure sends the token to a server that does not prove that it knows it.
	RegistryInsecure bool
	// AccountID is the 12 digits in the embedded queues' URLs and ARNs.
	AccountID string

	// Cron is the file of periodic tasks; "" means the bundle's cron.yaml, where there is one.
	Cron string
	// RegistryTable is the DynamoDB table by which instances on Amazon SQS agree on who enqueues periodic tasks; ""
	// for none. RegistryCreate makes it when it is missing.
	RegistryTable  string
	RegistryCreate bool
	// Leader is leaderElect or LeaderLocal.
	Leader string
	// PeriodicTrust is trustAll or TrustRegistry.
	PeriodicTrust string
	// Lease is how long a leader that is not heard of is waited for, 5 to 300 s.
	Lease time.Duration

	// Console is a host and a port, port 0 meaning any free one, or [Off].
	Console string
	// ConsoleTLSCert and ConsoleTLSKey are PEM files, both set or both "": with them the console speaks TLS.
	ConsoleTLSCert, ConsoleTLSKey string
	// ConsoleInsecure allows the console in clear text on any address.
	ConsoleInsecure bool
	// ConsoleAuth is [ConsoleAuthNone] where every user of this machine may use the console, else "token".
	ConsoleAuth string
	// ConsoleReadOnly refuses every act.
	ConsoleReadOnly bool
	// ConsoleBodies is [ConsoleBodiesHidden] where message bodies are shown on request only, else "shown".
	ConsoleBodies string
	// ConsoleTrustedProxy are networks, as prefixes, whose proxies are believed to tell how a request came.
	ConsoleTrustedProxy []string
	// ConsoleHosts are host names that requests to the console may address beside localhost and its own addresses.
	ConsoleHosts []string
	// ConsoleToken is the console's token, 16 to 256 printable characters; ""
	// means a new one at each start. It is secret. ConsoleTokenFile is the file that it was read from; may be "".
	ConsoleToken, ConsoleTokenFile string
	// ConsoleDrainToken allows the hooks /-/drain and /-/quiet, and nothing else; may be "". It is secret. ConsoleDrainTokenFile is as above.
	ConsoleDrainToken, ConsoleDrainTokenFile string
	// HealthIgnoreClientErrors leaves deliveries that the app answered with 4xx out of the judgement of health.
	HealthIgnoreClientErrors bool

	// Quiet leaves only warnings and errors; Verbose adds detail. Never both.
	Quiet, Verbose bool
	// LogFormat is "auto" (text on a terminal, else JSON lines), "text", "json"
	// or "sqsd" (deliveries as aws-sqsd writes them, the rest as text).
	LogFormat string
	// LogSample is the most lines about deliveries per second, 0 to 100000; 0 means all.
	LogSample int

	// CloudWatch is On or Off.
	CloudWatch string
	// MetricsInterval is the time between two sendings to CloudWatch, 1 to 3600 s.
	MetricsInterval time.Duration
	// EnvironmentName is the Elastic Beanstalk environment whose health is sent to CloudWatch; may be "".
	EnvironmentName string

	// ShutdownTimeout is how long work in flight may take after TERM, 0 to
	// 43200 s; 0 hands everything back at once.
	ShutdownTimeout time.Duration

	// ConfigFile is the settings file that was read; may be "".
	ConfigFile string
}

// QueueSettings are what holds for one queue: its own settings, and for the rest those of all queues. [Load] fills
// every field; ranges are those of [Settings].
type QueueSettings struct {
	PerQueue
	// Name tells the queue apart from the others; with a URL it is the name in
	// there. One that ends in ".fifo" is a FIFO queue.
	Name string
	// URL is the URL or ARN of a queue on Amazon SQS; "" when the queue is
	// embedded, or is to be found on Amazon SQS by its name.
	URL string
	// Managed means that no setting names the queue and that it is on Amazon SQS: tendril creates it there, with the
	// environment's name.
	Managed bool
	// Region is the AWS region in the URL or ARN, else Settings.Region.
	Region string
	// Weight is the queue's share of free slots, 1 to 1000; 0 in every queue means strict order.
	Weight int
	// Concurrency is the most deliveries in work for this queue, 1 to 1000; all
	// queues together have Settings.HTTPConnections.
	Concurrency int
}

// FIFO reports whether the queue is a FIFO queue, by its name.
func (q *QueueSettings) FIFO() bool { return strings.HasSuffix(q.Name, fifoSuffix) }

// ToFunction reports whether the messages go to a Lambda function, on AWS or
// on this machine, rather than to an app over HTTP.
func (q *QueueSettings) ToFunction() bool { return q.Function != "" || q.Lambda != "" }

// ToOwnApp reports whether the messages go to the app that is started here: no target and no function is named.
func (q *QueueSettings) ToOwnApp() bool { return q.Target == "" && !q.ToFunction() }

// reference is the queue as it would be written.
func (q *QueueSettings) reference() string {
	if q.URL != "" {
		return q.URL
	}
	return q.Name
}

// unixPrefix begins the path of a socket in Listen.
const unixPrefix = "unix:"

// ListenOn returns the address and the path of the unix socket on which the SQS endpoint listens; one of them may be
// "".
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

// any reports whether something holds for one of the queues.
func (s *Settings) any(holds func(*QueueSettings) bool) bool {
	for i := range s.Queues {
		if holds(&s.Queues[i]) {
			return true
		}
	}
	return false
}

// AnyEmbedded reports whether a queue is embedded.
func (s *Settings) AnyEmbedded() bool {
	return s.any(func(q *QueueSettings) bool { return q.Backend == BackendEmbedded })
}

// anyCreated reports whether tendril creates a queue, and so sets its redrive policy.
func (s *Settings) anyCreated() bool {
	return s.any(func(q *QueueSettings) bool { return q.Backend == BackendEmbedded || q.Managed })
}

// AnyOnSQS reports whether a queue is on Amazon SQS.
func (s *Settings) AnyOnSQS() bool {
	return s.any(func(q *QueueSettings) bool { return q.Backend == BackendSQS })
}

// AnyToOwnApp reports whether the messages of a queue go to the app that is started here.
func (s *Settings) AnyToOwnApp() bool {
	return s.any((*QueueSettings).ToOwnApp)
}

// toFunction and toApp report whether messages go to functions, and to apps; some may go to each.
func (s *Settings) toFunction() bool {
	return s.any((*QueueSettings).ToFunction)
}

func (s *Settings) toApp() bool {
	return s.any(func(q *QueueSettings) bool { return !q.ToFunction() })
}

// anyTLS reports whether messages of any queue go to an https target.
func (s *Settings) anyTLS() bool {
	return s.any(func(q *QueueSettings) bool {
		return !q.ToFunction() && strings.HasPrefix(q.Target, "https:")
	})
}

// What is scaled.
const (
	ScaleNone      = "none"      // nothing
	ScaleAuto      = "auto"      // the group or service that this instance is in, else the processes
	ScaleProcesses = "processes" // the number of the app's processes here
	ScalePublish   = "publish"   // nothing here: the backlog is published, for something else to scale by
	ScaleGroup     = "asg:"      // and a name: the size of an Auto Scaling group
	ScaleService   = "ecs:"      // and the names of a cluster and a service with "/" between: the tasks of the service
)

// ScalesInstances reports whether what is scaled are certainly instances, and not the processes on this one.
func (s *Settings) ScalesInstances() bool {
	return s.ScaleTarget == ScalePublish || strings.HasPrefix(s.ScaleTarget, ScaleGroup) ||
		strings.HasPrefix(s.ScaleTarget, ScaleService)
}
