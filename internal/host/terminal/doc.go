// Package terminal makes text safe to print where a person reads it.
//
// Much of what tendril prints was written by others: an app, a server's error, a
// file in a bundle, another instance. On a terminal such text could move the
// cursor, hide lines, change the writing direction or answer in the person's
// name. [Plain] makes all of that visible in one text; [Writer] does so for
// whatever is printed, so that nothing has to be remembered at each place.
//
// What it does not do: it leaves colours alone where a [Writer] is told to, since
// tendril's own lines have them.
package terminal
