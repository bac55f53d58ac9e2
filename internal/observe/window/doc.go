// Package window counts recent events in buckets of equal length.
//
//	w := window.New[counts](10*time.Second, 6)
//	w.At(now).done++
//	for c := range w.Recent(now) { ... }
//
// Buckets follow the wall clock and are reused. A [Window] has no lock: the caller must synchronize access.
package window
