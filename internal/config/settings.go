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

// PerQueue holds the options that a queue can override. Each field of PerQueue and [Settings] is the option of the
// same name, whose row in the table has its description and range.
type PerQueue struct {
	Backend string        // BackendEmbedded or BackendSQS
	MaxWait time.Duration // 0 is off
	// Target is the app's URL: http, https or unix, without a path (for unix, the path is the socket's). "" means the
	// supervised app on Port, unless Function or Lambda is set. At most one of the three is set.
	Target            string
	Function          string // name or ARN; may be ""
	Lambda            string // shell command; may be ""
	TargetCA          string // PEM file; "" for the system's certificate authorities
	TargetCert        string // PEM file; may be ""
	TargetKey         string // PEM file; may be ""
	HTTPPath          string // starts with "/", may have a query
	MimeType          string
	TerminalCodes     string // in the format of SuccessCodes; may be ""
	BatchSize         int
	BatchWindow       time.Duration
	SigningSecret     []string // in the format of package webhook; secret
	SigningSecretFile string   // source of SigningSecret; may be ""
	Filter            string   // in the format of package filter; "" matches all messages
	ViaSNS            bool
	InactivityTimeout time.Duration
	Deadline          time.Duration // 0 is unlimited
	VisibilityTimeout time.Duration // at 0, messages are not hidden
	// ErrorVisibilityTimeout counts from the failure. Nil keeps the VisibilityTimeout of the receive; 0 retries at once.
	ErrorVisibilityTimeout *time.Duration
	RetentionPeriod        time.Duration // since the first receive
}

