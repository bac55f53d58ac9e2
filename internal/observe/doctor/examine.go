package doctor

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Examine returns the findings about f, worst first.
func Examine(f *Facts) []Finding {
	var found findings
	for _, p := range f.Problems {
		found.add(Error, p.ID, p.What, p.Why, p.Remedy)
	}
	for _, p := range f.Secrets {
		found.add(Warning, p.ID, p.What, p.Why, p.Remedy)
	}

	found.judgeHealth(f)
	for i := range f.Queues {
		found = append(found, f.Queues[i].examine(f.Running)...)
	}

	found.judgeApps(f.Apps, f.Running)
	found.judgePermissions(f.Permissions, f.Unchecked)
	for i := range f.Clocks {
		found.judgeClock(&f.Clocks[i])
	}

	for i := range f.Proxies {
		found.judgeProxy(&f.Proxies[i])
	}

	for i := range f.Ports {
		found.judgePort(&f.Ports[i], f.Running)
	}

	for i := range f.Certificates {
		found.judgeCertificate(&f.Certificates[i])
	}

	found.judgeDisk(&f.Disk)
	found.judgeOpenFiles(&f.OpenFiles)
	found.judgeZones(&f.Zones)
	found.judgeLocalUsers(f)
	sortByLevel(found)
	return found
}

func (f *findings) judgeHealth(facts *Facts) {
	const id = "health"
	for _, c := range facts.Health {
		f.add(c.Level, id, c.What, c.Why, c.Remedy)
	}
	if facts.HealthStatus != "" && len(facts.Health) == 0 {
		f.ok(id, "the environment's health is %s", facts.HealthStatus)
	}
}

func (f *findings) judgeLocalUsers(facts *Facts) {
	const id = "local-users"
	open := "every user on this machine can use the queues at " + facts.OpenEndpoint
	switch {
	case facts.OpenEndpoint == "":
	case len(facts.OtherUsers) == 0:
		f.ok(id, "%s, but no other user can log in here", open)
	default:
		f.add(Warning, id, open+"; these users can log in: "+strings.Join(facts.OtherUsers, ", "),
			"they can read, send, delete and purge messages",
			"require signed requests with --credentials FILE (tendril credentials create NAME), or listen on a "+
				"socket with --listen unix:PATH")
	}
}

func (f *findings) judgeApps(all []App, running bool) {
	for i := range all {
		a := &all[i]
		switch {
		case a.Problem == "" && a.Own && running:
			f.ok("app", "process %s of the app is ready", a.Target)
		case a.Problem == "" && a.Own:
			f.ok("app", "the app can be started: %s", a.Target)
		case a.Problem == "":
			f.ok("app", "%s responds", a.Target)
		case a.Own:
			f.add(Error, "app", "the app is not accepting messages: "+a.Problem, "no messages are received until it does",
				cmp.Or(a.Remedy, "tendril logs"))
		default:
			f.add(Error, "app", fmt.Sprintf("%s does not respond: %s", a.Target, a.Problem),
				"no messages are received until it does",
				cmp.Or(a.Remedy, "start the app, or give another address: tendril up --target URL"))
		}
	}
}

func (f *findings) judgePermissions(all []Permission, unchecked string) {
	if unchecked != "" {
		f.add(Warning, "permissions", "the role's AWS permissions could not be checked: "+unchecked,
			"a missing permission is only noticed when it is needed",
			"allow iam:SimulatePrincipalPolicy, or compare the role with the output of 'tendril check --iam'")
	}

	type group struct{ feature, resource string }
	var order []group
	denied := map[group][]string{}
	for _, p := range all {
		if p.Allowed {
			continue
		}
		g := group{p.Feature, p.Resource}
		if denied[g] == nil {
			order = append(order, g)
		}
		denied[g] = append(denied[g], p.Action)
	}

	for _, g := range order {
		actions := strings.Join(slices.Compact(denied[g]), ", ")
		f.add(Error, "permissions", fmt.Sprintf("the role does not allow %s on %s", actions, g.resource),
			"they are needed to "+featureInWords(g.feature),
			"print the policy for the role, and attach it: tendril check --iam > policy.json")
	}
	if len(all) > 0 && len(order) == 0 {
		f.ok("permissions", "the role allows all %d checked actions", len(all))
	}
}

