package app

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/bundle"
	"tendril/internal/supervisor"
	"tendril/internal/supervisor/notify"
)

// The embedded queue accepts any credentials on loopback.
const localCredential = "tendril"

// Queue describes the queue that the app's environment variables refer to.
type Queue struct {
	// Endpoint is "" on Amazon SQS, where the app's SDK determines region and credentials.
	Endpoint, Region string
	Name, URL        string // of the worker's queue
	// Credentials for the embedded queue; "" if it accepts any.
	AccessKeyID, SecretAccessKey string
}

// Environ returns an app process's environment: base without tendril's settings, plus the bundle's properties and
// links that base lacks, the port and the queue. It activates the bundle's Python virtual environment unless one is
// active. b may be nil. linked returns the URL of a link's queue, or "". Credentials in base remain, because the app
// may need them.
func Environ(base []string, b *bundle.Bundle, linked func(bundle.Link) string, port int, q Queue) []string {
	env := notify.WithoutVariables(base)
	set := func(name, value string) {
		env = append(slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }),
			name+"="+value)
	}
	setMissing := func(name, value string) {
		if !HasVariable(env, name) {
			set(name, value)
		}
	}
	if b != nil {
		for _, p := range b.Environment() {
			setMissing(p.Option, p.Value)
		}
		for _, link := range b.Links {
			if url := linked(link); url != "" {
				setMissing(link.Variable, url)
			}
		}
		if dir := b.VirtualEnv(); dir != "" && !HasVariable(env, "VIRTUAL_ENV") {
			set("VIRTUAL_ENV", dir)
			set("PATH", filepath.Join(dir, "bin")+":"+supervisor.SearchPath(env))
		}
	}

	env = slices.DeleteFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, "TENDRIL_") || strings.HasPrefix(entry, "WORKERLESS_") ||
			strings.HasPrefix(entry, "PORT=")
	})
	setMissing("PYTHONUNBUFFERED", "1") // buffering would delay the log
	if port != 0 {
		set("PORT", strconv.Itoa(port))
	}

	if q.URL != "" {
		set("TENDRIL_QUEUE", q.Name)
		set("TENDRIL_QUEUE_URL", q.URL)
	}
	if q.Endpoint != "" {
		set("AWS_ENDPOINT_URL_SQS", q.Endpoint)
		setMissing("AWS_REGION", q.Region)
		setMissing("AWS_DEFAULT_REGION", q.Region)
		if !HasVariable(env, "AWS_PROFILE") && !HasVariable(env, "AWS_ACCESS_KEY_ID") {
			set("AWS_ACCESS_KEY_ID", cmp.Or(q.AccessKeyID, localCredential))
			set("AWS_SECRET_ACCESS_KEY", cmp.Or(q.SecretAccessKey, localCredential))
		}
	}
	return env
}

// HasVariable reports whether env sets the named variable.
func HasVariable(env []string, name string) bool {
	return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}
