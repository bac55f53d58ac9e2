package delivery

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path"
	"regexp"
	"strings"

	"tendril/internal/delivery/runtimeapi"
)

// Functions contains the local Lambda functions of an environment. It is not safe for concurrent use.
type Functions struct {
	byCommand map[string]*Function
}

// Function is a local Lambda function.
type Function struct {
	*runtimeapi.Pool
	// Name identifies the function in logs, metrics and the status.
	Name string
}

// Open returns the function for a command. The first call creates it with start.
func (f *Functions) Open(command string, start func() (*runtimeapi.Pool, error)) (*Function, error) {
	if function := f.byCommand[command]; function != nil {
		return function, nil
	}
	pool, err := start()
	if err != nil {
		return nil, err
	}
	if f.byCommand == nil {
		f.byCommand = map[string]*Function{}
	}
	function := &Function{pool, f.newName(command)}
	f.byCommand[command] = function
	return function, nil
}

// newName omits arguments, which may be secret: names are visible without the console's token.
func (f *Functions) newName(command string) string {
	program := programName(command)
	number := 1
	for other := range f.byCommand {
		if programName(other) == program {
			number++
		}
	}
	if number == 1 {
		return "lambda: " + program
	}
	return fmt.Sprintf("lambda: %s (%d)", program, number)
}

var (
	plainAssignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=[A-Za-z0-9_./:@%+,-]*$`)
	plainPath       = regexp.MustCompile(`^[A-Za-z0-9_./@%+-]+$`)
)

func programName(command string) string {
	for word := range strings.FieldsSeq(command) {
		switch {
		case word == "exec", plainAssignment.MatchString(word):
		case plainPath.MatchString(word):
			return path.Base(word)
		default:
			return "function"
		}
	}
	return "function"
}

// LogFunction returns listeners that log a function's events to log, which may be nil. stopping reports whether exits
// are expected.
func LogFunction(log *slog.Logger, stopping func() bool) runtimeapi.Events {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	process := func(instance int) *slog.Logger { return log.With("component", fmt.Sprintf("function.%d", instance)) }

	return runtimeapi.Events{
		Ready: func(r runtimeapi.Ready) {
			process(r.Instance).Info("function ready", "pid", r.PID, "duration_ms", r.After.Milliseconds())
		},
		InitFailed: func(f runtimeapi.InitFailed) {
			process(f.Instance).Warn("function failed to start", "reason", f.Type, "err", f.Reason,
				"retry_in", f.Pause.String())
		},
		TimedOut: func(t runtimeapi.TimedOut) {
			process(t.Instance).Warn("function timed out and was killed", "timeout", t.Limit.String())
		},
		Refused: func(r runtimeapi.Refused) {
			process(r.Instance).Warn("request for messages rejected: not from a process of the function",
				"client", r.Client, "refused", r.Total)
		},
		Exited: func(x runtimeapi.Exited) {
			level := slog.LevelWarn
			if x.Asked != "" || stopping() {
				level = slog.LevelDebug
			}
			process(x.Instance).Log(context.Background(), level, "function process exited",
				"pid", x.PID, "reason", x.Exit.String())
		},
	}
}
