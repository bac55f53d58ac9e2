// Package send sends messages and prints what became of them.
//
// It reads bodies and lines of JSON, sends them in batches, and with --wait asks the environment for each outcome.
package send
