package config

import (
	"strings"
	"time"
)

// Values of Backend.
const (
	backendAuto     = "auto" // resolved by [Load]: sqs for a URL, an ARN or a function on AWS, otherwise embedded
	BackendEmbedded = "embedded"
	BackendSQS      = "sqs"
)

// Values of ConsoleAuth.
const (
	consoleAuthToken = "token"
	ConsoleAuthNone  = "none" // allows every caller on a loopback address
)

// Values of ConsoleBodies.
const (
	consoleBodiesShown  = "shown"
	ConsoleBodiesHidden = "hidden" // until the user requests a body
)

// Values of Leader, which selects the instance that enqueues periodic tasks.
const (
	leaderElect = "elect" // by the instances that share a registry
	LeaderLocal = "local" // this instance, which must be the only one
)

// Values of RolloutPolicy and RolloutBatchSizeType, as in Elastic Beanstalk.
const (
	RolloutAllAtOnce = "AllAtOnce"

	RolloutRolling    = "Rolling"
	RolloutPercentage = "Percentage"
	rolloutFixed      = "Fixed"
)

// foreignPolicies need new instances or a load balancer.
func foreignPolicies() []string {
	return []string{"RollingWithAdditionalBatch", "Immutable", "TrafficSplitting"}
}

// Values of PeriodicTrust, which selects the messages accepted as periodic tasks.
const (
	trustAll      = "all"      // every message with a periodic task's attributes, as in aws-sqsd
	TrustRegistry = "registry" // only runs in the registry
)

// Values of CloudWatch. Off is also a value of Console and several other options.
const (
	Off = "off"
	On  = "on"
	// auto depends on the queues and the environment's name; resolved by [Load].
	auto = "auto"
)

// Values of LogFormat.
const (
	LogAuto = "auto" // LogText on a terminal, otherwise logJSON
	LogText = "text"
	logJSON = "json"
	LogSQSD = "sqsd" // LogText with deliveries in the format of aws-sqsd
)

// Values of MachineSections.
const (
	machineIgnore = "ignore"
	MachineApply  = "apply"
)

// PerQueue holds the options that individual queues can override.
type PerQueue struct {
	Backend string
	MaxWait time.Duration // 0 disables it
	// Target is an http, https or unix URL without a path (with unix, the path is the socket's). "" means the
	// supervised app on Port, unless Function or Lambda is set. At most one of the three is set.
	Target            string
	Function          string
	Lambda            string
	TargetCA          string
	TargetCert        string
	TargetKey         string
	HTTPPath          string
	MimeType          string
	TerminalCodes     string
	BatchSize         int
	BatchWindow       time.Duration
	SigningSecret     []string
	SigningSecretFile string
	Filter            string // in the format of package filter; "" matches all messages
	ViaSNS            bool
	InactivityTimeout time.Duration
	Deadline          time.Duration // 0 is unlimited
	VisibilityTimeout time.Duration // 0 does not hide messages
	// ErrorVisibilityTimeout starts at the failure. Nil keeps the visibility timeout of the receive; 0 retries
	// immediately.
	ErrorVisibilityTimeout *time.Duration
	RetentionPeriod        time.Duration // since the first receive
}

