// Package send sends messages and reports their outcome.
//
// It reads bodies or lines of JSON and sends them in batches. With --wait it asks the environment for the outcomes.
package send
