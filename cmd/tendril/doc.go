// Command tendril is a worker environment in one binary.
//
// `tendril up` runs a worker environment, `tendril serve` only the embedded queue. The other commands use a running
// environment or Amazon SQS. Package cli implements them. The tests here run whole command lines; scripts are in
// testdata/script.
//
// # Ports
//
// 127.0.0.1:9324 is the embedded queue (SQS protocol), 127.0.0.1:9325 the console (health and JSON API). The app's
// default port is 5000.
//
// # Signals
//
// TERM and INT drain and stop; a second one stops immediately. HUP applies changes to the settings and the app's
// folder. USR1 and TSTP pause all queues, or resume them. USR2 logs the state and all goroutines.
package main
