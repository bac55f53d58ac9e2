// Package cli implements the tendril command.
//
// Each family of commands is a subpackage with a function per command, such as inspect.NewStatus. Package base has
// their common code. This package adds help, completions and suggestions for mistyped commands.
package cli