// Settings holds the values of all options.
type Settings struct {
	// PerQueue applies to queues that do not override it. Backend, Queue and QueueURL belong to the first queue.
	PerQueue
	Name   string
	Queues []QueueSettings // 1 to 64, with unique names
	// Strict serves a queue only while all queues before it are empty. Otherwise, free slots are offered to the queues
	// in proportion to their Weight.
	Strict   bool
	QueueURL string // "" for an embedded queue or one known by its name only
	Queue    string
	Region   string
	// EndpointURL is the address of the SQS API; "" means AWS_ENDPOINT_URL_SQS or the AWS SDK's default.
	EndpointURL     string
	WaitTime        time.Duration // less than 1 s means 1 s
	Sleep           time.Duration // 0 disables it
	DeleteLinger    time.Duration // 0 sends each delete immediately
	HTTPConnections int           // maximum concurrent deliveries of all queues
	SuccessCodes    string        // sorted, without overlaps: "200,202-204"
	HeaderBudget    int64
	Keepalive       bool
	S3Payloads      []string // bucket names; if empty, pointers are delivered unchanged
	FunctionTimeout time.Duration

	Rate                float64 // deliveries per second; 0 is unlimited
	AdaptiveConcurrency bool
	Breaker             int
	BreakerWindow       time.Duration
	BreakerDelay        time.Duration

	ConnectTimeout time.Duration

	MaxRetries        int
	DeadLetterReasons bool
	RespectRetryAfter bool
	BackoffMin        time.Duration // 0 disables it
	BackoffMax        time.Duration
	BackoffDoublings  int
	BackoffJitter     int

	Port            int
	Healthcheck     string        // "TCP:port" or "HTTP:port/path"; "" means TCP on Target, if set, otherwise Port
	AppReadyTimeout time.Duration // 0 is unlimited
	AppGrace        time.Duration // 0 kills the app immediately
	RestartLimit    int           // 0 disables restarts
	RestartWindow   time.Duration

	DeployTimeout   time.Duration
	ProcessesMin    int
	ProcessesMax    int
	AppUser         string // "NAME", "UID" or "UID:GID"; "" means tendril's own
	AllowRoot       bool
	MachineSections string
	AppLimit        []string
	AppLogDir       string
	AppLogRate      int // lines per second of each process
	PIDFile         string

	// ScaleTarget is a Scale constant, followed by a name in the case of ScaleGroup and ScaleService.
	ScaleTarget       string
	ScaleDrainWithin  time.Duration // only without a ScaleMeasureName
	ScaleTargetBusy   int           // percentage; only without a ScaleMeasureName
	ScaleInProtection string
	ScaleMinSize      int
	ScaleMaxSize      int
	ScaleCooldown     time.Duration
	// ScaleMeasureName is "CPUUtilization", "BacklogPerProcess", "OldestMessageAge" or "BusyShare". Without it, the
	// Scale fields below are unused.
	ScaleMeasureName               string
	ScaleCPUSource                 string
	ScaleStatistic                 string
	ScaleUnit                      string
	ScaleLowerThreshold            float64
	ScaleUpperThreshold            float64
	ScaleLowerBreachScaleIncrement int
	ScaleUpperBreachScaleIncrement int
	ScalePeriod                    time.Duration
	ScaleEvaluationPeriods         int
	ScaleBreachDuration            time.Duration // 0 means the total of the evaluation periods

	DataDir     string
	Listen      string // HOST:PORT, "unix:" and a path, or both with a comma; port 0 is any free one
	Credentials string // file; "" accepts all callers, only on a loopback address or a socket
	TLSCert     string
	TLSKey      string
	// FleetKey signs the desired state of all instances; see instances.FleetKey.
	FleetKey     string
	FleetKeyFile string
	// Versions is a shared folder or s3://BUCKET/PREFIX; "" means the tendril that serves the queue.
	Versions             string
	RolloutPolicy        string
	RolloutBatchSizeType string
	RolloutBatchSize     int
	RolloutTimeout       time.Duration
	RolloutIgnoreHealth  bool
	// RegistryToken gives access to the registry of an embedded queue, here or in another tendril; "" means a generated
	// token.
	RegistryToken     string
	RegistryTokenFile string
	RegistryInsecure  bool // send the token even to a server that cannot prove that it has it
	AccountID         string

	Cron           string // file; "" means the bundle's cron.yaml, if any
	RegistryTable  string
	RegistryCreate bool
	// RegistryLostAfter limits receiving while the shared registry is unreachable; 0 means no limit.
	RegistryLostAfter time.Duration
	Leader            string
	PeriodicTrust     string
	Lease             time.Duration

	Console                  string // HOST:PORT or Off; port 0 means any free port
	ConsoleTLSCert           string
	ConsoleTLSKey            string
	ConsoleInsecure          bool // unencrypted on any address
	ConsoleAuth              string
	ConsoleReadOnly          bool
	ConsoleBodies            string
	ConsoleTrustedProxy      []string
	ConsoleHosts             []string // besides localhost and the console's own addresses
	ConsoleToken             string   // "" means a new token at each start
	ConsoleTokenFile         string
	ConsoleDrainToken        string // only for /-/drain and /-/quiet
	ConsoleDrainTokenFile    string
	HealthIgnoreClientErrors bool

	Quiet, Verbose bool
	LogFormat      string
	LogSample      int // lines per second about deliveries; 0 is unlimited

	CloudWatch      string
	MetricsInterval time.Duration
	EnvironmentName string

	ShutdownTimeout time.Duration // 0 returns all messages immediately

	ConfigFile string
}

// QueueSettings holds the complete settings of one queue.
type QueueSettings struct {
	PerQueue
	Name string // unique; from URL if that is set
	URL  string // "" for an embedded queue or one known by its name only
	// Managed means that no setting names the queue: tendril creates it on Amazon SQS under the environment's name.
	Managed     bool
	Region      string // from URL if possible, otherwise Settings.Region
	Weight      int
	Max         int // the queue's own maximum of concurrent deliveries, 0 for none
	Concurrency int // Max, or Settings.HTTPConnections without one; the latter limits all queues together
}

// FIFO reports whether the queue's name ends in ".fifo".
func (q *QueueSettings) FIFO() bool { return strings.HasSuffix(q.Name, fifoSuffix) }

// ToFunction reports whether messages go to a Lambda function, on AWS or local.
func (p *PerQueue) ToFunction() bool { return p.Function != "" || p.Lambda != "" }

// ToOwnApp reports whether messages go to the supervised app.
func (q *QueueSettings) ToOwnApp() bool { return q.Target == "" && !q.ToFunction() }

func (q *QueueSettings) reference() string {
	if q.URL != "" {
		return q.URL
	}
	return q.Name
}

const unixPrefix = "unix:"

// ListenOn returns the address and the unix socket path of the SQS endpoint; either may be "".
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

func (s *Settings) anyToFunction() bool {
	return s.any((*QueueSettings).ToFunction)
}

func (s *Settings) anyToApp() bool {
	return s.any(func(q *QueueSettings) bool { return !q.ToFunction() })
}

func (s *Settings) anyTLS() bool {
	return s.any(func(q *QueueSettings) bool {
		return !q.ToFunction() && strings.HasPrefix(q.Target, "https:")
	})
}

// Values of ScaleTarget, which selects what is scaled.
const (
	ScaleNone      = "none"
	ScaleAuto      = "auto"      // this instance's group or ECS service, or the processes of a standalone instance
	ScaleProcesses = "processes" // the app's, on this machine
	ScalePublish   = "publish"   // for another scaler, which gets the backlog
	ScaleGroup     = "asg:"      // followed by an Auto Scaling group's name
	ScaleService   = "ecs:"      // followed by "CLUSTER/SERVICE"
)

// ScalesInstances reports whether the target is certain to be instances rather than local processes.
func (s *Settings) ScalesInstances() bool {
	return s.ScaleTarget == ScalePublish || strings.HasPrefix(s.ScaleTarget, ScaleGroup) ||
		strings.HasPrefix(s.ScaleTarget, ScaleService)
}
