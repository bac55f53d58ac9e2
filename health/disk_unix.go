//go:build linux || darwin

package health

import "golang.org/x/sys/unix"

// readDisk fills in the room of the disk that holds path.
func readDisk(path string, r *Reading) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return
	}
	r.Disk = float64(s.Blocks) * float64(s.Bsize)
	r.DiskFree = known(float64(s.Bavail) * float64(s.Bsize))
}
