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
	// OpenEndpoint is an endpoint whose queues every local user can use, or "". OtherUsers are the other users who can
	// log in.
	OpenEndpoint string
	OtherUsers   []string
}

// Queue describes a queue and its settings.
type Queue struct {
	Name    string
	URL     string
	OnSQS   bool
	Several bool
	// Missing means that the queue does not exist, and Managed that 'tendril up' creates it.
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
	// Missing means that the redrive policy names a queue that does not exist.
	Missing    bool
	Attributes map[string]string
}

// Times are a queue's time settings.
type Times struct {
	// A message is received with the timeout Visibility and retried for Retention after its first receive.
	Visibility, Retention time.Duration
	// Attempt is the maximum duration of a delivery attempt without a response; 0 skips the check. AttemptText names
	// the settings that determine it.
	Attempt     time.Duration
	AttemptText string
	// Pause returns the longest delay after the given attempt, from 1; nil skips the check.
	Pause func(attempt int) time.Duration
	// MaxRetries applies to a queue without a redrive policy.
	MaxRetries    int
	TerminalCodes string
}

// App describes a target of messages.
type App struct {
	// Target is a URL or command. Own means that tendril starts the app.
	Target          string
	Own             bool
	Problem, Remedy string
}

// Problem is reported unchanged as a finding.
type Problem struct{ ID, What, Why, Remedy string }

// Permission is an AWS action and whether the role allows it.
type Permission struct {
	Action, Resource string
	Feature          string
	Allowed          bool
}

// Clock describes a server's clock.
type Clock struct {
	Server string
	// Ahead is how far the clock is ahead of this machine's, to within about a second.
	Ahead  time.Duration
	Signed bool
}

// Proxy describes a proxy between tendril and the app.
type Proxy struct {
	// Where is the file and line that set the timeout; "" for the default.
	Target, Name, Where string
	// The proxy waits Timeout for the app, and tendril waits Attempt.
	Timeout, Attempt time.Duration
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

// Zones describes the machine's time zone database.
type Zones struct {
	// System is a folder; "" if absent or not Checked.
	Checked bool
	System  string
	App     bool
}
