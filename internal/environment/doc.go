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
// A pipeline (pipeline.go) is a queue (workqueue.go) with its worker. The worker hands each message to
// the stages of package delivery, and these hand it to the target (target.go): an app over
// HTTP, the replicas that package app runs, or a Lambda function.
//
// # The components
//
// [Environment] holds one component for each job. A component has its dependencies as named fields, opens its part in
// the methods that the start order lists, and pushes its end onto the stack.
//
//	queues    opens the embedded queues and those on Amazon SQS, and serves the former
//	work      has a pipeline for each queue: its target, and the worker between them
//	programs  runs the app and functions, and gives them their variables
//	changes   puts new versions and settings in force
//	cron      runs the periodic tasks
//	scale     follows the load, and protects this instance while it works
//	observe   has the health, the metrics, the charts and the events
//	instance  is how the other commands find this environment, and its console
//
// All share the options, the states of the environment (lifecycle.go) and the settings in force. These are one revision
// that is never changed (settings.go): a reload replaces it as a whole, and a queue's settings are read from it.
// describe.go says what all of them are, for 'tendril describe' and 'tendril explain'.
package environment
