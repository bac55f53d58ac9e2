// Package queues lists, creates, purges, deletes, pauses and resumes queues.
package queues
