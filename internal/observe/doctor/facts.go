package doctor

import "time"

// Facts describe an environment and its machine. Unknown facts are zero.
type Facts struct {
	Running      bool
	Health       []Finding
	HealthStatus string
	Queues       []Queue
	Apps         []App
	Problems     []Problem
	Secrets      []Problem
	// Unchecked is the reason that Permissions are unknown, or "".
	Permissions  []Permission
	Unchecked    string
	Clocks       []Clock
	Proxies      []Proxy
	Ports        []Port
	Certificates []Certificate
	Disk         Disk
	OpenFiles    OpenFiles
	Zones        Zones
	// OpenEndpoint is the address of queues that every local user can use, or "". OtherUsers can log in to the machine.
	OpenEndpoint string
	OtherUsers   []string
}

// Queue describes a queue and its settings.
type Queue struct {
	Name          string
	URL           string
	OnSQS         bool
	SeveralQueues bool
	// Managed means that 'tendril up' creates the queue.
	Managed, Missing bool
	// Attributes is nil if unknown.
	Attributes map[string]string
	// Dead is nil if absent or unknown.
	Dead  *DeadLetterQueue
	Times Times
}

// DeadLetterQueue describes a queue's dead-letter queue.
type DeadLetterQueue struct {
	Name, URL string
	// Missing means that the queue named in the redrive policy does not exist.
	Missing    bool
	Attributes map[string]string
}

// Times are a queue's time settings.
type Times struct {
	// Retention is how long a message is retried after its first receive.
	Visibility, Retention time.Duration
	// Attempt limits a delivery attempt; 0 skips the check. AttemptText names the settings behind it.
	Attempt     time.Duration
	AttemptText string
	// Pause returns the longest delay after an attempt, counted from 1; nil skips the check.
	Pause func(attempt int) time.Duration
	// MaxRetries applies to a queue without a redrive policy.
	MaxRetries    int
	TerminalCodes string
}

// App describes a target of messages.
type App struct {
	Target          string
	Own             bool
	Problem, Remedy string
}

// Problem is reported as a finding.
type Problem struct{ ID, What, Why, Remedy string }

// Permission is an AWS action and whether the role allows it.
type Permission struct {
	Action, Resource string
	Feature          string
	Allowed          bool
}

// Clock is the state of a server's clock.
type Clock struct {
	Server string
	// Ahead is relative to this machine's clock, to within about a second.
	Ahead  time.Duration
	Signed bool
}

// Proxy describes a proxy between tendril and the app.
type Proxy struct {
	// Where is the file and line of the timeout; "" for the default.
	Target, Name, Where string
	Timeout, Attempt    time.Duration
}

// Port describes an address on which the environment listens.
type Port struct {
	Name, Option, Use, At string
	// Holder is the process that listens there, or "". Set means that Option is not the default.
	Holder  string
	Set     bool
	Free    string
	Refused string
}

// Disk describes the disk that holds the data directory.
type Disk struct {
	Path string
	// Free and Total are in bytes. Sync is the duration of a small synchronous write.
	Free, Total int64
	Sync        time.Duration
	Kind        string
	Problem     string
	Embedded    bool
}

// OpenFiles compares the limit on open files with the required number.
type OpenFiles struct {
	Limit, Needed int // Limit is 0 if unknown
}

// Zones describes the time zone database.
type Zones struct {
	// System is the folder of the database, or "".
	Checked bool
	System  string
	App     bool
}
