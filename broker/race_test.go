//go:build race

package broker

// The race detector makes SQLite, translated to Go, ten times slower: what is
// repeated is repeated less.
const underRace = true
