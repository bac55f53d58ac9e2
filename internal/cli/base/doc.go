// Package base holds the code shared by the commands.
//
// Commands that print a value use [Prints] or [Asks], which add -o. Commands that change something return a [Plan] to
// [Changes], which adds --dry-run.
package base
