package doctor

import "time"

// Facts are what is known about an environment and its machine. A part that is not known is its zero value.
type Facts struct {
	// Running is whether the facts are about a running process, and not about what would be started.
	Running bool
	// Health is what lowers the health of the running environment, or what else it says; HealthStatus its status in one
	// word, "" where it is not known.
	Health       []Cause
	HealthStatus string
	// Queues are those that are worked on.
	Queues []Queue
	// Apps are what messages are posted to.
	Apps []App
	// Problems are what stood in the way of finding out the rest.
	Problems []Problem
	// Permissions are what the role may do on AWS; Unchecked says why that is not known, "" where it is.
	Permissions []Permission
	Unchecked   string
	Clocks      []Clock
	Proxies     []Proxy
	Ports       []Port
	// Certificates are the files that are in use, or would be.
	Certificates []Certificate
	Disk         Disk
	OpenFiles    OpenFiles
	Zones        Zones
	// OpenEndpoint is the address at which every user of this machine may use the queues, "" for none; OtherUsers are
	// the users other than this one who can log in here.
	OpenEndpoint string
	OtherUsers   []string
}

// Cause is one sentence of the health, and how bad it is.
type Cause struct {
	Level Level
	Text  string
}

// Queue is a queue with the settings for it.
type Queue struct {
	// Name, URL and OnSQS tell which one it is; Several whether there are others beside it.
	Name    string
	URL     string
	OnSQS   bool
	Several bool
	// Managed tells that 'tendril up' creates it, and Missing that it does not exist now.
	Managed, Missing bool
	// Attributes are those of the queue, by their SQS names; nil when they are not known.
	Attributes map[string]string
	// Dead is the dead-letter queue; nil when there is none, or when it is not known.
	Dead  *DeadLetterQueue
	Times Times
}

// DeadLetterQueue is the dead-letter queue of a queue.
type DeadLetterQueue struct {
	Name, URL string
	// Missing tells that the policy names a queue that does not exist.
	Missing bool
	// Attributes are those of the queue, by their SQS names; nil when they are not known.
	Attributes map[string]string
}

// Times are the settings of time of one queue.
type Times struct {
	// Visibility is what each receive asks for, Retention how long after its first receive a message is tried.
	Visibility, Retention time.Duration
	// Attempt is the longest that one attempt may take without an answer; 0 leaves it out. AttemptText says which
	// settings it follows from.
	Attempt     time.Duration
	AttemptText string
	// Pause returns the longest time from an attempt, 1 for the first, to the next one; nil leaves it out.
	Pause func(attempt int) time.Duration
	// MaxRetries is the number of receives where the queue has no redrive policy yet.
	MaxRetries int
	// TerminalCodes are the statuses that send a message to the dead-letter queue at once; "" for none.
	TerminalCodes string
}

// App is what the messages of queues are posted to.
type App struct {
	// Target is its URL or command; Own tells that tendril starts it.
	Target string
	Own    bool
	// Problem is why it does not answer, "" when it does; Remedy what to type, where that is known.
	Problem, Remedy string
}

// Problem is something that is wrong by itself, such as a service that does not answer. ID names it for programs.
type Problem struct{ ID, What, Why, Remedy string }

// Permission is whether the role may do something on AWS.
type Permission struct {
	Action, Resource string
	// Feature is what it is for: the Sid of the statement in the policy.
	Feature string
	Allowed bool
}

// Clock is the clock of a server, as the Date of its answer tells it.
type Clock struct {
	Server string
	// Ahead is how far it is ahead of the clock of this machine, to about a second.
	Ahead time.Duration
	// Signed tells that requests to it carry a signature with the time.
	Signed bool
}

// Proxy is a server between tendril and the app.
type Proxy struct {
	// Target is what is reached through it, Name the program, and Where its file and line; "" for its default.
	Target, Name, Where string
	// Timeout is how long it waits for the app; Attempt how long tendril does.
	Timeout, Attempt time.Duration
}

// Port is an address that the environment listens on.
type Port struct {
	// Name is a word for it, Option the option that sets it, Use what it is for, and At the address.
	Name, Option, Use, At string
	// Holder is who listens there now, "" for nobody; Set tells that somebody set the option.
	Holder string
	Set    bool
	// Free is the address that 'tendril up' takes instead, "" for none.
	Free string
	// Refused is why a running environment cannot be reached there; "" where it can.
	Refused string
}

// Disk is where the data directory lies.
type Disk struct {
	// Path is the data directory, "" when it was not looked at.
	Path string
	// Free and Total are bytes, Sync the time that a small write takes to be on disk.
	Free, Total int64
	Sync        time.Duration
	// Kind names the file system where it is one over a network, "" for a local one.
	Kind string
	// Problem is why nothing can be written there, "" when it can.
	Problem string
	// Embedded tells that queues lie there.
	Embedded bool
}

// OpenFiles are how many files the process may open.
type OpenFiles struct {
	// Limit is 0 when it is not known; Needed is what deliveries, app and queues take.
	Limit, Needed int
}

// Zones are the time zones of the machine.
type Zones struct {
	// Looked tells that they were looked at; System is the folder of the system's database, "" for none.
	Looked bool
	System string
	// App tells that an app runs on this machine.
	App bool
}
