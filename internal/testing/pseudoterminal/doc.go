// Package pseudoterminal gives tests a terminal that they can type on and read.
//
// It exists on Linux only. Where the machine has no pseudo-terminals, the test is skipped.
package pseudoterminal
