// Package transfer copies queues to and from Amazon SQS and backups.
package transfer
