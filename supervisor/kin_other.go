//go:build !linux

package supervisor

import (
	"net"
	"syscall"
)

// cgroup, cgroupFolder, reaper: there are none here.
type (
	cgroup       struct{ folder string }
	cgroupFolder struct{}
	reaper       struct{}
)

func findCgroups() cgroupFolder { return cgroupFolder{} }

func newCgroupKin(cgroupFolder) *kin { return nil }

func newReaper(bool) *reaper { return nil }

func (*reaper) close() {}

func (k *kin) attach(*syscall.SysProcAttr) {}

// signal has nothing to add to the process group: there is no way here to look
// at the environment of another process that always works.
func (k *kin) signal(syscall.Signal) {}

func (k *kin) release() {}

// usage is not known here.
func (k *kin) usage() Usage { return Usage{} }

// strangerOn is not known here.
func strangerOn(int, *kin) (string, bool) { return "", false }

// owns and clientName are not known here: everybody counts as kin.
func (k *kin) owns(net.Conn) bool { return true }

func clientName(net.Conn) string { return "" }
