// Package bench measures the whole daemon: a test SQS endpoint, an app, and tendril or a comparable program run as
// separate processes, and are compared with a bare net/http loop that posts the same bodies to the app.
//
// Figures are medians of all rounds; a ratio compares runs of the same round. The test endpoint returns prepared
// messages without checks, so that the daemon is measured, not a queue.
package bench
