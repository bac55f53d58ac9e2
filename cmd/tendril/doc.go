// Command tendril is a worker environment in one binary.
//
// The tests here run whole command lines; scripts are in testdata/script.
//
// # Signals
//
// TERM and INT drain and stop; a second one stops immediately. HUP applies changes to the settings and the app's
// folder. USR1 and TSTP pause all queues until the process exits. If a signal has paused them, USR1 resumes them. USR2
// logs the state and all goroutines.
package main
