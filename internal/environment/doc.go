// Package environment builds every part of a worker environment, starts them in order and stops them in reverse.
//
// It is the only package that knows all others. [New] takes checked settings,
// [Environment.Run] starts the environment, waits until it is told to stop or a
// part fails, and stops it again:
//
//	New ── Start: queues ── console ── workers ── app ── periodic tasks ── scaling
//	                                                                          |
//	       Stop:  queues <─ console <─ workers <─ app <─ periodic tasks <─────'
//
// environment.go has that order with a reason for each step. A part that was started
// pushes its end onto a stack (lifecycle.go), and a stop unwinds the stack. So a start that
// fails stops what it has started.
//
// # Stopping
//
// A stop is a drain: nothing new is received, deliveries in work finish, messages that
// were not posted return to the queue, and the app gets TERM and its grace period. The
// settings ShutdownTimeout and AppGrace limit it; a second signal cuts it short.
//
// # The path of a message
//
// A pipeline (pipeline.go) is one queue with its worker. The worker hands each message to
// the stages of package delivery, and these hand it to the target (target.go): an app over
// HTTP, the replicas that package app runs, or a Lambda function.
//
// # Where the rest is
//
// Each part of an environment has its own package: app, tasks, delivery, health, autoscale,
// fleet, depth, logging. The types here give it what it needs. All share the pipelines, and
// these the queues and the core: the options, and the states of the environment.
//
//	Environment ── changes, sizing, programs, instance, ... ── pipelines ── queues ── core
//
// changes puts new versions and settings in force, sizing follows the load, programs run what
// the user wrote, and instance is what the other commands find. describe.go says what all of them are, for
// 'tendril describe' and 'tendril explain'.
//
// # Its size
//
// The package has more than 4,000 lines because everything meets here: each part of an environment needs a few dozen
// lines that make it from the settings, start it in its place, and describe it.
package environment
