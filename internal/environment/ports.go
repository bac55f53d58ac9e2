package environment

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/host/datadir"
	"tendril/internal/host/listen"
	"tendril/internal/supervisor"
)

const portTries = 100

// An environment holds the lock from choosing its ports until it listens.
const (
	portsLock        = "ports.lock"
	portsLockTimeout = 10 * time.Second
)

// FreePorts returns the next free value for each unset option whose default port is in use. This user's other
// environments cannot choose ports until release is called.
func (o *Options) FreePorts() (free map[string]string, release func()) {
	state := config.StateFolder(o.AppEnv, os.Geteuid() == 0)
	release = lockPorts(state)
	return o.choosePorts(state), release
}

func (o *Options) choosePorts(state string) map[string]string {
	chosen := map[int]bool{} // for other options, or used by apps of other environments
	for _, found := range api.Running(api.DataDirectories(state)) {
		chosen[found.AppPort] = true
	}
	free := map[string]string{}
	for _, p := range o.plannedPorts() {
		if o.Config.IsSet(p.option) {
			continue
		}
		port, address := nextFree(p.host, p.port, chosen)
		chosen[port] = true
		if port != p.port && address != "" {
			free[p.option] = address
		}
	}
	return free
}

type plannedPort struct {
	option, use, address string
	host                 string // "" for the app's port
	port                 int
}

func (o *Options) plannedPorts() (all []plannedPort) {
	add := func(option, use, address string) {
		host, text, err := net.SplitHostPort(address)
		if port, wrong := strconv.Atoi(text); err == nil && wrong == nil && port != 0 {
			all = append(all, plannedPort{option, use, address, host, port})
		}
	}
	if address, _ := o.Config.ListenOn(); o.Config.AnyEmbedded() || o.QueuesOnly {
		add("listen", "queues, SQS protocol", address)
	}
	if o.Config.Console != config.Off {
		add("console", "console", o.Config.Console)
	}
	if o.HasApp() {
		add("port", "app", ":"+strconv.Itoa(o.Config.Port))
	}
	return all
}

// nextFree returns a free port that is not taken, and its address: only the port if host is "". Without a free port,
// address is "".
func nextFree(host string, first int, taken map[int]bool) (port int, address string) {
	for port := first; port < first+portTries; port++ {
		switch {
		case taken[port] || !isFree(host, port):
		case host == "":
			return port, strconv.Itoa(port)
		default:
			return port, net.JoinHostPort(host, strconv.Itoa(port))
		}
	}
	return 0, ""
}

func isFree(host string, port int) bool {
	if host == "" {
		return supervisor.CheckPort(bundle.MainProcess, port) == nil
	}
	l, err := listen.TCP(net.JoinHostPort(host, strconv.Itoa(port)), false)
	if err == nil {
		err = l.Close()
	}
	return !errors.Is(err, listen.ErrInUse)
}

// lockPorts may fail, for example after portsLockTimeout. Two environments might then choose the same port.
func lockPorts(state string) (release func()) {
	none := func() {}
	if state == "" || datadir.Make(state) != nil {
		return none
	}

	f, err := datadir.OpenFile(filepath.Join(state, portsLock))
	if err != nil {
		return none
	}

	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return sync.OnceFunc(func() { f.Close() })
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Since(began) > portsLockTimeout {
			f.Close()
			return none
		}
	}
}
