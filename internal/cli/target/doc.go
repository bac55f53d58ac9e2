// Package target finds the queue named on the command line.
//
// A [Queue] is in a running environment or on Amazon SQS. [Find] finds the queue in [Flags] by name, URL or ARN.
package target
