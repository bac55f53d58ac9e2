package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// freezeWait limits the wait for a group to freeze before its processes are killed one by one.
	freezeWait = 200 * time.Millisecond
	// Exiting processes keep the group's directory busy for a moment.
	removeTries = 20
)

type cgroupFolder struct {
	// path is the group's name in /proc/PID/cgroup.
	folder, path string
}

func findCgroups() cgroupFolder {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return cgroupFolder{}
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return cgroupFolder{}
	}
	root, point := cgroupMount(string(mounts))
	return cgroupAt(root, point, cgroupPath(string(own)))
}

// cgroupAt returns the zero value if the group is unknown, or if the guard's script could not handle its path.
func cgroupAt(root, point, path string) cgroupFolder {
	inside, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
	if point == "" || path == "" || !ok || strings.Contains(path, "/..") {
		return cgroupFolder{}
	}
	if inside != "" && inside[0] != '/' {
		return cgroupFolder{}
	}
	folder := filepath.Join(point, inside)
	if strings.ContainsAny(folder, " \t\n\\'\"$`*?[") {
		return cgroupFolder{}
	}
	return cgroupFolder{folder: folder, path: path}
}

func cgroupMount(mountinfo string) (root, point string) {
	for line := range strings.Lines(mountinfo) {
		mount, system, ok := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if ok && strings.HasPrefix(system, "cgroup2 ") && len(fields) >= 5 {
			return fields[3], fields[4]
		}
	}
	return "", ""
}

func cgroupPath(text string) string {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(path, "\n")
		}
	}
	return ""
}

type cgroup struct {
	cgroupFolder
	fd int
}

func (c *cgroup) folders() []string {
	var all []string
	_ = filepath.WalkDir(c.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	return all
}

func (c *cgroup) members() []process {
	var found []process
	for _, folder := range c.folders() {
		text, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				continue
			}
			if p, ok := readProcess(pid); ok && p.alive() {
				found = append(found, p)
			}
		}
	}

	return found
}

func (c *cgroup) holds(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	path := cgroupPath(string(text))
	return err == nil && (path == c.path || strings.HasPrefix(path, c.path+"/"))
}

// The kernel does not count zombies.
func (c *cgroup) empty() bool {
	text, err := os.ReadFile(filepath.Join(c.folder, "cgroup.events"))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	for line := range strings.Lines(string(text)) {
		if state, ok := strings.CutPrefix(line, "populated "); ok {
			return strings.TrimSpace(state) == "0"
		}
	}
	return false
}

// kill returns false if it cannot kill the group as a whole, as on kernels before 5.14. The group is then frozen if
// possible, and the caller must kill each process.
func (c *cgroup) kill() bool {
	if c.write("cgroup.kill", "1") == nil {
		return true
	}
	if c.write("cgroup.freeze", "1") != nil {
		return false
	}
	deadline := time.Now().Add(freezeWait)
	for time.Now().Before(deadline) {
		text, err := os.ReadFile(filepath.Join(c.folder, "cgroup.events"))
		if err != nil || strings.Contains(string(text), "frozen 1") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func (c *cgroup) write(file, text string) error {
	f, err := os.OpenFile(filepath.Join(c.folder, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (c *cgroup) remove() {
	_ = unix.Close(c.fd)
	for range removeTries {
		all := c.folders()
		for i := len(all) - 1; i >= 0; i-- {
			_ = unix.Rmdir(all[i])
		}
		if _, err := os.Stat(c.folder); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
