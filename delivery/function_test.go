package delivery

import (
	"errors"
	"testing"

	"tendril/runtimeapi"
)

// What a command line holds beside its program is not shown: it may be a secret.
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
