package main

import (
	"context"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"tendril/environment"
	"tendril/logging"
)

// sameSignal is the time within which a second signal is an echo of the first.
const sameSignal = 250 * time.Millisecond

// quietSignals pause all queues, and let them go on when they come again. The
// second one is what a terminal sends for ^Z, and what other daemons take for it.
func quietSignals() map[os.Signal]string {
	return map[os.Signal]string{syscall.SIGUSR1: "USR1", syscall.SIGTSTP: "TSTP"}
}

// watchSignals drains at the first TERM or INT and stops at the second, which
// it reports. HUP puts in force what changed in the app's folder; what is wrong
// with it is told, and changes nothing. A closed terminal must not lose work.
func watchSignals(env *environment.Environment, drain, stop context.CancelFunc,
	log *logging.Logger) <-chan syscall.Signal {
	signals := make(chan os.Signal, 4)
	quiet := quietSignals()
	signal.Notify(signals, append(slices.Collect(maps.Keys(quiet)), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)...)
	killed := make(chan syscall.Signal, 1)
	go func() {
		var draining time.Time
		for s := range signals {
			sig := s.(syscall.Signal)
			switch {
			case quiet[sig] != "":
				setQuiet(env, quiet[sig], log)
			case sig == syscall.SIGHUP:
				go hangup(env, log) // it may take minutes, in which other signals count
			case draining.IsZero():
				draining = time.Now()
				drain() // first: nothing that is told may hold it up
				log.Info("draining; a second signal stops at once", "component", "environment", "reason", sig.String())
			case time.Since(draining) < sameSignal:
				// The same wish, by way of the process group and of a parent.
			default:
				select {
				case killed <- sig:
				default:
				}
				stop()
			}
		}
	}()
	return killed
}

func hangup(env *environment.Environment, log *logging.Logger) {
	if err := env.Hangup(); err != nil {
		log.Warn("nothing was reloaded", "component", "environment", "err", err)
	}
}

// setQuiet stops receiving, or goes on with it, and says how it ends.
func setQuiet(env *environment.Environment, name string, log *logging.Logger) {
	switch paused, err := env.Quiet("the signal " + name); {
	case err != nil:
		log.Warn("nothing was paused", "component", "environment", "reason", name, "err", err)
	case paused:
		log.Info("all queues are paused; the same signal, or 'tendril queues resume', goes on", "component", "environment",
			"reason", name)
	default:
		log.Info("all queues go on", "component", "environment", "reason", name)
	}
}