// Settings are the values in force. [Load] sets every field.
type Settings struct {
	// PerQueue holds the settings of queues that do not override them. Backend, Queue and QueueURL are the first queue's.
	PerQueue
	Name   string
	Queues []QueueSettings // 1 to 64, with unique names and complete settings
	// Strict is true if a queue is served only while all queues before it are empty, and for a single queue without a
	// weight. Otherwise Weight is each queue's share of free slots.
	Strict   bool
	QueueURL string // URL or ARN; "" if the queue is embedded or known by its name only
	Queue    string // a FIFO queue's name ends in ".fifo"
	Region   string // see [Config.IsSet] for the default
	// EndpointURL is the address of the SQS API; "" means the AWS SDK's default or AWS_ENDPOINT_URL_SQS.
	EndpointURL     string
	WaitTime        time.Duration // less than 1 s counts as 1 s, to avoid polling in a tight loop
	Sleep           time.Duration // 0 is off
	DeleteLinger    time.Duration // 0 sends each delete at once
	HTTPConnections int           // concurrent deliveries over all queues
	SuccessCodes    string        // sorted, without overlaps: "200,202-204"
	HeaderBudget    int64         // bytes
	Keepalive       bool
	S3Payloads      []string // buckets; if empty, pointers are delivered unchanged
	FunctionTimeout time.Duration

	Rate                float64 // deliveries per second; 0 is unlimited
	AdaptiveConcurrency bool
	Breaker             int // percent of failures; 0 is off
	BreakerWindow       time.Duration
	BreakerDelay        time.Duration

	ConnectTimeout time.Duration

	MaxRetries        int // maxReceiveCount of the redrive policies that tendril sets
	DeadLetterReasons bool
	RespectRetryAfter bool
	BackoffMin        time.Duration // 0 is off
	BackoffMax        time.Duration // at least BackoffMin
	BackoffDoublings  int
	BackoffJitter     int // percent

	Port            int
	Healthcheck     string        // "TCP:port" or "HTTP:port/path"; "" means TCP on Target, if set, or Port
	AppReadyTimeout time.Duration // 0 is unlimited
	AppGrace        time.Duration // 0 kills at once
	RestartLimit    int           // 0 turns restarts off
	RestartWindow   time.Duration

	DeployTimeout   time.Duration
	ProcessesMin    int
	ProcessesMax    int
	AppUser         string // "NAME", "UID" or "UID:GID"; "" for tendril's own user
	AllowRoot       bool
	MachineSections string   // machineIgnore or MachineApply
	AppLimit        []string // "NAME=NUMBER" or "NAME=unlimited"
	AppLogDir       string   // absolute; may be ""
	AppLogRate      int      // lines per second and process
	PIDFile         string   // may be ""

	// ScaleTarget is ScaleNone, ScaleAuto, ScaleProcesses, ScalePublish, ScaleGroup followed by the name of an Auto
	// Scaling group, or ScaleService followed by "CLUSTER/SERVICE" of Amazon ECS.
	ScaleTarget       string
	ScaleDrainWithin  time.Duration // applies without a ScaleMeasureName only
	ScaleTargetBusy   int           // percent; applies without a ScaleMeasureName only
	ScaleInProtection string        // protectionAuto or ProtectionOff
	ScaleMinSize      int
	ScaleMaxSize      int
	ScaleCooldown     time.Duration
	// ScaleMeasureName is "CPUUtilization", "BacklogPerProcess", "OldestMessageAge" or "BusyShare". "" means no trigger,
	// and the following fields are meaningless.
	ScaleMeasureName               string
	ScaleStatistic                 string // "Average", "Minimum", "Maximum" or "Sum"
	ScaleUnit                      string // "Percent", "Count" or "Seconds"
	ScaleLowerThreshold            float64
	ScaleUpperThreshold            float64 // above ScaleLowerThreshold
	ScaleLowerBreachScaleIncrement int     // negative
	ScaleUpperBreachScaleIncrement int
	ScalePeriod                    time.Duration
	ScaleEvaluationPeriods         int
	ScaleBreachDuration            time.Duration // 0 means the duration of the periods

	DataDir     string // absolute
	Listen      string // HOST:PORT, "unix:" and a path, or both with a comma between; port 0 is any free one
	Credentials string // file; "" trusts all callers on a loopback address or socket
	TLSCert     string // PEM file; both set or both ""
	TLSKey      string
	// RegistryToken authenticates access to the registry of an embedded queue, in this process or in the tendril that
	// serves the queue; "" means a generated one. It is secret.
	RegistryToken     string
	RegistryTokenFile string // source of RegistryToken; may be ""
	RegistryInsecure  bool   // send the token even to a server that cannot prove that it knows it
	AccountID         string

	Cron           string // file; "" means the bundle's cron.yaml, if it has one
	RegistryTable  string // may be ""
	RegistryCreate bool
	Leader         string // leaderElect or LeaderLocal
	PeriodicTrust  string // trustAll or TrustRegistry
	Lease          time.Duration

	Console                  string // HOST:PORT, or Off; port 0 is any free one
	ConsoleTLSCert           string // PEM file; both set or both ""
	ConsoleTLSKey            string
	ConsoleInsecure          bool // allow an unencrypted console on any address
	ConsoleAuth              string
	ConsoleReadOnly          bool
	ConsoleBodies            string
	ConsoleTrustedProxy      []string // network prefixes
	ConsoleHosts             []string // in addition to localhost and the console's own addresses
	ConsoleToken             string   // "" means a new one at each start; secret
	ConsoleTokenFile         string   // source of ConsoleToken; may be ""
	ConsoleDrainToken        string   // for /-/drain and /-/quiet only; may be ""; secret
	ConsoleDrainTokenFile    string   // source of ConsoleDrainToken; may be ""
	HealthIgnoreClientErrors bool

	Quiet, Verbose bool // at most one is true
	LogFormat      string
	LogSample      int // lines about deliveries per second; 0 is unlimited

	CloudWatch      string // On or Off
	MetricsInterval time.Duration
	EnvironmentName string // may be ""

	ShutdownTimeout time.Duration // 0 returns all messages at once

	ConfigFile string // the file in use; may be ""
}

// QueueSettings are the complete settings of one queue. [Load] sets every field.
type QueueSettings struct {
	PerQueue
	Name string // unique; the name in URL, if set. A FIFO queue's ends in ".fifo".
	URL  string // URL or ARN; "" if the queue is embedded or known by its name only
	// Managed is true if no setting names the queue and it is on Amazon SQS: tendril creates it with the environment's
	// name.
	Managed     bool
	Region      string // the region in URL, else Settings.Region
	Weight      int    // share of free slots, 1 to 1000; 0 in every queue means strict order
	Concurrency int    // deliveries, 1 to 1000. All queues together are limited to Settings.HTTPConnections.
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
