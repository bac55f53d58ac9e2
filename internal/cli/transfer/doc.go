// Package transfer copies queues: to Amazon SQS and back, to a backup and back.
package transfer
