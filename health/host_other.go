//go:build !linux

package health

// readSystem knows nothing here.
func readSystem(*Reading) (cpuTimes, bool) { return cpuTimes{}, false }
