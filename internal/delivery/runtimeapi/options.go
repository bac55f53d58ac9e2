package runtimeapi

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"tendril/internal/supervisor"
)

const maxInstances = 1000

// Options configure a [Pool]. Only Command is required.
type Options struct {
	// Command is the program and its arguments, run without a shell. A name without a slash is looked up in the PATH
	// of Env; a relative path is relative to Dir.
	Command []string
	// Dir is the working directory and LAMBDA_TASK_ROOT; "" means the current directory.
	Dir string
	// Env is the whole environment as NAME=value. Lambda's reserved variables override it.
	Env []string

	// User and Limits apply to the processes, see [supervisor.Process].
	User   string
	Limits map[string]string

	// Instances is the maximum number of processes, 1 to 1000; 0 means 1.
	Instances int
	// Timeout limits an invocation, up to the function's next request; 0 means 15 minutes, Lambda's maximum.
	Timeout time.Duration
	// Grace is the time between TERM and KILL; 0 means 2 s. After a timeout, KILL is sent at once, as in Lambda.
	Grace time.Duration
	// Hurry ends the grace periods of [Pool.Stop] when it is done; may be nil.
	Hurry context.Context

	// Name is the function's name, 1 to 64 of A-Z a-z 0-9 _ and -; default "function".
	Name string
	// Region and AccountID are part of the function's ARN. They default to AWS_REGION in Env or us-east-1, and
	// 000000000000.
	Region, AccountID string

	// Output receives every line, without its end and with control characters escaped. instance counts from 1; stream
	// is "stdout" or "stderr". It must be safe for concurrent use and must not keep line. If it blocks, lines are
	// dropped and counted. May be nil.
	Output func(instance int, stream string, line []byte)
	// LinesPerSecond is the maximum number of lines per process, averaged over five seconds; 0 means 1000.
	LinesPerSecond int

	Events Events
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// withDefaults returns a copy with defaults filled in. Package supervisor checks Command, User and Limits.
func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{{"Timeout", &o.Timeout, 15 * time.Minute}, {"Grace", &o.Grace, 2 * time.Second}} {
		if *d.value < 0 {
			return o, fmt.Errorf("%s is %s: it cannot be negative; 0 means %s", d.name, *d.value, d.zero)
		}
		*d.value = cmp.Or(*d.value, d.zero)
	}

	if o.Instances < 0 || o.Instances > maxInstances {
		return o, fmt.Errorf("%d instances: use 1 to %d, or 0 for 1", o.Instances, maxInstances)
	}
	o.Instances = cmp.Or(o.Instances, 1)
	if o.Hurry == nil {
		o.Hurry = context.Background()
	}

	if o.Name = cmp.Or(o.Name, "function"); len(o.Name) > 64 || !validName.MatchString(o.Name) {
		return o, fmt.Errorf("function name %q: use 1 to 64 of A-Z a-z 0-9 _ and -", o.Name)
	}

	o.AccountID = cmp.Or(o.AccountID, "000000000000")
	o.Region = cmp.Or(o.Region, lookup(o.Env, "AWS_REGION"), lookup(o.Env, "AWS_DEFAULT_REGION"), "us-east-1")
	if lookup(o.Env, "PATH") == "" {
		o.Env = append(o.Env[:len(o.Env):len(o.Env)], "PATH=/usr/local/bin:/usr/bin:/bin")
	}

	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("the function's working directory: %w", err)
	}
	return o, nil
}

// Events are the listeners of a pool. Each may be nil. Events of one process are sequential. A listener must return
// soon and must not call the pool.
type Events struct {
	// Ready is called when a process asks for its first invocation.
	Ready func(Ready)
	// InitFailed is called when a process failed before its first invocation.
	InitFailed func(InitFailed)
	// TimedOut is called when a process was killed at its time limit.
	TimedOut func(TimedOut)
	// Exited is called when a process and its group have ended, or could not be started.
	Exited func(Exited)
	// Refused is called when another program asked for invocations: for the 1st, 10th, 100th refusal and so on.
	Refused func(Refused)
	// LinesDropped is called when lines of output were dropped.
	LinesDropped func(supervisor.LinesDropped)
}

// Ready reports that a process has initialized.
type Ready struct {
	// Instance counts from 1. Numbers are reused.
	Instance, PID int
	// After is the time since the process was started.
	After time.Duration
}

// InitFailed reports that a process failed before its first invocation.
type InitFailed struct {
	Instance int
	// Type is an error type, such as "Runtime.ImportModuleError".
	Type string
	// Reason is a short description.
	Reason string
	// Pause is how long no process is started. It grows with Failures, the number of failures since the last answer.
	Failures int
	Pause    time.Duration
}

// TimedOut reports an invocation that reached its time limit.
type TimedOut struct {
	Instance  int
	RequestID string
	// Limit is the invocation's time limit.
	Limit time.Duration
}

// Exited reports how a process ended.
type Exited struct {
	// PID is 0 if the process could not be started.
	Instance, PID int
	Exit          supervisor.Exit
	// Asked is why the pool ended the process ("stopped", "time limit"), or "".
	Asked string
}

// Refused reports a request from a program that does not belong to the function.
type Refused struct {
	Instance int
	// Client describes the program, as "curl (pid 123) of user 1000".
	Client string
	// Total is the pool's number of refused requests.
	Total int
}
