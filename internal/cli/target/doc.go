// Package target finds the queue that a command names.
//
// A [Queue] is in a running environment, or on Amazon SQS. [Flags] say which one is meant; [Find] looks it up by name, URL
// or ARN.
package target
