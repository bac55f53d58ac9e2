// Package send sends messages and reports their outcome.
package send
