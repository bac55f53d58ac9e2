// Package worker polls queues, delivers each message and settles it.
package worker
