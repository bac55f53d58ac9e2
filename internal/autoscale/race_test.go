//go:build race

package autoscale

const raceDetector = true