func featureInWords(sid string) string {
	var b strings.Builder
	for i, r := range sid {
		if r >= 'A' && r <= 'Z' && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// Amazon SQS rejects signatures whose time is off by more than 5 minutes.
const (
	clockWrong = 4 * time.Minute
	clockOff   = 5 * time.Second
)

func (f *findings) judgeClock(c *Clock) {
	const id = "clock"
	const remedy = "synchronize the clock of this machine: sudo timedatectl set-ntp true"
	direction := "behind"
	if c.Ahead < 0 {
		direction = "ahead of"
	}
	what := fmt.Sprintf("the clock of this machine is %s %s %s", durationText(c.Ahead.Abs().Round(time.Second)),
		direction, c.Server)
	switch {
	case c.Ahead.Abs() <= clockOff:
		f.ok(id, "the clock agrees with %s", c.Server)
	case c.Ahead.Abs() >= clockWrong && c.Signed:
		f.add(Error, id, what, "AWS rejects requests signed with a time that is off by more than a few minutes", remedy)
	default:
		f.add(Warning, id, what, "periodic tasks run at wrong times, and message ages are wrong", remedy)
	}
}

func (f *findings) judgeProxy(p *Proxy) {
	const id = "proxy-timeout"
	from := "the default"
	if p.Where != "" {
		from = "set in " + p.Where
	}
	if p.Timeout >= p.Attempt {
		f.ok(id, "%s in front of %s waits %s for the app (%s)", p.Name, p.Target, durationText(p.Timeout), from)
		return
	}
	f.add(Warning, id, fmt.Sprintf("%s in front of %s waits %s for the app (%s), but tendril waits %s", p.Name, p.Target,
		durationText(p.Timeout), from, durationText(p.Attempt)),
		"it responds 504 while the app is still working, so the message is retried: the work runs twice",
		fmt.Sprintf("post to the app itself with --target, or write into the configuration of %s: proxy_read_timeout %ss;",
			p.Name, ceilSeconds(p.Attempt+5*time.Second)))
}

func (f *findings) judgePort(p *Port, running bool) {
	id := "port-" + p.Name
	switch {
	case p.Refused != "" && p.Name == "app":
		f.add(Error, id, fmt.Sprintf("%s: no response at %s: %s", p.Use, p.At, p.Refused), "no messages are delivered there",
			"make the app listen on $PORT, or set its port: tendril up --port N")
	case p.Refused != "":
		f.add(Error, id, fmt.Sprintf("%s: no response at %s: %s", p.Use, p.At, p.Refused), "clients cannot connect",
			"see the log for the reason: tendril logs tendril")
	case running:
		f.ok(id, "%s: %s", p.Use, p.At)
	case p.Holder == "":
		f.ok(id, "%s: %s is free", p.Use, p.At)
	case !p.Set && p.Free != "":
		f.ok(id, "%s: %s is in use by %s, so 'tendril up' would use %s", p.Use, p.At, p.Holder, p.Free)
	default:
		f.add(Error, id, fmt.Sprintf("%s: %s is in use by %s", p.Use, p.At, p.Holder), "'tendril up' would fail",
			fmt.Sprintf("stop that process, or use another address: tendril up --%s=%s", p.Option,
				cmp.Or(p.Free, "ADDRESS")))
	}
}

// The embedded queue rejects new messages below diskFull, or a sixteenth of a smaller disk.
const (
	diskFull = 64 << 20
	diskLow  = 1 << 30
	syncSlow = 20 * time.Millisecond
)

func (f *findings) judgeDisk(d *Disk) {
	if d.Path == "" {
		return
	}
	if d.Problem != "" {
		f.add(Error, "data-directory", "cannot write to the data directory "+d.Path+": "+d.Problem,
			"'tendril up' would fail", "use a writable folder: tendril up --data-dir DIR")
		return
	}

	if d.Kind != "" && d.Embedded {
		f.add(Warning, "file-system", fmt.Sprintf("the data directory %s is on %s, a network file system", d.Path, d.Kind),
			"locks and writes of the embedded queue are only safe on a local disk",
			"use a folder on a local disk with --data-dir, or use Amazon SQS")
	}
	f.judgeSpace(d)
	if d.Sync > 0 && d.Embedded {
		f.judgeSyncTime(d)
	}
}

func (f *findings) judgeSpace(d *Disk) {
	space := fmt.Sprintf("%s of %s free below %s", sizeText(d.Free), sizeText(d.Total), d.Path)
	remedy := fmt.Sprintf("files on that disk, but none in the data directory (du -xh --max-depth=2 %s), or move the data "+
		"directory to another disk: tendril up --data-dir DIR", filepath.Dir(d.Path))
	if d.Embedded {
		remedy = "unneeded messages, or " + remedy
	}
	remedy = "delete " + remedy
	full := min(diskFull, d.Total/16)
	switch {
	case d.Free < full && d.Embedded:
		f.add(Error, "disk", space, "the embedded queue rejects sends with less than "+sizeText(full)+" of free space", remedy)
	case d.Free < diskLow:
		f.add(Warning, "disk", space, "when the disk is full, sends are rejected and events are lost", remedy)
	default:
		f.ok("disk", "%s", space)
	}
}

func (f *findings) judgeSyncTime(d *Disk) {
	if d.Sync <= syncSlow {
		f.ok("sync-time", "syncing a write to disk takes %s", d.Sync.Round(10*time.Microsecond))
		return
	}
	f.add(Warning, "sync-time", fmt.Sprintf("syncing a write to the disk of %s takes %s", d.Path, durationText(d.Sync)),
		"each send to the embedded queue waits for a sync, which concurrent sends share",
		"use a folder on a faster disk: tendril up --data-dir DIR")
}

func sizeText(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

const spareFiles = 128

func (f *findings) judgeOpenFiles(o *OpenFiles) {
	if o.Limit == 0 {
		return
	}
	if rest := o.Limit - o.Needed; rest < spareFiles {
		f.add(Warning, "open-files", fmt.Sprintf("the limit is %d open files, but deliveries, app and queues may "+
			"need up to %d", o.Limit, o.Needed), "new connections to the queues and the console are closed",
			"raise the limit before starting: ulimit -n 65536, or LimitNOFILE=65536 in the systemd unit")
		return
	}
	f.ok("open-files", "%d files can be open, at most %d are needed", o.Limit, o.Needed)
}

func (f *findings) judgeZones(z *Zones) {
	switch {
	case !z.Checked:
	case z.System != "":
		f.ok("time-zones", "time zones are read from %s", z.System)
	case z.App:
		f.add(Warning, "time-zones", "this machine has no time zone database",
			"tendril has its own, but the app may fail to find zones by name, or use UTC",
			"install it, for example on Debian: sudo apt-get install tzdata")
	default:
		f.ok("time-zones", "this machine has no time zone database: tendril uses its own")
	}
}

// Versions compares this program's version with the running one. binary is the running program's path, or "" if it is
// this file.
func Versions(this, running, binary string) Finding {
	const remedy = "restart the environment: tendril drain, then tendril up"
	switch {
	case this != running:
		return Finding{Warning, "version", fmt.Sprintf("this binary is tendril %s, but the environment runs %s", this,
			running), "they may be incompatible, and fixes in the newer one are not in effect", remedy}
	case binary != "":
		return Finding{Warning, "version", "the environment runs another binary: " + binary,
			"changes in this one have no effect there", remedy}
	}
	return Finding{Level: OK, ID: "version", What: "the environment runs this binary, tendril " + this}
}
