// Package event defines the events of an environment, such as deployments and pauses.
//
// The code that causes an event calls [Kind.Log]. The log prints it and passes it to a [Listener].
package event
