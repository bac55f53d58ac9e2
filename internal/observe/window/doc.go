// Package window keeps what happened in the recent past, in buckets of equal length.
//
//	w := window.New[counts](10*time.Second, 6)
//	w.At(now).done++
//	for c := range w.Recent(now) { ... }
//
// A bucket is any struct that counts or remembers something. Old ones are used again. The buckets follow the wall clock.
//
// A [Window] takes no lock: its owner does.
package window
