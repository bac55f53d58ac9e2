// Package send sends messages and reports their outcome.
//
// It reads bodies or lines of JSON and sends them in batches. With --wait, it gets the outcomes from the environment.
package send
