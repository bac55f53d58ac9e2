package supervisor

import (
	"strings"
	"testing"
)

func TestNewRefusesBadProcesses(t *testing.T) {
	t.Parallel()
	web := Process{Name: "web", Shell: "true", Port: 5000}
	tests := []struct {
		name  string
		procs []Process
		want  string
	}{
		{"none", nil, "no process to run"},
		{"no name", []Process{{Shell: "true"}}, "use 1 to 64 of"},
		{"name with a blank", []Process{{Name: "a b", Shell: "true"}}, `process name "a b"`},
		{"long name", []Process{{Name: strings.Repeat("a", 65), Shell: "true"}}, "use 1 to 64 of"},
		{"no command", []Process{{Name: "web"}}, "process web has no command"},
		{"two commands", []Process{{Name: "web", Shell: "a", Argv: []string{"b"}}}, "use only one of them"},
		{"empty program", []Process{{Name: "web", Argv: []string{""}}}, "empty program name"},
		{"NUL in the line", []Process{{Name: "web", Shell: "a\x00b"}}, "NUL byte"},
		{"NUL in an argument", []Process{{Name: "web", Argv: []string{"a", "\x00"}}}, "NUL byte"},
		{"bad port", []Process{{Name: "web", Shell: "true", Port: 70000}}, "port 70000: use 1 to 65535"},
		{"bad check", []Process{{Name: "web", Shell: "true", Check: Check{Port: 80, Path: "x"}}}, "begins with a slash"},
		{"check without a port", []Process{{Name: "web", Shell: "true", Check: Check{Path: "/x"}}}, "invalid port 0"},
		{"nameless variable", []Process{{Name: "web", Shell: "true", Env: []string{"A=1", "=x"}}},
			"entry 2 of the environment"},
		{"variable without a value", []Process{{Name: "web", Shell: "true", Env: []string{"SECRET"}}}, "use NAME=value"},
		{"NUL in a variable", []Process{{Name: "web", Shell: "true", Env: []string{"A=hunter2\x00"}}},
			`variable "A" contains a NUL`},
		{"same name", []Process{web, {Name: "web", Shell: "true"}}, "duplicate process name web"},
		{"same port", []Process{web, {Name: "api", Shell: "true", Port: 5000}}, "web and api have the same port 5000"},
	}
	for _, tt := range tests {
		_, err := New(tt.procs, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows a variable's value: %v", tt.name, err)
		}
	}
	if _, err := New([]Process{web, {Name: "clock-1", Argv: []string{"true"}}, {Name: "clock_2", Shell: "true"}},
		nil); err != nil {
		t.Errorf("good processes are refused: %v", err)
	}
}

func TestNegativeRestartLimitDisablesRestarts(t *testing.T) {
	t.Parallel()
	if never := (&Options{RestartLimit: -1}).withDefaults(); never.RestartLimit != 0 {
		t.Errorf("RestartLimit -1 becomes %d, want 0 restarts", never.RestartLimit)
	}
}

func TestDefaultCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		proc Process
		want Check
	}{
		{Process{}, Check{}},
		{Process{Port: 5000}, Check{Port: 5000}},
		{Process{Port: 5000, Check: Check{Port: 6000, Path: "/up"}}, Check{Port: 6000, Path: "/up"}},
		{Process{Check: Check{Port: 6000}}, Check{Port: 6000}},
	}
	for _, tt := range tests {
		if got := tt.proc.check(); got != tt.want {
			t.Errorf("check of %+v = %v, want %v", tt.proc, got, tt.want)
		}
	}
}
