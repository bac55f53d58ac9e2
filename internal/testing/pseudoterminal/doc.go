// Package pseudoterminal provides tests with a terminal to type on and read from.
//
// It exists on Linux only. Tests are skipped if the machine has no pseudo-terminals.
package pseudoterminal
