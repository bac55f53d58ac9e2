//go:build race

package broker

// With the race detector, SQLite translated to Go is ten times slower, so tests use fewer iterations.
const underRace = true
