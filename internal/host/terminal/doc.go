// Package terminal makes text safe to print on a terminal.
//
// Text from the app, servers, files or other instances could move the cursor, hide lines, change the writing direction
// or answer in the user's name.
package terminal
