//go:build race

package broker

// The race detector makes SQLite, translated to Go, ten times slower, so tests repeat less.
const underRace = true
