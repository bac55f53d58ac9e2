//go:build race

package deliver

// underRace: the race detector has sync.Pool drop what it is given, now and then.
const underRace = true
