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

// Another environment holds the lock from choosing its ports until it listens.
const (
	portsLock        = "ports.lock"
	portsLockTimeout = 10 * time.Second
)

// FreePorts returns the next free value for each unset option whose default port is in use. This user's other
// environments cannot choose ports until release is called. Options.Announced usually calls it.
func (o *Options) FreePorts() (free map[string]string, release func()) {
	state := config.StateFolder(o.AppEnv, os.Geteuid() == 0)
	release = lockPorts(state)
	return o.choosePorts(state), release
}

func (o *Options) choosePorts(state string) (free map[string]string) {
	chosen := map[int]bool{} // for other options, or by apps of other environments
	for _, found := range api.Running(api.DataDirectories(state)) {
		chosen[found.AppPort] = true
	}
	p := portChooser{o.Config, chosen, map[string]string{}}
	if address, _ := o.Config.ListenOn(); o.Config.AnyEmbedded() || o.QueuesOnly {
		p.choose("listen", address)
	}
	if o.Config.Console != config.Off {
		p.choose("console", o.Config.Console)
	}
	if o.HasApp() {
		p.choose("port", ":"+strconv.Itoa(o.Config.Port))
	}
	return p.free
}

type portChooser struct {
	cfg    *config.Config
	chosen map[int]bool
	free   map[string]string
}

// An address without a host is the app's port.
func (p *portChooser) choose(option, address string) {
	host, text, err := net.SplitHostPort(address)
	first, wrong := strconv.Atoi(text)
	if p.cfg.IsSet(option) || err != nil || wrong != nil || first == 0 {
		return
	}

	for port := first; port < first+portTries; port++ {
		if p.chosen[port] || !isFree(host, port) {
			continue
		}
		p.chosen[port] = true
		switch {
		case port == first:
		case host == "":
			p.free[option] = strconv.Itoa(port)
		default:
			p.free[option] = net.JoinHostPort(host, strconv.Itoa(port))
		}
		return
	}
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

// Without the lock two environments may choose the same port, and one of them cannot listen.
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
