package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func selfPath() string { return os.Args[0] }

// reapMany acts as process 1 for a process that leaves ORPHANS orphans. It prints the numbers of remaining zombies and
// of wrong exit statuses.
func reapMany() int {
	n := os.Getenv("ORPHANS")
	s, err := New([]Process{{
		Name: "litter",
		Shell: "i=0; while [ $i -lt " + n +
			" ]; do (j=0; while [ $j -lt 100 ]; do : & j=$((j+1)); done); i=$((i+100)); done; exit 42",
	}}, &Options{RestartLimit: -1})
	if err != nil {
		return 1
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	wrong, started := 0, 0
	next := time.NewTicker(10 * time.Millisecond)
	for done := false; !done; {
		select {
		case err = <-ended:
			done = true
		case <-next.C:
		}
		started++
		code := started % 100
		runErr := exec.Command("/bin/sh", "-c", "exit "+strconv.Itoa(code)).Run()
		var exit *exec.ExitError
		if got := 0; errors.As(runErr, &exit) && exit.ExitCode() != code || runErr != nil && exit == nil || runErr == nil &&
			got != code {
			wrong++
		}
	}
	var failed *FailedError
	if !errors.As(err, &failed) || failed.Last.Code != 42 {
		wrong++
	}
	fmt.Printf("zombies %d wrong %d\n", zombieChildren(), wrong)
	return 0
}

func zombieChildren() (n int) {
	for _, p := range processes() {
		if p.ppid == os.Getpid() && p.state == 'Z' {
			n++
		}
	}
	return n
}

func adoptOne() int {
	s, err := New([]Process{{
		Name: "litter", Argv: []string{os.Args[0]},
		Env: append(childEnv("daemonize", os.Getenv("OBSERVER")), "DAEMONS=idle"),
	}}, &Options{RestartLimit: -1})
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return 1
	}
	s.newSystem = func() *system {
		h := newHost()
		h.reaper = newReaper()
		return systemOn(h)
	}
	if err != nil || s.Start(context.Background()) != nil {
		return 1
	}
	for orphans := 0; ; <-time.After(time.Millisecond) {
		now := 0
		for _, p := range processes() {
			if p.ppid == os.Getpid() && p.pgrp == p.pid && p.state != 'Z' && p.pid != s.Status()[0].PID {
				now++
			}
		}
		if orphans < 2 && now == 2 {
			orphans = now
			fmt.Println("adopted")
		}
		if orphans == 2 && now == 1 && zombieChildren() == 0 {
			fmt.Println("reaped")
			return stay("adopt")
		}
	}
}

func unprivileged() int {
	if syscall.Setgroups(nil) != nil || syscall.Setgid(65534) != nil || syscall.Setuid(65534) != nil {
		return 1
	}
	for _, p := range []Process{
		{Name: "user", Shell: "true", User: "0:0"},
		{Name: "limit", Shell: "true", Limits: map[string]string{"nofile": "unlimited"}},
		{Name: "same", Shell: "exit 5", User: "65534:65534"},
	} {
		p.Dir = "/"
		s, err := New([]Process{p}, &Options{RestartLimit: -1})
		if err == nil {
			err = s.Run(context.Background())
		}
		fmt.Println(strings.ReplaceAll(fmt.Sprint(err), "\n", " "))
	}
	return 0
}

func fillLog() int {
	l := &logFile{path: os.Getenv("LOG"), maxBytes: 1 << 20, keep: keptLogFiles}
	if l.open() != nil {
		return 1
	}
	for i := range 100 {
		if n, err := fmt.Fprintf(l, "line %03d of a log that fills the disk\n", i); err != nil || n != 38 {
			return 2
		}
	}
	fmt.Println("dropped", l.dropped)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: unlimited, Max: unlimited}); err != nil {
		return 3
	}
	fmt.Fprintln(l, "and on")
	return 0
}
