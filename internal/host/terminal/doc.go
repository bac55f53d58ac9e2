// Package terminal makes text safe to print on a terminal.
//
// Much of tendril's output comes from the app, servers, files or other instances. On a terminal such text could move
// the cursor, hide lines, change the writing direction or answer in the user's name.
package terminal
