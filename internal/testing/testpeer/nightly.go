package testpeer

import "os"

// Nightly reports whether TENDRIL_NIGHTLY requests the long form of tests.
func Nightly() bool { return os.Getenv("TENDRIL_NIGHTLY") != "" }

// Size returns nightly in a nightly run, otherwise ordinary.
func Size[T any](ordinary, nightly T) T {
	if Nightly() {
		return nightly
	}
	return ordinary
}
