package config

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"tendril/internal/host/trust"
)

func warn(l *loader) {
	warnRanges(l)
	warnTimes(l)
	warnRetries(l)
	warnIdle(l)
	warnUnencrypted(l)
	warnLimits(l)
	warnOrder(l)
	warnScaling(l)
	warnRollout(l)
	warnReadableSecrets(l)
	warnPrivateKeys(l)
	for i, queue := range l.queues {
		warnTimes(queue)
		warnQueue(queue, &l.cfg.Queues[i])
	}
}

func warnRollout(l *loader) {
	if l.s.FleetKey == "" {
		for _, name := range []string{"versions", "rollout-policy", "rollout-batch-size-type", "rollout-batch-size",
			"rollout-timeout", "rollout-ignore-health"} {
			l.warnUnused(name, ": without a fleet key, a deployment changes only one instance", "add --fleet-key-file")
		}
		return
	}
	if slices.Contains(foreignPolicies(), l.s.RolloutPolicy) {
		l.warnAbout("rollout-policy", "use AllAtOnce or Rolling",
			"deployment policy %s is not supported: batches are used, as with Rolling",
			l.s.RolloutPolicy)
	}
}

var privateKeys = []string{"tls-key", "console-tls-key", "target-key"}

func warnReadableSecrets(l *loader) {
	for _, o := range l.rows {
		if !o.IsSecret() {
			continue
		}
		named := l.option(o.Name + secretFileSuffix)
		if path := named.value.get(); path != "" {
			warnReadable(l, named.Name, path)
		}
		inFile := func(l *loader) bool { return l.origin(o.Name).Layer == fromFile }
		if !l.isSet(named.Name) && (inFile(l) || slices.ContainsFunc(l.queues, inFile)) {
			warnReadable(l, o.Name, l.cfg.ConfigFile)
		}
	}
}

// warnPrivateKeys also warns about keys in files that others control, which are not refused like other secret files.
func warnPrivateKeys(l *loader) {
	for _, name := range privateKeys {
		path := l.option(name).value.get()
		if path == "" {
			continue
		}
		warnReadable(l, name, path)
		var wrong *trust.Error
		if errors.As(trust.File(path), &wrong) {
			l.warnAbout(name, "type '"+wrong.Fix+"'", "another user controls the file of %s: %s", name, wrong)
		}
	}
}

// SecretWarnings returns the warnings about files with secrets.
func (c *Config) SecretWarnings() (found []Problem) {
	for _, w := range c.Warnings {
		o, known := Lookup(strings.TrimSuffix(w.Option, secretFileSuffix))
		isSecret := known && o.IsSecret()
		if isSecret || slices.Contains(privateKeys, w.Option) {
			found = append(found, w)
		}
	}
	return found
}

// warnReadable skips files of other users, whose permissions this user cannot change.
func warnReadable(l *loader, option, path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o004 == 0 || !trust.Owns(info) {
		return
	}
	l.warnAbout(option, "type 'chmod o-r "+path+"'", "every user on this machine can read %s in %s (mode %04o)", option,
		shown(path), info.Mode().Perm())
}

func warnTimes(l *loader) {
	warnVisibility(l)
	warnErrorVisibility(l)
	warnBatch(l)
}

// concerns is false for a queue without its own values, because problems of the settings for all queues are reported
// once.
func (l *loader) concerns(names ...string) bool {
	return l.prefix == "" || slices.ContainsFunc(names, func(name string) bool {
		return l.own[l.option(name).Key] != Origin{}
	})
}

func differsInFunction(l *loader) bool { return l.s.ToFunction() != l.cfg.ToFunction() }

// warnRanges warns about values that Elastic Beanstalk may reject: its documentation is inconsistent.
func warnRanges(l *loader) {
	const older, newer, connections = 1800 * time.Second, 100, 100
	if l.cfg.InactivityTimeout > older {
		l.warnValue("inactivity-timeout", "", "is more than the %s that older platforms of Elastic Beanstalk allow",
			formatDuration(older))
	}
	if l.cfg.MaxRetries > newer {
		l.warnValue("max-retries", "", "is more than the %d that Elastic Beanstalk allows today", newer)
	}
	if l.cfg.HTTPConnections > connections && l.cfg.anyToApp() {
		l.warnValue("http-connections", "", "is more than the %d that Elastic Beanstalk accepts", connections)
	}
}

