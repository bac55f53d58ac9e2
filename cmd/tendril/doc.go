// Command tendril turns arguments into settings and runs them.
//
// One binary is everything: `tendril up` runs a worker environment, `tendril
// serve` the embedded queue alone, and the other subcommands talk to a running
// environment or to Amazon SQS. Each subcommand is a function of cli, which holds everything
// that one run of the command reads and writes; root.go puts them
// together; exit.go says which exit status means what. Signals, flags and exits
// are known only here.
//
// # What a command prints, and what it changes
//
// A command that shows something hands its value, how people see it, and its identifiers to
// prints or asks, and has -o table, json, yaml and name by that. One that changes something
// hands a plan to changes, and has --dry-run by that. A test knows every command, and fails
// when a new one has neither.
//
// # Ports
//
// 127.0.0.1:9324 is the embedded queue (SQS protocol), 127.0.0.1:9325 the
// console (health and the JSON API). The app listens on 5000 unless told
// otherwise.
//
// # Signals
//
// TERM and INT drain and stop; a second one stops at once. HUP applies what changed
// in the settings and in the app's folder. USR1 and TSTP pause all queues, and resume
// them when they come again. USR2 writes the state and all goroutines to the log.
//
// # Its size
//
// The package has more than 4,000 lines because every command has its flags, its help, its
// texts and its exit statuses here; a command is one file.
package main
