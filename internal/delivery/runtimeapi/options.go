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

// maxInstances is the largest number of processes that one pool runs.
const maxInstances = 1000

// Options say what to run and how. Only Command is required.
type Options struct {
	// Command is the program and its arguments, run without a shell: a binary
	// built on a Lambda runtime client, or a script that speaks the Runtime API.
	// A name without a slash is looked up in the PATH of Env; one with a slash
	// that is not absolute counts from Dir.
	Command []string
	// Dir is the working directory and the LAMBDA_TASK_ROOT; "" is our own.
	Dir string
	// Env is the environment as NAME=value, for example the credentials. What
	// Lambda reserves is set over it; nothing else is inherited.
	Env []string

	// User and Limits are those of the processes: see [supervisor.Process].
	User   string
	Limits map[string]string

	// Instances is how many processes may live at once, 1 to 1000;
	// 0 means 1.
	Instances int
	// Timeout is the time limit of one invocation, up to the next time that the
	// function asks for work; 0 means 15 minutes, the longest that Lambda knows.
	Timeout time.Duration
	// Grace is how long a process may take to end after TERM before its group gets
	// KILL; 0 means 2 s. One that is past its time limit gets KILL at once, as at
	// Lambda.
	Grace time.Duration
	// Hurry ends the graces of [Pool.Stop] when it is done; nil is never.
	Hurry context.Context

	// Name is the function's name, 1 to 64 of A-Z a-z 0-9 _ and -; "" means
	// "function".
	Name string
	// Region and AccountID are those of the function's ARN. "" means the
	// AWS_REGION of Env, else us-east-1; and 000000000000.
	Region, AccountID string

	// Output takes every line that a process writes, without its end and with
	// control characters escaped. instance is 1 to Instances; stream is "stdout" or
	// "stderr". It may be called by several goroutines at once and must not keep
	// line. A sink that stalls costs lines, which are counted. nil discards output.
	Output func(instance int, stream string, line []byte)
	// LinesPerSecond is how many lines a process may write per second, averaged over
	// five seconds; more are dropped and counted. 0 means 1000.
	LinesPerSecond int

	// Events are called as things happen.
	Events Events
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// withDefaults returns a copy in which no zero is left, or says what is wrong. Command, User
// and Limits are left to package supervisor.
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

// Events are what a pool reports. Each func may be nil. Those of one process come
// in order and one at a time; those of two processes may come at once. A func
// must return soon and must not call the pool.
type Events struct {
	// Ready: a process asked for its first invocation.
	Ready func(Ready)
	// InitFailed: a process ended before that, or could not be started.
	InitFailed func(InitFailed)
	// TimedOut: an invocation met its time limit, and its process was killed.
	TimedOut func(TimedOut)
	// Exited: a process ended, and its group with it; also one that could not be
	// started.
	Exited func(Exited)
	// Refused: a program that is not the function asked for its invocations. It is reported
	// the first, the tenth, the hundredth of the pool, and so on.
	Refused func(Refused)
	// LinesDropped: output was lost. Its process is "function-" and the instance.
	LinesDropped func(supervisor.LinesDropped)
}

// Ready says that a process has done its initialization.
type Ready struct {
	// Instance is 1 to the number of instances; a successor may have the number
	// of a process that ended.
	Instance, PID int
	// After is the time since its start.
	After time.Duration
}

// InitFailed says that a process did not get as far as its first invocation.
type InitFailed struct {
	Instance int
	// Type is Lambda's name for it, or the one that the function posted
	// ("Runtime.ImportModuleError").
	Type string
	// Reason says it in a few words.
	Reason string
	// Pause is how long no process is started; it grows with Failures, the
	// number of failures since the last invocation that was answered.
	Failures int
	Pause    time.Duration
}

// TimedOut says that an invocation met its time limit.
type TimedOut struct {
	Instance  int
	RequestID string
	// Limit is the time that it had.
	Limit time.Duration
}

// Exited says how a process ended.
type Exited struct {
	// PID is 0 when the process could not be started.
	Instance, PID int
	Exit          supervisor.Exit
	// Asked tells why we ended it ("stopped", "time limit"); "" when it ended by
	// itself.
	Asked string
}

// Refused says that a program was refused that the process did not start.
type Refused struct {
	Instance int
	// Client names the program, as "curl (pid 123) of user 1000".
	Client string
	// Total is how many requests the pool has refused.
	Total int
}
