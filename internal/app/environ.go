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

// localCredential is for embedded queues without --credentials, which accept any.
const localCredential = "tendril"

// Queue is the queue to which the app's environment variables refer.
type Queue struct {
	// Endpoint is "" on Amazon SQS, where the app's SDK determines the region and credentials.
	Endpoint, Region string
	Name, URL        string // of the worker's queue
	// AccessKeyID and SecretAccessKey are for the embedded queue; "" if it accepts any.
	AccessKeyID, SecretAccessKey string
}

// Environ returns the environment of an app process: base without tendril's settings, with the port, the queue, and the
// bundle's properties and links that base lacks. It activates the bundle's Python virtual environment unless one is
// active. b may be nil. linked returns the URL of a link's queue, or "". Credentials in base remain, because the app
// may need them.
func Environ(base []string, b *bundle.Bundle, linked func(bundle.Link) string, port int, q Queue) []string {
	env := variables(notify.WithoutVariables(base))
	if b != nil {
		env.addBundle(b, linked)
	}

	env = slices.DeleteFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, "TENDRIL_") || strings.HasPrefix(entry, "WORKERLESS_") ||
			strings.HasPrefix(entry, "PORT=")
	})
	env.setMissing("PYTHONUNBUFFERED", "1") // buffering would delay the log
	if port != 0 {
		env.set("PORT", strconv.Itoa(port))
	}
	env.addQueue(q)
	return env
}

type variables []string

func (v *variables) set(name, value string) {
	others := slices.DeleteFunc(*v, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	*v = append(others, name+"="+value)
}

func (v *variables) setMissing(name, value string) {
	if !HasVariable(*v, name) {
		v.set(name, value)
	}
}

func (v *variables) addBundle(b *bundle.Bundle, linked func(bundle.Link) string) {
	for _, p := range b.Environment() {
		v.setMissing(p.Option, p.Value)
	}
	for _, link := range b.Links {
		if url := linked(link); url != "" {
			v.setMissing(link.Variable, url)
		}
	}
	if dir := b.VirtualEnv(); dir != "" && !HasVariable(*v, "VIRTUAL_ENV") {
		v.set("VIRTUAL_ENV", dir)
		v.set("PATH", filepath.Join(dir, "bin")+":"+supervisor.SearchPath(*v))
	}
}

func (v *variables) addQueue(q Queue) {
	if q.URL != "" {
		v.set("TENDRIL_QUEUE", q.Name)
		v.set("TENDRIL_QUEUE_URL", q.URL)
	}
	if q.Endpoint == "" {
		return
	}

	v.set("AWS_ENDPOINT_URL_SQS", q.Endpoint)
	v.setMissing("AWS_REGION", q.Region)
	v.setMissing("AWS_DEFAULT_REGION", q.Region)
	if !HasVariable(*v, "AWS_PROFILE") && !HasVariable(*v, "AWS_ACCESS_KEY_ID") {
		v.set("AWS_ACCESS_KEY_ID", cmp.Or(q.AccessKeyID, localCredential))
		v.set("AWS_SECRET_ACCESS_KEY", cmp.Or(q.SecretAccessKey, localCredential))
	}
}

// HasVariable reports whether env sets the named variable.
func HasVariable(env []string, name string) bool {
	return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}
