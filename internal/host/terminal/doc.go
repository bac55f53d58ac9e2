// Package terminal makes text safe to print on a terminal.
//
// Much of tendril's output comes from others: the app, a server's error, a file in a bundle, another instance. On a
// terminal such text could move the cursor, hide lines, change the writing direction or answer in the user's name.
// [Plain] escapes all of that in one string, and [Writer] in everything written to it. A Writer can let colors
// through, which tendril's own lines use.
package terminal
