// Command tendril turns arguments into settings and runs them.
//
// One binary is everything: `tendril up` runs a worker environment, `tendril
// serve` the embedded queue alone, and the other subcommands talk to a running
// environment or to Amazon SQS. One file holds one subcommand; root.go puts
// them together; exit.go says which exit status means what. Signals, flags and
// exits are known only here.
//
// # Ports
//
// 127.0.0.1:9324 is the embedded queue (SQS protocol), 127.0.0.1:9325 the
// console (health and the JSON API). The app listens on 5000 unless told
// otherwise.
//
// # Signals
//
// TERM and INT drain and stop; a second one stops at once. HUP reads the
// periodic tasks anew.
package main
