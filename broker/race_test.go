//go:build race

package broker

// Under the race detector, SQLite translated to Go is ten times slower, so tests repeat less often.
const underRace = true
