// Package cli implements the tendril command.
//
// root.go assembles the commands. Each family of commands is a subpackage with a function per command, such as
// inspect.NewStatus. They share package base: streams and variables, the client of the environment, output formats, dry
// runs and exit statuses. This package adds help, completions and suggestions for mistyped commands.
package cli
