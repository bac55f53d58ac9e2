// Package event defines the events of an environment, such as deployments and pauses.
//
// The code that causes an event reports it once with [Kind.Log]. The log prints it and passes it on to a [Listener],
// which stores it on disk and displays it in the console.
package event
