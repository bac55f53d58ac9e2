// Package event has the events of an environment: what people look for later, such as a deployment or a pause.
//
// The place where something happens reports it once, with [Kind.Log]. The log prints it, and passes it on to a
// [Listener], which keeps events on disk and shows them in the console.
package event
