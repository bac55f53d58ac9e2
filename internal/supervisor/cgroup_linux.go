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
	// freezeWait is how long a control group may take to stand still where it
	// cannot be killed at once.
	freezeWait = 200 * time.Millisecond
	// removeTries is how often its folder is tried to be removed: the last of
	// its processes may be on its way out.
	removeTries = 20
)

// cgroupFolder is where control groups can be made: the one this process is in.
type cgroupFolder struct {
	// folder is in the file system; path is what /proc/PID/cgroup calls it.
	folder, path string
}

// findCgroups returns where we are in the second version of control groups, or
// the zero value where there is none.
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

// cgroupAt joins what the system says about itself. Names that a shell would
// have to quote are left alone.
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

// cgroupMount finds the first mount of type cgroup2 in a /proc/PID/mountinfo:
// which part of the tree it shows, and where.
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

// cgroupPath reads the path of the second version from a /proc/PID/cgroup.
func cgroupPath(text string) string {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(path, "\n")
		}
	}
	return ""
}

// cgroup is the control group of one run.
type cgroup struct {
	folder cgroupFolder
	// fd is the open folder, into which the process is started.
	fd int
}

// folders returns the group's folder and those that its processes made in it,
// each before what it holds.
func (c *cgroup) folders() []string {
	var all []string
	_ = filepath.WalkDir(c.folder.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // It was removed meanwhile.
		}
		if d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	return all
}

// members returns its living processes.
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

// holds reports whether the process is in this control group.
func (c *cgroup) holds(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	path := cgroupPath(string(text))
	return err == nil && (path == c.folder.path || strings.HasPrefix(path, c.folder.path+"/"))
}

// empty asks the kernel, which does not count zombies.
func (c *cgroup) empty() bool {
	text, err := os.ReadFile(filepath.Join(c.folder.folder, "cgroup.events"))
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

// kill ends all of it at once. On kernels before 5.14 it only has it stand
// still, so that nothing new is started, and returns false: the processes are
// to be killed one by one, which they obey standing still.
func (c *cgroup) kill() bool {
	if c.write("cgroup.kill", "1") == nil {
		return true
	}
	if c.write("cgroup.freeze", "1") != nil {
		return false
	}
	deadline := time.Now().Add(freezeWait)
	for time.Now().Before(deadline) {
		text, err := os.ReadFile(filepath.Join(c.folder.folder, "cgroup.events"))
		if err != nil || strings.Contains(string(text), "frozen 1") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func (c *cgroup) write(file, text string) error {
	f, err := os.OpenFile(filepath.Join(c.folder.folder, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// remove removes the folder and those in it. What cannot be removed is empty,
// or held by a process that even KILL does not end: neither harms.
func (c *cgroup) remove() {
	_ = unix.Close(c.fd)
	for range removeTries {
		all := c.folders()
		for i := len(all) - 1; i >= 0; i-- {
			_ = unix.Rmdir(all[i])
		}
		if _, err := os.Stat(c.folder.folder); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