func warnVisibility(l *loader) {
	s := l.s
	if l.concerns("visibility-timeout") && s.VisibilityTimeout == 0 {
		l.warnAbout("visibility-timeout", "make it longer than the processing of a message",
			"visibility-timeout 0 does not hide a message during its delivery: it may be delivered many times at once")
	}
	if s.VisibilityTimeout > 0 {
		warnShortVisibility(l)
	}

	if l.concerns("visibility-timeout", "retention-period") && s.VisibilityTimeout > s.RetentionPeriod &&
		s.ErrorVisibilityTimeout == nil && s.BackoffMin == 0 {
		l.warnValue("retention-period", "make it several times as long",
			"is shorter than %s: a message that fails once is never retried", l.cite("visibility-timeout"))
	}

	if l.concerns("deadline", "inactivity-timeout") && s.Deadline > 0 && s.Deadline < s.InactivityTimeout &&
		l.isSet("inactivity-timeout") {
		l.warnValue("inactivity-timeout", "", "has no effect: %s ends an attempt earlier", l.cite("deadline"))
	}
}

func warnShortVisibility(l *loader) {
	s := l.s
	if s.ToFunction() {
		chosen := l.isSet("visibility-timeout") || l.isSet("function-timeout")
		if chosen && s.VisibilityTimeout < s.FunctionTimeout && (l.concerns("visibility-timeout") || differsInFunction(l)) {
			warnShort(l, "function-timeout")
		}
		return
	}

	if s.anyToApp() && s.VisibilityTimeout < s.InactivityTimeout &&
		(l.concerns("visibility-timeout", "inactivity-timeout") || differsInFunction(l)) {
		warnShort(l, "inactivity-timeout")
	}
}

func warnShort(l *loader, longest string) {
	l.warnValue("visibility-timeout", "", "is shorter than %s: tendril extends it while the app works, but other "+
		"daemons on the same queue do not, and if tendril crashes, the message returns early",
		l.cite(longest))
}

func warnErrorVisibility(l *loader) {
	after := l.s.ErrorVisibilityTimeout
	if after == nil || !l.concerns("error-visibility-timeout", "retention-period") {
		return
	}

	switch {
	case *after == 0:
		l.warnAbout("error-visibility-timeout", "set it to a few seconds, or see backoff-min",
			"error-visibility-timeout 0 retries a failed message at once: an app that fails for a minute uses up all "+
				"attempts in that minute")
	case *after > l.s.RetentionPeriod:
		l.warnValue("error-visibility-timeout", "", "is longer than %s: a message that fails once is never retried",
			l.cite("retention-period"))
	}

	if l.s.BackoffMin > 0 {
		l.warnValue("error-visibility-timeout", "", "has no effect: %s determines the pause after a failure",
			l.cite("backoff-min"))
	}
}

func warnBatch(l *loader) {
	if !l.concerns("batch-size", "batch-window", "visibility-timeout", "terminal-codes", "mime-type") {
		return
	}

	s := l.s
	if s.BatchSize > 1 && l.s.anyToApp() && !s.ToFunction() {
		if s.TerminalCodes != "" {
			l.warnValue("terminal-codes", "let the app return batchItemFailures, or remove batch-size",
				"only affects POSTs with one message: %s, and a status applies to all messages of a POST",
				l.cite("batch-size"))
		}
		if l.isSet("mime-type") {
			l.warnValue("mime-type", "", "has no effect: with %s messages are posted as application/json",
				l.cite("batch-size"))
		}
	}

	switch {
	case s.BatchWindow == 0:
	case s.BatchSize == 1:
		l.warnValue("batch-window", "set batch-size, for example to 10", "has no effect: %s is full at once",
			l.cite("batch-size"))
	case s.BatchWindow > s.VisibilityTimeout/2:
		l.warnValue("batch-window", "set visibility-timeout to at least six times batch-window",
			"is more than half of %s: a message that waits that long for others is returned undelivered",
			l.cite("visibility-timeout"))
	}
}

func warnRetries(l *loader) {
	if l.cfg.MaxRetries == 1 && l.cfg.AnyEmbedded() {
		l.warnAbout("max-retries", "set it to 2 or more", "max-retries 1 dead-letters a message after one receive, even "+
			"if the app never got the message")
	}
}

