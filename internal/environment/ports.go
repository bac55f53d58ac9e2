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

// portTries is how many ports from the default one on are tried.
const portTries = 100

// portsPatience is how long another environment may hold the lock of the ports: from its choice until it listens.
const (
	portsLock     = "ports.lock"
	portsPatience = 10 * time.Second
)

// FreePorts returns another value for each option whose default address or port is taken on this machine, where nobody
// set it: the next free one. It is empty where all are free. Other environments of this user choose theirs after
// release, which the caller gives to the environment as Options.Announced.
func (o *Options) FreePorts() (free map[string]string, release func()) {
	state := config.StateFolder(o.AppEnv, os.Geteuid() == 0)
	release = lockPorts(state)
	return o.choosePorts(state), release
}

// choosePorts is FreePorts for now: another environment may choose the same ones.
func (o *Options) choosePorts(state string) (free map[string]string) {
	chosen := map[int]bool{} // by another option, or for the app of another environment
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

// portChooser chooses ports that nothing listens on.
type portChooser struct {
	cfg    *config.Config
	chosen map[int]bool
	free   map[string]string
}

// choose takes the first free port from the one in address on, which is that of the app where there is no host.
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

// lockPorts keeps other environments of this user from choosing ports until release. Where it cannot be had, a port
// that two choose at once is refused when it is listened on.
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
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Since(began) > portsPatience {
			f.Close()
			return none
		}
	}
}
