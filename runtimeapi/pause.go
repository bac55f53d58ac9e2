package runtimeapi

import "time"

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

// pauseAfter is how long no process is started after so many failures in a row:
// it doubles from 500 ms to 30 s. 0 failures need none.
func pauseAfter(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	pause := firstPause
	for range failures - 1 {
		if pause *= 2; pause >= longestPause {
			return longestPause
		}
	}
	return pause
}
