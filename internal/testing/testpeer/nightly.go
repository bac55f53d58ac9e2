package testpeer

import "os"

// Nightly reports whether the long form of a test is wanted: the environment variable TENDRIL_NIGHTLY is set.
func Nightly() bool { return os.Getenv("TENDRIL_NIGHTLY") != "" }

// Size returns ordinary, or nightly in a run of the night.
func Size[T any](ordinary, nightly T) T {
	if Nightly() {
		return nightly
	}
	return ordinary
}
