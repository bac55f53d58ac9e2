// Package cli runs the command lines of tendril.
//
// [Execute] runs one. root.go puts the commands together; each family of commands is a package below, which
// exports a function for each command, such as inspect.NewStatus. What they share is in package base: the run's
// streams and variables, the client of the environment, output formats, dry runs and exit statuses. This package has
// the help, the completions and the hints for what was mistyped.
package cli
