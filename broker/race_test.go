//go:build race

package broker

// SQLite translated to Go is ten times slower with the race detector, so tests use fewer iterations.
const underRace = true
