package supervisor

import (
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAListenerThatIsNotTheApp(t *testing.T) {
	t.Parallel()
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		w := newObserver(t)
		p := self("web", "idle", w)
		p.Port = freePort(t)
		late := make(chan ReadyLate, 100)
		s, r := realSupervisor(t, Options{
			ReadyInterval: time.Millisecond, ReadyLateAfter: time.Millisecond,
			Events: Events{ReadyLate: func(e ReadyLate) { late <- e }},
		}, p)
		start(t, with(s))
		w.next()
		foreign, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(p.Port))
		if err != nil {
			t.Fatal(err)
		}
		defer foreign.Close()
		go acceptAll(foreign) // a full queue would make the checks time out
		for e := range late {
			if strings.Contains(e.Reason, "already in use by") &&
				strings.Contains(e.Reason, "(pid "+strconv.Itoa(os.Getpid())+")") {
				break
			}
			if !strings.Contains(e.Reason, "nothing is listening") && !strings.Contains(e.Reason, "already in use") {
				t.Errorf("reason %q", e.Reason)
			}
		}
		if s.Ready() || len(r.gate) != 0 {
			t.Error("the foreign listener opened the gate")
		}
		stop(t, s)
	})
}

func acceptAll(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		conn.Close()
	}
}

func TestAListenerBehindAShellIsTheApp(t *testing.T) {
	t.Parallel()
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		w := newObserver(t)
		port := freePort(t)
		s, r := realSupervisor(t, Options{ReadyInterval: time.Millisecond}, Process{
			Name: "web", Shell: `setsid "$SELF" & wait`, Port: port,
			Env: append(childEnv("serve", w.address()), "PATH=/usr/bin:/bin", "SELF="+selfPath(), "PORT="+strconv.Itoa(port)),
		})
		tree := treeOf(with(s))
		start(t, s)
		w.next()
		if e := <-r.gate; !e.Open {
			t.Errorf("gate %+v, want it open", e)
		}
		if holder, is := foreignListenerOn(port, tree()); is {
			t.Errorf("%s counts as foreign", holder)
		}
		if _, is := foreignListenerOn(port, newMarkedTree()); !is {
			t.Error("for another process it is none")
		}
		stop(t, s)
	})
}

func TestForeignListenerTakesThePortOfADeadApp(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	p := self("web", "serve", w)
	p.Port = freePort(t)
	p.Env = append(p.Env, "PORT="+strconv.Itoa(p.Port))
	ends := make(chan Exited, 100)
	var foreign net.Listener
	// The restart waits for the callback, so the foreign listener is always first.
	listen := sync.OnceFunc(func() {
		var err error
		if foreign, err = net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(p.Port)); err != nil {
			t.Error(err)
		}
	})
	s, r := realSupervisor(t, Options{
		ReadyInterval: time.Millisecond, RestartMin: time.Millisecond,
		Events: Events{Restarting: func(Restarting) { listen() }},
	}, p)
	s.opts.Events.Exited = func(e Exited) { ends <- e }
	start(t, s)
	if e := <-r.gate; !e.Open {
		t.Fatalf("gate %+v, want it open", e)
	}
	w.next().conn.Close()
	if e := <-r.gate; e.Open {
		t.Fatalf("gate %+v, want it closed", e)
	}
	<-ends
	// A process that another test is starting holds a copy of the listener until its exec, and may be named instead.
	for named := false; !named; {
		var e Exited
		select {
		case e = <-ends:
		case <-time.After(hangGuard):
			t.Fatal("the message never names this process")
		}
		if e.PID != 0 || !strings.Contains(e.Exit.String(), "already in use by") {
			t.Fatalf("ended %+v: %s, want a start that failed because of us", e, e.Exit)
		}
		named = strings.Contains(e.Exit.String(), strconv.Itoa(os.Getpid()))
	}
	if s.Ready() || len(r.gate) != 0 {
		t.Error("the foreign listener opened the gate")
	}
	foreign.Close()
	if e := <-r.gate; !e.Open {
		t.Errorf("gate %+v, want it open again", e)
	}
	stop(t, s)
}

func TestTakesLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"0100007F": true, "00000000": true, "0200A8C0": false, "": false,
		"00000000000000000000000000000000": true, "00000000000000000000000001000000": true,
		"0000000000000000FFFF00000100007F": true, "B80D01200000000000000000DEADBEEF": false,
	} {
		if got := takesLoopback(address); got != want {
			t.Errorf("takesLoopback(%q) = %t", address, got)
		}
	}
}
