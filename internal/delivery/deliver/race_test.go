//go:build race

package deliver

// The race detector makes sync.Pool drop values at random.
const underRace = true
