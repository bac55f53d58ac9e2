// Package tasks lists, runs, pauses and resumes periodic tasks.
package tasks
