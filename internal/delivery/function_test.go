package delivery

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"tendril/internal/delivery/runtimeapi"
	"tendril/internal/supervisor"
)

func TestFunctionsAreNamedAfterTheirPrograms(t *testing.T) {
	t.Parallel()
	var functions Functions
	for _, f := range []struct{ command, want string }{
		{"./bin/resize", "lambda: resize"},
		{"python3 -m awslambdaric app.handler --key hunter2", "lambda: python3"},
		{"/usr/bin/python3 other.py", "lambda: python3 (2)"},
		{"KEY=hunter2 exec node index.js", "lambda: node"},
		{"KEY='hunter2 x' ./fn", "lambda: function"},
		{`KEY=hunter2\ x ./fn`, "lambda: function (2)"},
		{"KEY=hunter2; ./fn", "lambda: function (3)"},
		{"echo hunter2|./fn", "lambda: echo"},
		{"$HOME/fn", "lambda: function (4)"},
		{"KEY=hunter2", "lambda: function (5)"},
	} {
		function, err := functions.Open(f.command, func() (*runtimeapi.Pool, error) { return nil, nil })
		if err != nil || function.Name != f.want {
			t.Errorf("%s is called %q, want %q (%v)", f.command, function.Name, f.want, err)
		}
		again, err := functions.Open(f.command, func() (*runtimeapi.Pool, error) { return nil, errors.New("started twice") })
		if again != function || err != nil {
			t.Errorf("%s is opened again: %v", f.command, err)
		}
	}
}

func TestFunctionThatDoesNotStartIsNotKept(t *testing.T) {
	t.Parallel()
	var functions Functions
	failure := errors.New("no such file")
	_, err := functions.Open("./fn", func() (*runtimeapi.Pool, error) { return nil, failure })
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	function, err := functions.Open("./fn", func() (*runtimeapi.Pool, error) { return nil, nil })
	if err != nil || function.Name != "lambda: fn" {
		t.Errorf("started again: %+v, %v", function, err)
	}
}

func TestFunctionEventsAreLogged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		stopping bool
		happens  func(runtimeapi.Events)
		want     string
	}{
		{"ready", false, func(e runtimeapi.Events) {
			e.Ready(runtimeapi.Ready{Instance: 2, PID: 7, After: 120 * time.Millisecond})
		}, `level=INFO msg="function ready" component=function.2 pid=7 duration_ms=120`},
		{"not started", false, func(e runtimeapi.Events) {
			e.InitFailed(runtimeapi.InitFailed{Instance: 1, Type: "Runtime.ExitError", Reason: "exit status 1",
				Pause: 2 * time.Second})
		}, `level=WARN msg="function failed to start" component=function.1 reason=Runtime.ExitError err="exit status 1" ` +
			`retry_in=2s`},
		{"too slow", false, func(e runtimeapi.Events) {
			e.TimedOut(runtimeapi.TimedOut{Instance: 1, Limit: 3 * time.Second})
		}, `level=WARN msg="function timed out and was killed" component=function.1 timeout=3s`},
		{"a program of others", false, func(e runtimeapi.Events) {
			e.Refused(runtimeapi.Refused{Instance: 1, Client: "curl (pid 123) of user 1000", Total: 4})
		}, `level=WARN msg="request for messages rejected: not from a process of the function" component=function.1 ` +
			`client="curl (pid 123) of user 1000" refused=4`},
		{"ended by itself", false, func(e runtimeapi.Events) {
			e.Exited(runtimeapi.Exited{Instance: 3, PID: 9, Exit: supervisor.Exit{Code: 1}})
		}, `level=WARN msg="function process exited" component=function.3 pid=9 reason="exit status 1"`},
		{"ended as asked", false, func(e runtimeapi.Events) {
			e.Exited(runtimeapi.Exited{Instance: 3, PID: 9, Exit: supervisor.Exit{Signal: "SIGKILL"}, Asked: "time limit"})
		}, `level=DEBUG msg="function process exited" component=function.3 pid=9 reason="killed by SIGKILL"`},
		{"ended while tendril stops", true, func(e runtimeapi.Events) {
			e.Exited(runtimeapi.Exited{Instance: 3, PID: 9, Exit: supervisor.Exit{Signal: "SIGTERM"}})
		}, `level=DEBUG msg="function process exited" component=function.3 pid=9 reason="killed by SIGTERM"`},
	} {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
		stopping := func() bool { return tt.stopping }
		tt.happens(LogFunction(log, stopping))
		if got := out.String(); got != tt.want+"\n" {
			t.Errorf("%s: got\n%swant\n%s", tt.name, got, tt.want)
		}
		tt.happens(LogFunction(nil, stopping))
	}
}
