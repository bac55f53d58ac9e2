package testpeer

import "os"

// Nightly reports whether to run the long form of a test, according to TENDRIL_NIGHTLY.
func Nightly() bool { return os.Getenv("TENDRIL_NIGHTLY") != "" }

// Size returns ordinary, or nightly in a nightly run.
func Size[T any](ordinary, nightly T) T {
	if Nightly() {
		return nightly
	}
	return ordinary
}
