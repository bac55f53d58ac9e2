package peers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
)

// Host returns an ID of this machine and network namespace. On Linux, it changes at each boot.
func Host() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // only on Linux
	network, _ := os.Readlink("/proc/self/ns/net")
	name, _ := os.Hostname()
	sum := sha256.Sum256([]byte(cmp.Or(string(boot), name) + "\n" + network))
	return hex.EncodeToString(sum[:8])
}
