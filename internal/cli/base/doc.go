// Package base holds the code shared by the commands.
//
// [CLI] holds everything that one run reads and writes. Commands that print a value use [Prints] or [Asks], which add
// -o table, json, yaml and name. Commands that change something return a [Plan] to [Changes], which adds --dry-run.
// exit.go defines the exit statuses.
package base
