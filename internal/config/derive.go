package config

import (
	"time"

	"tendril/internal/host/datadir"
)

// derive runs its steps in order: later ones use values that earlier ones set.
func derive(l *loader) {
	readSecrets(l)
	deriveName(l)
	deriveFree(l)
	deriveDestination(l)
	deriveTarget(l)
	refuseComputedQueue(l)
	deriveQueues(l)
	refuseUnencryptedQueue(l)
	deriveMetrics(l)
	deriveEndpoint(l)
	deriveConsole(l)
	deriveScaling(l)
	deriveOutput(l)
	deriveBackoff(l)
	raiseShutdownDelay(l)
	deriveStop(l)
	deriveDataDir(l)
}

func deriveName(l *loader) {
	name, environment := l.origin("name"), l.origin("environment-name")
	chosen := name.Layer > FromBundle
	if l.cfg.EnvironmentName != "" && !chosen && environment.Layer > name.Layer {
		l.cfg.Name = l.cfg.EnvironmentName
		l.record("name", environment)
	}
	if l.cfg.Name != "" {
		return
	}

	reason := "there is no app folder to derive the name from"
	if l.src.Bundle != nil {
		reason = "the name of the app's folder or archive has no ASCII letters or digits"
	}
	l.cfg.Name = "tendril"
	l.recordDerived("name", reason)
}

func deriveTarget(l *loader) {
	s := l.s
	base, path := splitTarget(s.Target)
	if base == s.Target {
		return
	}

	s.Target = base
	l.recordDerived("target", "")
	if path == "" {
		return
	}

	target, chosen := l.origin("target"), l.origin("http-path")
	if chosen.Layer > target.Layer {
		return
	}

	if chosen.Layer == target.Layer && s.HTTPPath != path {
		l.refuseOption("target", "remove the path from one of them", "the target has the path %s and http-path is %s (%s)",
			shown(path), s.HTTPPath, chosen)
		return
	}

	if _, err := httpPath(path); err != nil {
		l.refuseTargetPath(target.Where, path, err)
		return
	}
	l.assign(assignment{option: l.option("http-path"), origin: target, name: "target", text: path})
}

func (l *loader) refuseTargetPath(where, path string, err error) {
	l.refuseAt(where, "target", "use a path such as /jobs, or remove it", "the target's path %s %v", shown(path), err)
}

func deriveOutput(l *loader) {
	s := l.s
	if !s.Quiet || !s.Verbose {
		return
	}

	quiet, verbose := l.origin("quiet"), l.origin("verbose")
	switch {
	case quiet.Layer > verbose.Layer:
		s.Verbose = false
		l.record("verbose", quiet)
	case quiet.Layer < verbose.Layer:
		s.Quiet = false
		l.record("quiet", verbose)
	default:
		l.refuseOption("quiet", "use only one of them", "output cannot be quiet and verbose (%s)", verbose)
	}
}

func deriveBackoff(l *loader) {
	s := l.s
	if s.BackoffMax >= s.BackoffMin {
		return
	}
	if l.isSet("backoff-max") {
		l.refuseValue("backoff-max", "set backoff-max to at least backoff-min", "is shorter than %s", l.cite("backoff-min"))
		return
	}
	s.BackoffMax = s.BackoffMin
	l.recordDerived("backoff-max", "backoff-min is longer than the default")
}

func deriveDataDir(l *loader) {
	if l.cfg.DataDir != "" {
		return
	}
	state, reason := findStateFolder(l.vars, l.src.Root)
	if state == "" {
		l.refuseAt("", "data-dir", "set --data-dir=/var/lib/tendril",
			"no data directory: neither STATE_DIRECTORY nor XDG_STATE_HOME nor HOME is set")
		return
	}
	l.cfg.DataDir = datadir.Of(state, l.cfg.Name)
	l.recordDerived("data-dir", reason)
}

func deriveFree(l *loader) {
	for _, name := range []string{"listen", "console", "port"} {
		text := l.src.Free[name]
		if text == "" || l.isSet(name) {
			continue
		}
		o := l.option(name)
		if err := o.value.set(text); err != nil {
			l.refuse(refusal(assignment{option: o, text: text}, err))
			continue
		}
		l.recordDerived(name, o.Default+" is used")
	}
}

// leastDelay is the documented minimum of WORKER_SHUTDOWN_DELAY. Other ways to set app-grace have no minimum.
const leastDelay = 10 * time.Second

func raiseShutdownDelay(l *loader) {
	s := l.s
	from := l.origin("app-grace")
	if s.AppGrace >= leastDelay || from.Layer != FromBundle && from.Where != shutdownDelay {
		return
	}
	l.warnAt(from.Where, "app-grace", "set app-grace to use less",
		"%s %s is less than the minimum of %s, which is used", shutdownDelay, l.option("app-grace").value.get(), leastDelay)
	s.AppGrace = leastDelay
	l.recordDerived("app-grace", "")
}

// deriveStop bases shutdown-timeout on app-grace: an app that needs a minute to stop may also need one to finish its
// messages.
func deriveStop(l *loader) {
	s := l.s
	if l.isSet("app-grace") && !l.isSet("shutdown-timeout") {
		s.ShutdownTimeout = min(s.AppGrace+5*time.Second, twelveHours)
		l.recordDerived("shutdown-timeout", "app-grace plus 5 seconds")
	}
}

func checkKeyPair(l *loader, cert, key string) (ok bool) {
	hasCert := l.option(cert).value.get() != ""
	hasKey := l.option(key).value.get() != ""
	switch {
	case hasCert && !hasKey:
		l.refuseOption(cert, "add "+key, "%s is set without its private key", cert)
	case hasKey && !hasCert:
		l.refuseOption(key, "add "+cert, "%s is set without its certificate", key)
	}
	return hasCert == hasKey
}

func deriveEndpoint(l *loader) {
	if !checkKeyPair(l, "tls-cert", "tls-key") {
		return
	}
	address, _ := l.s.ListenOn()
	if address != "" && !isLoopback(address) && l.s.Credentials == "" {
		l.refuseValue("listen", "type 'tendril credentials create NAME --credentials FILE' and add --credentials FILE, or use "+
			"127.0.0.1", "would let anyone who can reach this address use the queues")
	}
}

func deriveConsole(l *loader) {
	s := l.s
	if !checkKeyPair(l, "console-tls-cert", "console-tls-key") || s.Console == Off {
		return
	}

	reachable := !isLoopback(s.Console)
	proxied := len(s.ConsoleTrustedProxy) > 0
	switch {
	case reachable && s.ConsoleAuth == ConsoleAuthNone:
		l.refuseOption("console-auth", "use 127.0.0.1, or console-auth token", "%s would let anyone who can reach "+
			"this address deploy", l.named("console"))
	case proxied && s.ConsoleAuth == ConsoleAuthNone:
		l.refuseValue("console-auth", "remove one of them", "would let anyone behind a trusted proxy deploy")
	case reachable && !proxied && s.ConsoleTLSCert == "" && !s.ConsoleInsecure:
		l.refuseValue("console", "add console-tls-cert and console-tls-key, or console-trusted-proxy for a proxy that speaks "+
			"HTTPS, or console-insecure on a trusted network, or use 127.0.0.1",
			"would send the token and deployments unencrypted to other machines")
	}
}
