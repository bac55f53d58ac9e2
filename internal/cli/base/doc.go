// Package base has what the commands share.
//
// [CLI] holds everything that one run of the command reads and writes. A command that shows something hands its value,
// how people see it, and its identifiers to [Prints] or [Asks], and has -o table, json, yaml and name by that. One that
// changes something hands a [Plan] to [Changes], and has --dry-run by that. exit.go says which exit status means what.
package base
