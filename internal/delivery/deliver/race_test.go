//go:build race

package deliver

// underRace is true with the race detector, which makes sync.Pool drop values at random.
const underRace = true
