// Command tendril runs its arguments.
//
// One binary is everything: `tendril up` runs a worker environment, `tendril serve` the embedded queue alone, and the
// other commands talk to a running environment or to Amazon SQS. They are in package cli and the packages below it. The
// tests here run whole command lines; scripts are in testdata/script.
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
package main