func warnLimits(l *loader) {
	s := l.s
	if s.AdaptiveConcurrency && s.HTTPConnections == 1 {
		l.warnAbout("adaptive-concurrency", "", "adaptive-concurrency has no effect: %s leaves nothing to adapt",
			l.cite("http-connections"))
	}
	if s.Rate == 0 {
		return
	}
	if interval := time.Duration(float64(time.Second) / s.Rate); interval > s.VisibilityTimeout/2 {
		l.warnValue("rate", "make the visibility timeout longer", "starts a delivery every %s, and %s is not "+
			"twice as long: a waiting message is returned undelivered, which counts as a receive",
			formatDuration(interval.Round(time.Second)), l.cite("visibility-timeout"))
	}
}

func warnOrder(l *loader) {
	if len(l.cfg.Queues) > 1 {
		return
	}
	if q := &l.cfg.Queues[0]; q.Weight > 0 {
		l.warnAbout("queues", "", "the weight %d has no effect: there is only one queue", q.Weight)
	}
}

func warnQueue(l *loader, q *QueueSettings) {
	if most := l.cfg.HTTPConnections; q.Concurrency > most {
		l.warnAt(l.own["max"].Where, "queues", "",
			"%smax %d has no effect: %s is the maximum for all queues", l.prefix, q.Concurrency, l.all.cite("http-connections"))
	}

	if q.ToFunction() {
		for _, key := range []string{"http_path", "mime_type", "terminal_codes", "signing_secret", "inactivity_timeout",
			"deadline"} {
			if own, found := l.own[key]; found {
				l.warnAt(own.Where, "queues", "",
					"%s%s has no effect: messages go to a function", l.prefix, key)
			}
		}
	}

	if l.concerns("max-wait", "retention-period") && q.MaxWait > q.RetentionPeriod {
		l.warnValue("max-wait", "", "is longer than %s", l.cite("retention-period"))
	}
}

type idleRule struct {
	holds   bool
	why     string // completes "NAME VALUE has no effect"
	hint    string
	options []string
}

func idleRules(s *Settings) []idleRule {
	return []idleRule{
		{s.BackoffMin == 0, " without backoff-min", "set backoff-min, for example to 10s",
			[]string{"backoff-max", "backoff-doublings", "backoff-jitter"}},
		{!s.AnyOnSQS(), ": no queue is on Amazon SQS", "",
			[]string{"endpoint-url", "registry-table", "registry-create", "registry-lost-after", "dead-letter-reasons"}},
		{!s.anyCreated(),
			": a queue on Amazon SQS keeps the maxReceiveCount of its own redrive policy", "", []string{"max-retries"}},
		{!s.AnyEmbedded(), ": no queue is embedded", "",
			[]string{"listen", "account-id", "credentials", "tls-cert", "tls-key"}},
		{!s.anyToApp(), ": messages go to a function", "",
			[]string{"http-path", "mime-type", "signing-secret", "success-codes", "terminal-codes", "header-budget", "keepalive",
				"connect-timeout",
				"inactivity-timeout", "deadline", "respect-retry-after"}},
		{!s.anyTLS(), ": no target is https", "",
			[]string{"target-ca", "target-cert", "target-key"}},
		{!s.anyToFunction(), ": no messages go to a function", "",
			[]string{"function-timeout"}},
		{s.Breaker == 0, " without breaker", "set breaker, for example to 50",
			[]string{"breaker-window", "breaker-delay"}},
		{len(s.Queues) == 1, ": there is only one queue", "", []string{"max-wait"}},
		{s.CloudWatch == Off, ": no metrics are sent to CloudWatch", "",
			[]string{"metrics-interval"}},
		{s.Console == Off, ": the console is off", "",
			[]string{"console-tls-cert", "console-tls-key", "console-insecure", "console-auth", "console-read-only",
				"console-bodies", "console-trusted-proxy"}},
		{s.Console != Off && s.ConsoleTLSCert != "", ": the console uses TLS", "",
			[]string{"console-insecure"}},
		{s.Console != Off && s.ConsoleTLSCert == "" && isLoopback(s.Console),
			": the console has a loopback address", "", []string{"console-insecure"}},
	}
}

func warnIdle(l *loader) {
	for _, rule := range idleRules(l.s) {
		if rule.holds {
			for _, name := range rule.options {
				l.warnUnused(name, rule.why, rule.hint)
			}
		}
	}
}
