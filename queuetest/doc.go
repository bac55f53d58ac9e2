// Package queuetest checks that something behaves like a queue.
package queuetest
